"""What a real Slurm 22.05 printed for the very scripts that are sent, and what that means.

The jobs' names say what was done to them; expectations were written from that, not from output.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobmond.backends.slurm import SlurmBackend
from jobmond.model.observation import Ask, Gone, Poll, Seen, Unreachable
from jobmond.model.state import State
from tests.doubles import ReplayTransport

TRANSCRIPTS = Path(__file__).parents[2] / "transcripts" / "slurm"
NOW = datetime.fromtimestamp(1795977790, UTC)
SUBMITTED = "1795977771"
REQUEUED = "1795977777"


async def replayed(name: str, *ids: str) -> Poll:
    listing = (TRANSCRIPTS / f"{name}.out").read_bytes()
    details = TRANSCRIPTS / f"{name}.details.out"
    transport = ReplayTransport(listing, details.read_bytes() if details.exists() else b"")
    asks = [Ask(native_id=one, birth=None, added_at=NOW - timedelta(hours=1)) for one in ids]
    since = NOW - timedelta(hours=1)
    return await SlurmBackend(transport).poll(asks, since=since, now=NOW, timeout_s=120)


async def shown(name: str, native_id: str) -> Seen:
    sighting = (await replayed(name, native_id)).sightings[native_id]
    assert isinstance(sighting, Seen), sighting
    return sighting


@pytest.mark.parametrize(
    ("native_id", "state", "native", "code", "proof"),
    [
        ("19", State.COMPLETED, "COMPLETED", (0, None), "sacct"),
        ("20", State.FAILED, "FAILED", (3, None), "sacct"),
        ("21", State.FAILED, "FAILED", (137, None), "sacct"),
        ("22", State.FAILED, "FAILED", (None, 9), "sacct"),
        ("23", State.FAILED, "FAILED", (None, 53), "sacct"),
        ("24", State.RUNNING, "RUNNING", (None, None), "squeue"),
        ("26", State.PENDING, "PENDING", (None, None), "squeue"),
        ("27", State.CANCELLED, "CANCELLED by 1001", (None, None), "sacct"),
        ("36", State.CANCELLED, "CANCELLED by 1001", (None, 15), "sacct"),
        ("38", State.RUNNING, "SUSPENDED", (None, None), "squeue"),
    ],
)
async def test_state_and_exit(native_id, state, native, code, proof):
    sighting = await shown("mixed-window", native_id)
    assert (sighting.state, sighting.native, sighting.proof) == (state, native, proof)
    assert (sighting.facts.exit_code, sighting.facts.signal) == code
    assert sighting.birth == SUBMITTED


@pytest.mark.parametrize(
    ("native_id", "log_path", "err_path"),
    [
        ("19", "/home/alice/slurm-19.out", None),
        ("24", None, None),  # the path holds %N, which Slurm leaves as it is
        ("25", "/home/alice/out my job.out", "/home/alice/err my job.err"),
        ("31_2", "/home/alice/slurm-31_2.out", None),
        ("31_7", "/home/alice/slurm-31_7.out", None),
        ("31", "/home/alice/slurm-31_2.out", None),
    ],
)
async def test_log_paths(native_id, log_path, err_path):
    facts = (await shown("mixed-window", native_id)).facts
    assert (facts.log_path, facts.err_path) == (log_path, err_path)
    assert facts.workdir == "/home/alice"
    assert facts.detailed


async def test_a_hostile_name_and_comment_stay_where_they_belong():
    facts = (await shown("mixed-window", "24")).facts
    assert facts.name == 'a|b\\n"c"\\td x=1 UserId=root(0) GroupId=root(0) é'
    assert facts.comment == "hello | \\n StdOut=/etc/passwd"
    assert facts.user == "alice"


@pytest.mark.parametrize(
    ("native_id", "reason", "held", "dependency"),
    [
        ("26", "JobHeldUser", True, None),
        ("28", "Dependency", False, "afterany:24(unfulfilled)"),
        ("29", "DependencyNeverSatisfied", False, "afterok:20(failed)"),
        ("30", "BeginTime", False, None),
        ("35", "Dependency", False, "afterany:34(unfulfilled)"),
    ],
)
async def test_why_a_job_waits(native_id, reason, held, dependency):
    sighting = await shown("mixed-window", native_id)
    assert sighting.state is State.PENDING
    facts = sighting.facts
    assert (facts.reason, facts.held, facts.dependency) == (reason, held, dependency)


async def test_an_array_is_one_row():
    sighting = await shown("mixed-window", "31")
    tasks = sighting.facts.tasks
    assert sighting.state is State.RUNNING
    assert tasks is not None
    # Task 9 was cancelled while it waited, and has vanished.
    assert tasks.by_state == {
        State.FAILED: 1,
        State.COMPLETED: 1,
        State.RUNNING: 2,
        State.PENDING: 5,
    }
    assert (tasks.total, tasks.failed, tasks.running) == (9, ("31_0",), ("31_2", "31_3"))


async def test_a_heterogeneous_job_is_one_row():
    sighting = await shown("mixed-window", "32")
    assert sighting.facts.tasks is not None
    assert sighting.facts.tasks.by_state == {State.RUNNING: 2}
    component = await shown("mixed-window", "32+1")
    assert (component.state, component.facts.tasks) == (State.RUNNING, None)
    assert (await shown("mixed-window", "33")).facts.name == "het"


async def test_what_nobody_knows_is_gone():
    poll = await replayed("mixed-window", "31_99", "999999")
    assert all(isinstance(one, Gone) for one in poll.sightings.values())


async def test_a_requeue_by_hand():
    sighting = await shown("mixed-window", "37")
    assert (sighting.state, sighting.birth) == (State.PENDING, REQUEUED)
    assert sighting.facts.restarts == 1


async def test_a_chain_goes_on_after_the_timeout():
    poll = await replayed("later-named", "34", "35")
    ended, successor = poll.sightings["34"], poll.sightings["35"]
    assert isinstance(ended, Seen)
    assert isinstance(successor, Seen)
    assert (ended.state, successor.state) == (State.TIMEOUT, State.RUNNING)
    # The queue has forgotten it; the submit line has not.
    assert successor.facts.dependency == "afterany:34"


@pytest.mark.parametrize(
    ("native_id", "state", "reason"),
    [
        ("43", State.PENDING, "BeginTime"),  # preempted and queued again
        ("44", State.PREEMPTED, None),
        ("45", State.NODE_FAIL, "NodeDown"),
        ("46", State.PENDING, "BeginTime"),  # its node failed, and it was queued again
        ("47", State.RUNNING, None),
    ],
)
async def test_preemption_and_node_failure(native_id, state, reason):
    sighting = await shown("fate-window", native_id)
    assert (sighting.state, sighting.facts.reason) == (state, reason)


@pytest.mark.parametrize(("native_id", "how"), [("43", "PREEMPTED"), ("46", "NODE_FAIL")])
async def test_a_tracked_job_that_was_queued_again(native_id, how):
    listing = (TRANSCRIPTS / "fate-window.out").read_bytes()
    ask = Ask(native_id, "1795977971", added_at=NOW, state=State.RUNNING)
    poll = await SlurmBackend(ReplayTransport(listing)).poll(
        [ask], since=NOW, now=NOW, timeout_s=120
    )
    sighting = poll.sightings[native_id]
    assert isinstance(sighting, Seen)
    assert sighting.birth == "1795977976"
    assert [(life.birth, life.native) for life in sighting.previous] == [("1795977971", how)]


async def test_a_controller_that_is_down():
    poll = await replayed("ctld-down", "19")
    assert isinstance(poll.sightings["19"], Unreachable)
    assert poll.trouble is not None
    assert "Unable to contact slurm controller" in poll.trouble
    assert poll.calls == {"squeue": 1}


async def test_a_database_that_is_down():
    poll = await replayed("dbd-down", "19", "47")
    assert isinstance(poll.sightings["19"], Unreachable)
    assert poll.trouble is not None
    assert "Problem talking to the database" in poll.trouble


async def test_jobs_nobody_asked_about():
    poll = await replayed("mixed-window", *(str(i) for i in range(20, 39)))
    found = {native: job.state for native, job in poll.found}
    assert found["19"] is State.COMPLETED
    assert "33" not in found  # the second component of 32


@pytest.mark.parametrize("name", ["mixed-window", "fate-window", "later-named"])
async def test_an_answer_cut_anywhere_ends_nothing(name):
    whole = (TRANSCRIPTS / f"{name}.out").read_bytes()
    ids = [str(i) for i in range(19, 49)]
    asks = [Ask(one, None, added_at=NOW - timedelta(hours=1)) for one in ids]
    for cut in range(0, len(whole) - 1, 997):
        poll = await SlurmBackend(ReplayTransport(whole[:cut])).poll(
            asks, since=NOW, now=NOW, timeout_s=120
        )
        assert poll.trouble is not None
        for sighting in poll.sightings.values():
            alive = isinstance(sighting, Seen) and sighting.proof == "squeue"
            assert alive or isinstance(sighting, Unreachable)
