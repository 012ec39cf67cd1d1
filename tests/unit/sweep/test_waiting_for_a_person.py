"""A cluster that needs a login goes on by itself once a transport sees that somebody acted."""

from datetime import timedelta

import pytest

from jobmond.analysis.settle import Found
from jobmond.model.commit import ClusterSnapshot
from jobmond.model.job import ClusterHealth
from jobmond.model.observation import Poll
from jobmond.model.state import ClusterStatus, Kind
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.conclude import Terms
from jobmond.sweep.sweep import Sweeper
from tests.unit.builders import NOW


class Clock:
    def now(self):
        return NOW

    def monotonic(self):
        return 0.0


class Memory:
    def __init__(self, status, retry_at):
        self.health = ClusterHealth("lab", "slurm", True, status, since=NOW, retry_at=retry_at)
        self.commits = []

    def snapshot(self, name, *, correct_since):
        return ClusterSnapshot(health=self.health, jobs=(), lives={})

    def known(self, *_):
        return set()

    def commit(self, commit):
        self.commits.append(commit)


class Far:
    kind = "slurm"
    discovers = True
    polls = 0

    async def poll(self, asks, *, since, now, timeout_s):
        self.polls += 1
        return Poll(sightings={}, found=())


class Silent:
    """A transport that cannot tell."""

    logins = 0


class Watching(Silent):
    def __init__(self, acted):
        self._acted = acted
        self.looks = 0

    async def acted(self):
        self.looks += 1
        return self._acted


async def call(fn, /, *args, **kw):
    return fn(*args, **kw)


async def sweep(status, *transports, retry_at=None):
    far = Far()
    cluster = Cluster("lab", "slurm", {Kind.SLURM: far}, far, transports, discover=True)
    memory = Memory(status, retry_at)
    terms = Terms((), (), "/a")
    result = await Sweeper(memory, call, Clock(), lambda *_: Found, terms).sweep(cluster)
    assert result.contacted == (far.polls == 1) == (len(memory.commits) == 1)
    return result


async def test_somebody_acted():
    result = await sweep(ClusterStatus.NEEDS_LOGIN, Silent(), Watching(True))
    assert result.contacted
    assert result.status == ClusterStatus.OK


@pytest.mark.parametrize("transports", [(), (Silent(),), (Watching(False), Silent())])
async def test_nobody_did_or_nobody_can_tell(transports):
    result = await sweep(ClusterStatus.NEEDS_LOGIN, *transports)
    assert not result.contacted
    assert result.status == ClusterStatus.NEEDS_LOGIN


async def test_a_cluster_that_waits_for_its_back_off_is_not_looked_at():
    watching = Watching(True)
    soon = NOW + timedelta(minutes=5)
    assert not (await sweep(ClusterStatus.UNREACHABLE, watching, retry_at=soon)).contacted
    assert watching.looks == 0


async def test_a_cluster_that_answers_is_not_looked_at_either():
    watching = Watching(False)
    assert (await sweep(ClusterStatus.OK, watching)).contacted
    assert watching.looks == 0
