"""What one sweep asks a controller, and what becomes of each answer."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobmond.backends.iris import IrisBackend
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.model.observation import Ask, Facts, Gone, Poll, Seen, Sighting, Unreachable
from jobmond.model.state import State
from jobmond.ports import HttpAnswer
from tests.controller import Controller, error, ms, ok
from tests.doubles_store import FixedClock

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
BORN = NOW - timedelta(hours=2)
BIRTH = ms(BORN)["epochMs"]
TRAIN = "alice/train"


def ask(native: str = TRAIN, **more: Any) -> Ask:
    plain: dict[str, Any] = {
        "birth": BIRTH,
        "added_at": BORN,
        "state": State.RUNNING,
        "facts": Facts(name="train", submitted_at=BORN),
    }
    return Ask(native, **{**plain, **more})


def source(far: Controller, **options: Any) -> IrisBackend:
    return IrisBackend(far, FixedClock(), url="http://iris/", **options)


async def polled(far: Controller, *asks: Ask, now: datetime = NOW, **options: Any) -> Poll:
    backend = source(far, **options)
    return await backend.poll(asks, since=now - timedelta(minutes=15), now=now, timeout_s=60)


async def sighted(far: Controller, one: Ask | None = None, **options: Any) -> Sighting:
    one = one or ask()
    poll = await polled(far, one, **options)
    return poll.sightings[one.native_id]


# -- one job ---------------------------------------------------------------------------------------


async def test_a_running_job_costs_two_calls() -> None:
    far = Controller()
    far.submit(TRAIN, BORN)
    poll = await polled(far, ask())
    found = poll.sightings[TRAIN]
    assert isinstance(found, Seen)
    assert (found.state, found.birth, found.previous) == (State.RUNNING, BIRTH, ())
    assert found.facts.elapsed_s == 7200
    assert dict(poll.calls) == {"GetJobState": 1, "GetJobStatus": 1}


async def test_the_exit_code_is_that_of_the_task_that_failed_first() -> None:
    far = Controller()
    far.submit(TRAIN, BORN)
    far.end(TRAIN, "failed", NOW, why="too many failures")
    far.tasks[f"/{TRAIN}"] = [
        far.task(TRAIN, "cosched_failed", 0, exitCode=143, finishedAt=ms(BORN)),
        far.task(TRAIN, "failed", 1, exitCode=1, finishedAt=ms(NOW)),
        far.task(TRAIN, "failed", 2, exitCode=42, finishedAt=ms(NOW - timedelta(seconds=9))),
    ]
    found = await sighted(far)
    assert isinstance(found, Seen)
    assert (found.state, found.facts.exit_code) == (State.FAILED, 42)
    assert found.facts.reason == "too many failures"
    assert found.facts.ended_at == NOW


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("pending", State.PENDING),
        ("building", State.PENDING),
        ("running", State.RUNNING),
        ("succeeded", State.COMPLETED),
        ("failed", State.FAILED),
        ("killed", State.CANCELLED),
        ("worker_failed", State.NODE_FAIL),
        ("unschedulable", State.FAILED),
    ],
)
async def test_every_word(word: str, state: State) -> None:
    far = Controller()
    far.submit(TRAIN, BORN, word)
    found = await sighted(far)
    assert isinstance(found, Seen)
    assert (found.state, found.native) == (state, word)


@pytest.mark.parametrize("word", ["JOB_STATE_UNSPECIFIED", "JOB_STATE_PAUSED", 9, None, [], ""])
async def test_a_word_that_nobody_knows_moves_nothing_and_is_said(word: object) -> None:
    far = Controller()
    far.submit(TRAIN, BORN)["state"] = word
    far.submit("alice/other", BORN)
    poll = await polled(far, ask(), ask("alice/other"))
    assert isinstance(poll.sightings[TRAIN], Unreachable)
    assert isinstance(poll.sightings["alice/other"], Seen)
    assert "unknown state word" in poll.complaints[0]


async def test_a_record_without_its_submission_moves_nothing() -> None:
    far = Controller()
    del far.submit(TRAIN, BORN)["submittedAt"]
    assert await sighted(far) == Unreachable("its record does not say when it was submitted")


async def test_why_it_waits() -> None:
    far = Controller()
    far.submit(TRAIN, BORN, "pending", pendingReason="no worker has\n h100:8 free")
    found = await sighted(far)
    assert isinstance(found, Seen)
    assert found.facts.reason == "no worker has h100:8 free"
    assert found.facts.elapsed_s is None


async def test_a_programs_last_words_are_no_reason() -> None:
    far = Controller()
    far.submit(TRAIN, BORN)
    words = "Preempted by a peer\n\x1b[1mKeyError: 'loss' token=sk-abcdefghijklmnopqrst123"
    far.end(TRAIN, "failed", NOW, why=f"Exit code: 1. stderr: {words}")
    found = await sighted(far)
    assert isinstance(found, Seen)
    assert found.facts.reason == "Exit code: 1"
    assert found.facts.message is not None
    assert found.facts.message.startswith("Preempted by a peer\n\\x1b[1mKeyError: 'loss'")
    assert "sk-abc" not in found.facts.message


async def test_what_a_running_job_has_survived() -> None:
    far = Controller()
    far.submit(TRAIN, BORN, preemptionCount=2, failureCount=1)
    lost = [{"isWorkerFailure": True}, {"isWorkerFailure": False}]
    far.tasks[f"/{TRAIN}"] = [far.task(TRAIN, "running", currentAttemptId=3, attempts=lost)]
    found = await sighted(far)
    assert isinstance(found, Seen)
    assert found.facts.reason == "2 preemptions, 1 worker failure, 1 failed attempt"
    assert found.facts.restarts == 3


async def test_an_end_is_not_told_before_its_tasks_are_read() -> None:
    far = Controller()
    far.submit(TRAIN, BORN)
    far.end(TRAIN, "failed", NOW, exit_code=3)
    gone = TransientTransportError("reset")
    far.broken = lambda method, _: gone if method == "ListTasks" else None
    poll = await polled(far, ask())
    assert poll.sightings[TRAIN] == Unreachable("reset")
    assert poll.trouble == "reset"


async def test_an_end_is_told_without_tasks_where_they_are_declined() -> None:
    far = Controller()
    far.submit(TRAIN, BORN)
    far.end(TRAIN, "failed", NOW, exit_code=3)
    no = error(500, "internal", "no tasks")
    far.broken = lambda method, _: no if method == "ListTasks" else None
    poll = await polled(far, ask())
    found = poll.sightings[TRAIN]
    assert isinstance(found, Seen)
    assert (found.state, found.facts.exit_code) == (State.FAILED, None)
    assert poll.trouble is None
    assert "no tasks" in poll.complaints[0]


async def test_environment_and_secrets_of_a_job_go_nowhere() -> None:
    far = Controller()
    far.submit(TRAIN, BORN)
    assert "hush" not in repr(await polled(far, ask()))


# -- gone, young, replaced -------------------------------------------------------------------------


async def test_a_record_that_is_gone() -> None:
    far = Controller()
    far.submit("alice/other", BORN)
    poll = await polled(far, ask(), ask("alice/other"))
    assert poll.sightings[TRAIN] == Gone("record-gone", message="last seen RUNNING")
    assert isinstance(poll.sightings["alice/other"], Seen)
    assert poll.trouble is None


async def test_gone_is_believed_only_from_the_controller_itself() -> None:
    """An empty object can come from anywhere; `not_found` has the job's name in it."""
    far = Controller()
    page = HttpAnswer(404, {"content-type": "text/html"}, b"<html>")
    far.broken = lambda method, _: ok({}) if method == "GetJobState" else page
    found = await sighted(far)
    assert isinstance(found, Unreachable)
    assert "404" in found.error


@pytest.mark.parametrize("minutes", [0, 9])
async def test_a_young_job_is_not_missed_yet(minutes: int) -> None:
    born = NOW - timedelta(minutes=minutes)
    young = ask(birth=None, state=None, facts=Facts(), added_at=born)
    assert isinstance(await sighted(Controller(), young), Unreachable)
    old = ask(birth=None, state=None, facts=Facts(), added_at=NOW - timedelta(minutes=10))
    assert await sighted(Controller(), old) == Gone("record-gone")
    known = ask(added_at=born, facts=Facts(submitted_at=born))
    assert isinstance(await sighted(Controller(), known), Gone)


async def test_a_lost_job_stays_lost_without_a_further_call() -> None:
    far = Controller()
    poll = await polled(far, ask(state=State.LOST))
    assert poll.sightings[TRAIN] == Gone("record-gone")
    assert dict(poll.calls) == {"GetJobState": 1}


async def test_a_name_submitted_again() -> None:
    far = Controller()
    far.submit(TRAIN, NOW - timedelta(minutes=5))
    found = await sighted(far, ask(facts=Facts(name="train", exit_code=1, submitted_at=BORN)))
    assert isinstance(found, Seen)
    assert (found.state, found.birth) == (
        State.RUNNING,
        ms(NOW - timedelta(minutes=5))["epochMs"],
    )
    (before,) = found.previous
    assert (before.birth, before.state, before.native) == (BIRTH, State.LOST, "record-replaced")
    assert before.facts.ended_at == NOW - timedelta(minutes=5)
    assert before.facts.exit_code is None


async def test_an_earlier_submission_is_not_the_job() -> None:
    far = Controller()
    far.submit(TRAIN, BORN - timedelta(hours=1))
    found = await sighted(far)
    assert found == Unreachable("the controller shows an earlier submission of it")


# -- running without a task ------------------------------------------------------------------------


def hollow(far: Controller) -> None:
    far.submit(TRAIN, BORN, taskStateCounts={"succeeded": 1})
    far.tasks[f"/{TRAIN}"] = [far.task(TRAIN, "succeeded")]


async def looked(backend: IrisBackend, minutes: int, one: Ask | None = None) -> Sighting:
    at = NOW + timedelta(minutes=minutes)
    poll = await backend.poll([one or ask()], since=at, now=at, timeout_s=60)
    return poll.sightings[TRAIN]


async def test_running_without_a_task_is_the_end_at_the_third_look() -> None:
    far = Controller()
    hollow(far)
    backend = source(far)
    for look in (0, 15):
        found = await looked(backend, look)
        assert isinstance(found, Seen)
        assert found.state is State.RUNNING
        assert "running without a task" in (found.facts.reason or "")
    assert await looked(backend, 30) == Gone("no-pods")


async def test_looks_in_quick_succession_are_no_proof() -> None:
    far = Controller()
    hollow(far)
    backend = source(far)
    for look in range(6):
        assert isinstance(await looked(backend, look), Seen)


async def test_a_task_that_lives_again_begins_the_count_anew() -> None:
    far = Controller()
    hollow(far)
    backend = source(far)
    await looked(backend, 0)
    await looked(backend, 15)
    far.submit(TRAIN, BORN)
    assert isinstance(await looked(backend, 30), Seen)
    hollow(far)
    assert isinstance(await looked(backend, 45), Seen)


async def test_an_outage_between_two_looks_is_no_look_and_forgets_none() -> None:
    far = Controller()
    hollow(far)
    backend = source(far)
    await looked(backend, 0)
    await looked(backend, 15)
    for method in ("GetJobState", "GetJobStatus", "ListTasks"):
        down = TransientTransportError("down")
        far.broken = lambda name, _, it=method, down=down: down if name == it else None
        assert isinstance(await looked(backend, 30), Unreachable)
    far.broken = None
    assert await looked(backend, 45) == Gone("no-pods")


async def test_tasks_have_the_last_word_over_counts() -> None:
    far = Controller()
    hollow(far)
    far.tasks[f"/{TRAIN}"] = [far.task(TRAIN, "assigned")]
    backend = source(far)
    for look in (0, 15, 30, 45):
        assert isinstance(await looked(backend, look), Seen)


@pytest.mark.parametrize(
    "more",
    [
        {"peerStatus": "PEER_STATUS_SYNCED"},
        {"taskStateCounts": {"swapped": 1}},
        {"taskCount": 0},
        {"state": "JOB_STATE_PENDING"},
    ],
)
async def test_counts_that_prove_nothing(more: dict[str, Any]) -> None:
    far = Controller()
    hollow(far)
    far.jobs[f"/{TRAIN}"] |= more
    backend = source(far)
    for look in (0, 15, 30, 45):
        assert isinstance(await looked(backend, look), Seen)


async def test_a_job_lost_without_tasks_stays_so_after_a_restart() -> None:
    far = Controller()
    hollow(far)
    assert await looked(source(far), 60, ask(state=State.LOST)) == Gone("no-pods")


# -- child jobs ------------------------------------------------------------------------------------


async def test_child_jobs_are_counted_and_failed_ones_named() -> None:
    far = Controller()
    far.submit(TRAIN, BORN, hasChildren=True)
    for name, state in (("a", "running"), ("b", "failed"), ("c", "succeeded")):
        far.submit(f"{TRAIN}/{name}", BORN, state, parentJobId=f"/{TRAIN}")
    found = await sighted(far)
    assert isinstance(found, Seen)
    assert found.facts.reason == "child jobs: 1 failed, 1 running, 1 succeeded (alice/train/b)"
    child = await sighted(far, ask(f"{TRAIN}/b", birth=None))
    assert isinstance(child, Seen)
    assert (child.facts.name, child.facts.user) == ("train/b", "alice")


async def test_more_child_jobs_than_one_answer_lists() -> None:
    far = Controller()
    far.submit(TRAIN, BORN, hasChildren=True)
    for n in range(501):
        far.submit(f"{TRAIN}/{n}x", BORN, "succeeded", parentJobId=f"/{TRAIN}")
    found = await sighted(far)
    assert isinstance(found, Seen)
    assert found.facts.reason == "child jobs (the newest 500 of 501): 500 succeeded"
    assert found.facts.progress == found.facts.reason


# -- many jobs -------------------------------------------------------------------------------------


async def test_a_thousand_jobs_of_a_user_cost_a_list_and_not_a_thousand_calls() -> None:
    far = Controller()
    asks = [ask(f"alice/j{n}") for n in range(1000)]
    for one in asks:
        far.submit(one.native_id, BORN)
    poll = await polled(far, *asks, users=("alice",))
    assert all(isinstance(s, Seen) for s in poll.sightings.values())
    assert dict(poll.calls) == {"GetJobState": 2, "ListJobs": 2}


async def test_what_is_found_lives_or_ended_lately() -> None:
    far = Controller()
    far.submit("alice/new", NOW)
    far.submit("alice/waits", NOW, "pending")
    far.submit("alice/just", BORN)
    far.end("alice/just", "succeeded", NOW - timedelta(minutes=5))
    far.submit("alice/old", BORN)
    far.end("alice/old", "succeeded", NOW - timedelta(minutes=30))
    far.submit("alice/new/child", NOW, parentJobId="/alice/new")
    far.submit("alicia/other", NOW)
    far.submit(TRAIN, BORN)
    poll = await polled(far, ask(), users=("alice",))
    assert {native for native, _ in poll.found} == {"alice/new", "alice/waits", "alice/just"}


async def test_a_list_has_an_end_and_says_so() -> None:
    far = Controller()
    for n in range(501):
        far.submit(f"alice/j{n}", NOW)
    poll = await polled(far, users=("alice",), max_pages=1)
    assert len(poll.found) == 500
    assert poll.complaints == ("alice has more than 500 jobs: older ones are not found",)


async def test_a_list_that_is_declined_loses_no_tracked_job() -> None:
    far = Controller()
    far.submit(TRAIN, BORN)
    no = error(500, "unknown", "Failed to parse query field")
    far.broken = lambda method, _: no if method == "ListJobs" else None
    poll = await polled(far, ask(), users=("alice",))
    assert isinstance(poll.sightings[TRAIN], Seen)
    assert "Failed to parse" in poll.complaints[0]


async def test_one_id_that_is_none_spoils_nothing() -> None:
    far = Controller()
    far.submit(TRAIN, BORN)
    poll = await polled(far, ask(), ask("train"), ask("alice/train/0"))
    assert isinstance(poll.sightings[TRAIN], Seen)
    assert "write user/job" in str(poll.sightings["train"])
    assert "is a task of an iris job" in str(poll.sightings["alice/train/0"])
    assert far.asked[0] == ("GetJobState", {"jobIds": ["/alice/train"]})


async def test_a_sweep_without_time_asks_the_late_ones_first_next_time() -> None:
    far = Controller()
    clock = FixedClock()
    backend = IrisBackend(far, clock, url="http://iris")
    asks = [ask(f"alice/{n}") for n in "abc"]
    for one in asks:
        far.submit(one.native_id, BORN)

    def slow(method: str, question: object) -> None:
        clock.move(20)

    far.broken = slow
    poll = await backend.poll(asks, since=NOW, now=NOW, timeout_s=50)
    assert [type(poll.sightings[a.native_id]) for a in asks] == [Seen, Seen, Unreachable]
    assert poll.trouble is None
    far.asked.clear()
    await backend.poll(asks, since=NOW, now=NOW, timeout_s=50)
    assert far.asked[1] == ("GetJobStatus", {"jobId": "/alice/c"})


# -- ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("native", ["alice/train", "alice/a/b/c", "al.ice/x:y 1", "a/b/1x", "a/7"])
def test_ids(native: str) -> None:
    assert source(Controller()).valid_id(native) is None


@pytest.mark.parametrize(
    "native",
    ["", "train", "/alice/train", "alice/", "alice//x", "a/ /b", "a/b\n", "a/\x1b[2J", "a/b/3",
     "4711", "a/" + "x" * 500, "a/\u202ex", "a/\udc80"],
)  # fmt: skip
def test_what_is_no_id(native: str) -> None:
    said = source(Controller()).valid_id(native)
    assert said is not None
    assert "\n" not in said
    assert said.isprintable()


# -- trouble ---------------------------------------------------------------------------------------

HTML = HttpAnswer(200, {"content-type": "text/html"}, b"<html><body>Sign in</body></html>")
TROUBLE = {
    "html": HTML,
    "gateway": HttpAnswer(502, {"content-type": "text/html"}, b"<html>Bad Gateway</html>"),
    "empty": HttpAnswer(503, {}, b""),
    "cut": HttpAnswer(200, {}, b'{"states": {"/alice/train": "JOB_STATE_FA'),
    "list": ok([]),
    "states": ok({"states": []}),
    "deep": HttpAnswer(200, {}, b'{"a":' * 100_000),
    "login": HttpAnswer(302, {"location": "https://accounts.example/"}, b""),
    "throttled": error(429, "resource_exhausted", "slow down"),
    "internal": error(500, "internal", "database is locked"),
    "not there": HttpAnswer(404, {"content-type": "text/plain"}, b"404"),
    "refused": TransientTransportError("the receiver refused the connection"),
}


@pytest.mark.parametrize("name", TROUBLE)
async def test_trouble_moves_no_job(name: str) -> None:
    far = Controller(broken=TROUBLE[name])
    far.submit(TRAIN, BORN)
    poll = await polled(far, ask(), ask("alice/gone"), users=("alice",))
    assert {type(s) for s in poll.sightings.values()} == {Unreachable}
    assert poll.trouble
    assert "\n" not in poll.trouble
    assert not poll.needs_login
    assert len(far.asked) == 1


@pytest.mark.parametrize("name", TROUBLE)
async def test_trouble_in_the_middle_moves_no_job(name: str) -> None:
    far = Controller()
    far.broken = lambda method, _: TROUBLE[name] if method == "GetJobStatus" else None
    for job in ("alice/a", "alice/b"):
        far.submit(job, BORN)
        far.end(job, "failed", NOW)
    poll = await polled(far, ask("alice/a"), ask("alice/b"), ask("alice/c"))
    assert {type(s) for s in poll.sightings.values()} == {Unreachable}


@pytest.mark.parametrize("status", [401, 403, 407])
async def test_who_asks_is_refused(status: int) -> None:
    far = Controller(broken=error(status, "unauthenticated", "token sk-abcdefghijklmnopqrstuv1234"))
    poll = await polled(far, ask(), remedy="write a header")
    assert isinstance(poll.sightings[TRAIN], Unreachable)
    assert (poll.needs_login, poll.remedy) == (True, "write a header")
    assert "sk-abcdefghijklmnopqrstuv1234" not in repr(poll)


async def test_a_header_that_cannot_be_had() -> None:
    far = Controller(broken=NeedsPersonError("auth_command token ended with 1", remedy="token"))
    poll = await polled(far, ask())
    assert (poll.needs_login, poll.remedy) == (True, "token")


async def test_an_answer_that_is_too_long_is_none() -> None:
    far = Controller()
    far.submit(TRAIN, BORN)
    poll = await polled(far, ask(), max_bytes=20)
    assert poll.trouble == "GetJobState: the answer has more than 20 bytes"


async def test_an_answer_about_another_job_is_none() -> None:
    far = Controller()
    far.submit(TRAIN, BORN)
    other = ok({"job": {**far.jobs[f"/{TRAIN}"], "jobId": "/alice/other"}})
    far.broken = lambda method, _: other if method == "GetJobStatus" else None
    assert isinstance(await sighted(far), Unreachable)


async def test_hostile_text_is_harmless() -> None:
    far = Controller()
    job = far.submit(TRAIN, BORN)
    far.end(TRAIN, "failed", NOW, why="\x1b[2Jgone\nsecond \u202eline " + "x" * 10_000)
    job["startedAt"] = {"epochMs": "9" * 17}
    found = await sighted(far)
    assert isinstance(found, Seen)
    assert found.facts.reason is not None
    assert found.facts.reason.isprintable()
    assert len(found.facts.reason) <= 500
    assert found.facts.started_at is None
    json.dumps(found.native)
