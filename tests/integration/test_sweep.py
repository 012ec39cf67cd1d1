"""Whole sweeps over a real store: what is committed, told and left alone."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from jobmond import registry
from jobmond.model.job import Choices
from jobmond.model.observation import (
    Absent,
    Facts,
    Gone,
    LogTail,
    NotApplicable,
    Poll,
    Read,
    Unavailable,
    Unreachable,
)
from jobmond.model.state import Kind, PostMortem, State
from jobmond.store import Store
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.conclude import Terms
from jobmond.sweep.sweep import Sweeper
from tests.unit.builders import NOW, by_name, ended, seen

TRACE = b'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nValueError: no\n'


class Calendar:
    """A clock that a test sets."""

    def __init__(self):
        self.at = NOW

    def now(self):
        return self.at

    def monotonic(self):
        return self.at.timestamp()

    def later(self, minutes=15):
        self.at += timedelta(minutes=minutes)


@dataclass
class Far:
    """A cluster that says what the test wants, and counts how often it is asked."""

    says: dict = field(default_factory=dict)
    found: tuple = ()
    trouble: str | None = None
    needs_login: bool = False
    logs: dict = field(default_factory=dict)
    kind: str = "slurm"
    discovers: bool = True
    polls: int = 0
    log_scripts: int = 0

    async def poll(self, asks, *, since, now, timeout_s):
        self.polls += 1
        self.asked = sorted(a.native_id for a in asks)
        if self.trouble and not self.says:
            return Poll(
                {a.native_id: Unreachable(self.trouble) for a in asks},
                trouble=self.trouble,
                needs_login=self.needs_login,
                remedy="ssh login" if self.needs_login else None,
            )
        answers = {a.native_id: self.says.get(a.native_id, Unreachable("x")) for a in asks}
        return Poll(answers, found=self.found, trouble=self.trouble, calls={"squeue": 1})

    def valid_id(self, native_id):
        return None

    async def read_tails(self, asks, *, now, timeout_s):
        self.log_scripts += 1
        return {a.native_id: self.logs.get(a.native_id, Absent()) for a in asks}


def text(tail, at=NOW):
    return Read(LogTail("/l", len(tail), 1, at, 0, tail), at)


class Scene:
    """One cluster `lab`, a store in a file, and what was told so far."""

    def __init__(self, tmp_path, **cluster):
        self.store = Store.open(f"sqlite:///{tmp_path / 'db'}")
        self.far = Far()
        self.clock = Calendar()
        self.cluster = Cluster("lab", "slurm", {Kind.SLURM: self.far}, self.far, (), **cluster)
        rules = tuple(registry.rules[name]() for name in ("held", "dependency-never-satisfied"))
        self.sweeper = Sweeper(
            self.store, self._call, self.clock, by_name, Terms(rules, ("news",), "/agent_logs")
        )

    async def _call(self, fn, /, *args, **kw):
        return fn(*args, **kw)

    def add(self, native_id, **choices):
        chosen = Choices(**choices)
        self.store.add(
            "lab",
            Kind.SLURM,
            native_id,
            choices=chosen,
            classified=by_name(chosen, Facts(), native_id),
            now=self.clock.now(),
        )

    async def sweep(self, *, asked=False, **says):
        self.far.says = {k.removeprefix("_"): v for k, v in says.items()}
        self.clock.later()
        return await self.sweeper.sweep(self.cluster, asked=asked)

    def told(self):
        """(type, ref or cluster, before, after) of everything told so far."""
        return [
            (n.type, n.ref or n.cluster, n.payload["before"], n.payload["after"])
            for n in self.store.events(limit=1000)
        ]

    def job(self, word):
        (found,) = self.store.find(word)
        return found


@pytest.fixture
def scene(tmp_path):
    made = Scene(tmp_path)
    yield made
    made.store.close()


async def test_a_jobs_life_is_told_once_and_then_it_leaves_tracking(scene):
    scene.add("1")
    scene.far.logs = {"1": text(TRACE)}
    await scene.sweep(_1=seen(State.PENDING))
    await scene.sweep(_1=seen(State.RUNNING))
    await scene.sweep(_1=seen(State.RUNNING))
    result = await scene.sweep(_1=seen(State.FAILED, exit_code=1, ended_at=NOW))
    assert scene.told() == [
        ("transition", "lab/1", "PENDING", "RUNNING"),
        ("transition", "lab/1", "RUNNING", "FAILED"),
    ]
    over = scene.job("lab/1")
    assert (over.tracked, over.state, over.post_mortem) == (False, State.FAILED, PostMortem.DONE)
    assert over.diagnosis.summary == "ValueError: no"
    assert (result.jobs, result.changes) == (0, 1)
    kinds = [(d.sink, d.key) for d in scene.store.due("agent_log", scene.clock.now(), 10)]
    assert kinds == [("agent_log", "lab/1@100#3:entry:0")]


async def test_a_silent_cluster_moves_nothing_and_is_said_once(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    scene.far.trouble = "connection refused"
    for _ in range(3):
        result = await scene.sweep()
        assert result.status == "unreachable"
    silent = scene.job("lab/1")
    assert (silent.state, silent.stale, silent.tracked) == (State.RUNNING, True, True)
    scene.far.trouble = None
    await scene.sweep(_1=seen(State.COMPLETED))
    assert scene.told() == [
        ("cluster", "lab", "ok", "unreachable"),
        ("cluster", "lab", "unreachable", "ok"),
        ("transition", "lab/1", "RUNNING", "COMPLETED"),
    ]


async def test_no_log_is_asked_of_a_host_that_did_not_answer(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    before = scene.far.log_scripts
    scene.far.trouble = "timeout"
    await scene.sweep()
    assert scene.far.log_scripts == before


async def test_a_host_that_fails_is_left_alone_longer_and_longer(tmp_path):
    scene = Scene(tmp_path, backoff=timedelta(minutes=10), backoff_max=timedelta(hours=2))
    scene.add("1")
    scene.far.trouble = "connection refused"
    polls = []
    for _ in range(12):
        await scene.sweep()
        polls.append(scene.far.polls)
    # Sweeps every 15 minutes; pauses of 10, 20, 40, 80 and 120 minutes after each failure.
    assert polls == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4]
    await scene.sweep(asked=True)
    assert scene.far.polls == 5
    scene.store.close()


async def test_one_that_needs_a_person_is_never_tried_until_asked(scene):
    scene.add("1")
    scene.far.trouble, scene.far.needs_login = "host key changed", True
    for _ in range(4):
        result = await scene.sweep()
    assert scene.far.polls == 1
    assert (result.status, result.remedy) == ("needs-login", "ssh login")
    assert scene.told() == [("cluster", "lab", None, "needs-login")]
    scene.far.trouble, scene.far.needs_login = None, False
    await scene.sweep(asked=True, _1=seen(State.RUNNING))
    assert scene.told()[-1] == ("cluster", "lab", "needs-login", "ok")


async def test_a_partial_answer_moves_what_it_shows(scene):
    scene.add("1")
    scene.add("2")
    await scene.sweep(_1=seen(State.PENDING), _2=seen(State.RUNNING))
    scene.far.trouble = "accounting does not answer"
    await scene.sweep(_1=seen(State.RUNNING), _2=Unreachable("accounting does not answer"))
    assert ("transition", "lab/1", "PENDING", "RUNNING") in scene.told()
    assert scene.job("lab/2").stale
    assert not scene.job("lab/1").stale


async def test_one_unreadable_job_concerns_only_itself_and_says_why(scene):
    scene.add("1")
    scene.add("2")
    await scene.sweep(_1=seen(State.RUNNING), _2=seen(State.RUNNING))
    result = await scene.sweep(_1=Unreachable("the state 'EXPEDITING' is not known"))
    scene.far.says = {}
    assert result.status == "ok"
    odd = scene.job("lab/1")
    assert (odd.stale, odd.note) == (True, "the state 'EXPEDITING' is not known")
    await scene.sweep(_1=seen(State.RUNNING), _2=seen(State.RUNNING))
    assert (scene.job("lab/1").stale, scene.job("lab/1").note) == (False, None)


async def test_an_inactive_cluster_is_not_contacted_and_its_jobs_say_so(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    scene.cluster = replace(scene.cluster, active=False)
    result = await scene.sweep()
    assert (result.status, scene.far.polls) == ("inactive", 1)
    assert scene.job("lab/1").stale
    assert scene.told() == []
    scene.cluster = replace(scene.cluster, active=True)
    await scene.sweep(_1=seen(State.RUNNING))
    assert not scene.job("lab/1").stale


async def test_a_chain_goes_on_under_the_successors_id(scene):
    scene.add("1", owner="alice", description="the big one")
    scene.far.found = (("2", seen(State.PENDING, birth="101", dependency="afterany:1")),)
    await scene.sweep(_1=seen(State.RUNNING))
    scene.far.found = (("2", seen(State.RUNNING, birth="101", dependency="afterany:1")),)
    await scene.sweep(_1=seen(State.TIMEOUT, ended_at=NOW))
    assert scene.told() == [("restart", "lab/1", "RUNNING", "RUNNING")]
    first, second = scene.job("lab/1"), scene.job("lab/2")
    assert (first.successor, first.tracked, first.agent_log) == ("lab/2", False, None)
    assert (second.run, second.life, second.tracked) == (first.run, 2, True)
    assert (second.choices.owner, second.choices.description) == ("alice", "the big one")
    assert second.predecessor == first.id
    scene.far.found = ()
    await scene.sweep(_2=seen(State.COMPLETED, birth="101"))
    assert scene.told()[-1] == ("transition", "lab/2", "RUNNING", "COMPLETED")


async def test_a_requeue_goes_on_under_the_same_ref(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    requeued = seen(State.PENDING, birth="200", previous=(ended(State.NODE_FAIL),))
    await scene.sweep(_1=requeued)
    await scene.sweep(_1=seen(State.RUNNING, birth="200"))
    assert scene.told() == [
        ("restart", "lab/1", "NODE_FAIL", "PENDING"),
        ("transition", "lab/1", "PENDING", "RUNNING"),
    ]
    now = scene.job("lab/1")
    assert (now.birth, now.life, now.tracked) == ("200", 2, True)
    old = scene.job("lab/1@100")
    assert (old.state, old.tracked) == (State.NODE_FAIL, False)
    assert not scene.store.due("agent_log", scene.clock.now(), 10)


async def test_lost_is_said_and_corrected_when_a_proof_turns_up(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    await scene.sweep(_1=Gone("neither queue nor accounting knows it"))
    assert scene.job("lab/1").state is State.LOST
    await scene.sweep(_1=seen(State.COMPLETED))
    assert scene.told() == [
        ("transition", "lab/1", "RUNNING", "LOST"),
        ("transition", "lab/1", "LOST", "COMPLETED"),
    ]
    corrected = scene.store.events(limit=10)[-1]
    assert corrected.payload["correction"] is True


async def test_a_lost_job_that_lives_is_tracked_again(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    await scene.sweep(_1=Gone("neither queue nor accounting knows it"))
    await scene.sweep(_1=seen(State.RUNNING))
    back = scene.job("lab/1")
    assert (back.state, back.tracked, back.diagnosis) == (State.RUNNING, True, None)


async def test_what_a_person_dropped_stays_dropped(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    scene.store.untrack(scene.job("lab/1").id, by="alice", now=scene.clock.now())
    scene.far.polls = 0
    await scene.sweep(_1=seen(State.FAILED))
    assert scene.told() == []


async def test_discovery_tracks_each_job_once_and_tells_what_ended_between_looks(tmp_path):
    scene = Scene(tmp_path, discover=True)
    scene.far.found = (("7", seen(State.RUNNING)), ("8", seen(State.COMPLETED, birth="50")))
    await scene.sweep()
    assert [j.native_id for j in scene.store.jobs(recent_since=NOW)] == ["7"]
    scene.far.found = (("9", seen(State.FAILED, birth="60", exit_code=2, ended_at=NOW)),)
    await scene.sweep(_7=seen(State.RUNNING))
    await scene.sweep(_7=seen(State.RUNNING))  # 9 is found once more, and known by now
    assert scene.told() == [("transition", "lab/9", None, "FAILED")]
    scene.store.close()


async def test_a_held_job_says_so_when_it_comes_and_when_it_goes(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.PENDING, held=True, reason="JobHeldUser"))
    await scene.sweep(_1=seen(State.PENDING, held=True, reason="JobHeldUser"))
    await scene.sweep(_1=seen(State.PENDING, reason="Priority"))
    assert [t[0] for t in scene.told()] == ["transition", "signal", "cleared"]


async def test_logs_that_may_not_be_read_are_said_once_with_what_helps(scene):
    why = "permission: bob may not enter /home/alice; alice can allow it: setfacl"
    scene.far.logs = {"1": Unavailable(why), "2": Unavailable(why), "3": Unavailable("budget")}
    for native_id in scene.far.logs:
        scene.add(native_id)
    running = {f"_{n}": seen(State.RUNNING) for n in scene.far.logs}
    with capture_logs() as journal:
        for _ in range(3):
            await scene.sweep(**running)
    assert [line for line in journal if line["log_level"] == "warning"] == [
        {
            "event": "log not readable",
            "log_level": "warning",
            "cluster": "lab",
            "why": why,
            "jobs": "lab/1 lab/2",
        }
    ]
    assert (scene.job("lab/1").log.status, scene.job("lab/1").log.error) == ("unavailable", why)
    with capture_logs() as journal:
        scene.far.logs = {n: text(b"step 1\n") for n in scene.far.logs}
        await scene.sweep(**running)
    assert not journal
    assert scene.job("lab/1").log.status == "read"


async def test_a_log_that_could_not_be_read_is_looked_for_again(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    scene.far.logs = {"1": Unavailable("permission denied")}
    await scene.sweep(_1=seen(State.FAILED, exit_code=1))
    assert scene.job("lab/1").post_mortem is PostMortem.PENDING
    scene.far.trouble = "down"
    await scene.sweep()
    assert scene.job("lab/1").post_mortem_tries == 0
    scene.far.trouble = None
    scene.far.logs = {"1": text(TRACE)}
    await scene.sweep(_x=NotApplicable())
    found = scene.job("lab/1")
    assert (found.post_mortem, found.diagnosis.cause) == (PostMortem.DONE, "python-exception")
    assert [t for t in scene.told() if t[0] == "transition"][-1] == (
        "transition",
        "lab/1",
        "FAILED",
        "FAILED",
    )


async def test_a_job_that_is_added_again_after_its_end_gives_no_second_alarm(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    await scene.sweep(_1=seen(State.FAILED, exit_code=1))
    told = scene.told()
    scene.add("1")
    await scene.sweep(_1=seen(State.FAILED, exit_code=1))
    assert scene.told() == told
    assert scene.job("lab/1").state is State.FAILED
    assert not scene.job("lab/1").tracked


async def test_another_job_under_the_same_id_is_told(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.FAILED, exit_code=1))
    scene.add("1")
    await scene.sweep(_1=seen(State.FAILED, birth="900", exit_code=2))
    assert len(scene.told()) == 2
