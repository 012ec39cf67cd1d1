"""What a real controller said of jobs in every state, and what is seen in it."""

from datetime import UTC, datetime, timedelta

import pytest

from jobmond.backends.iris import IrisBackend
from jobmond.backends.iris.logs import IrisLogs
from jobmond.model.observation import Ask, LogAsk, Read, Seen
from jobmond.model.state import State
from tests.controller import Recorded, recorded
from tests.doubles_store import FixedClock

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

# case: job, state, native, exit code, signal
STATES = {
    "ok": ("carol/ok", State.COMPLETED, "succeeded", 0, None),
    "bad": ("carol/bad", State.FAILED, "failed", 3, None),
    "sig": ("carol/sig", State.FAILED, "failed", 137, 9),
    "running": ("carol/long", State.RUNNING, "running", None, None),
    "killed": ("carol/long", State.CANCELLED, "killed", None, None),
    "gang": ("carol/gang", State.FAILED, "failed", 7, None),
    "retried": ("carol/retry", State.COMPLETED, "succeeded", 0, None),
    "waiting": ("carol/full", State.RUNNING, "running", None, None),
    "unschedulable": ("carol/full", State.FAILED, "unschedulable", None, None),
    "parent": ("carol/parent", State.RUNNING, "running", None, None),
    "again": ("carol/ok", State.RUNNING, "running", None, None),
}


async def seen(case: str) -> Seen:
    backend = IrisBackend(Recorded(case), FixedClock(), url="http://iris")
    ask = Ask(STATES[case][0], None, NOW)
    poll = await backend.poll([ask], since=NOW, now=NOW, timeout_s=60)
    assert poll.trouble is None
    assert poll.complaints == ()
    found = poll.sightings[ask.native_id]
    assert isinstance(found, Seen)
    return found


@pytest.mark.parametrize("case", STATES)
async def test_each_state_is_what_it_is(case: str) -> None:
    found = await seen(case)
    _, state, native, exit_code, signal = STATES[case]
    assert (found.state, found.native) == (state, native)
    assert (found.facts.exit_code, found.facts.signal) == (exit_code, signal)


async def test_instants_names_and_birth() -> None:
    found = await seen("bad")
    job = recorded("bad", "GetJobStatus")[0]["answer"]["job"]
    assert found.birth == job["submittedAt"]["epochMs"]
    submitted = datetime.fromtimestamp(int(found.birth) / 1000, UTC)
    assert found.facts.submitted_at == submitted
    assert (found.facts.user, found.facts.name) == ("carol", "bad")
    assert found.facts.started_at is not None
    assert found.facts.ended_at is not None
    assert found.facts.ended_at - found.facts.started_at == timedelta(seconds=1, milliseconds=42)
    assert found.facts.elapsed_s == 1
    assert found.facts.log_path == f"iris:/carol/bad@{found.birth}"
    assert found.proof == "controller"


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (
            "bad",
            "Cumulative failed task attempts exceeded max_task_failures: failures=1, limit=0;"
            " Exit code: 3",
        ),
        ("killed", "Terminated by user"),
        ("unschedulable", "Scheduling timeout exceeded (Duration(4.000s))"),
        ("ok", None),
        ("running", None),
        ("parent", "child jobs: 1 failed, 1 succeeded (carol/parent/child-bad)"),
    ],
)
async def test_reasons(case: str, reason: str | None) -> None:
    assert (await seen(case)).facts.reason == reason


async def test_the_parts_of_a_job_with_several_tasks() -> None:
    tasks = (await seen("gang")).facts.tasks
    assert tasks is not None
    assert tasks.total == 3
    assert tasks.by_state[State.FAILED] == 1
    assert sum(tasks.by_state.values()) == 3
    assert tasks.failed == ("carol/gang/1",)
    waiting = (await seen("waiting")).facts.tasks
    assert waiting is not None
    assert waiting.by_state == {State.RUNNING: 2, State.PENDING: 3}


async def test_a_name_submitted_again_is_another_incarnation() -> None:
    first, second = await seen("ok"), await seen("again")
    assert int(first.birth) < int(second.birth)


LOGS = {
    "ok": b"all good\n",
    "bad": b"boom\n",
    "sig": b"",
    "retried": b"attempt /carol/retry/0:0\nattempt /carol/retry/0:1\nattempt /carol/retry/0:2\n",
    "parent": b"parent\n",
}


@pytest.mark.parametrize("case", LOGS)
async def test_logs_are_the_lines_of_the_job_and_not_of_its_own_jobs(case: str) -> None:
    job = STATES[case][0]
    logs = IrisLogs(Recorded(case), FixedClock(), url="http://iris")
    found = await logs.read_tails([LogAsk(job, None, None, 4096)], now=NOW, timeout_s=60)
    reading = found[job]
    assert isinstance(reading, Read)
    assert reading.value.tail == LOGS[case]
    assert (reading.value.offset, reading.value.size_bytes) == (0, len(LOGS[case]))


@pytest.mark.parametrize(("index", "status", "code"), [(0, 500, "internal"), (1, 404, "not_found")])
def test_the_errors_that_a_real_controller_gives(index: int, status: int, code: str) -> None:
    case = ("wrong", "unknown")[index]
    found = recorded(case, "GetJobStatus")[0]
    assert (found["status"], found["answer"]["code"]) == (status, code)
