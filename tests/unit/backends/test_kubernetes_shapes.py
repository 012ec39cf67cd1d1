"""Every record of a real cluster gives the verdict that was written beside it by hand."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jobmond.analysis.resolve import resolve
from jobmond.backends.kubernetes import KubernetesBackend
from jobmond.model.observation import Absent, Ask, Seen
from jobmond.model.state import TERMINAL, Kind, State
from jobmond.sweep.postmortem import autopsy
from tests import kube, kube_shapes
from tests.unit import builders

DAY = timedelta(hours=24)


async def looked(state, ask=None, *, now=kube_shapes.LATER, **options):
    """The sighting of `ml/train`."""
    backend = KubernetesBackend(kube.ApiPort(state), clock=kube.Steady(), **options)
    ask = ask or Ask("ml/train", None, added_at=now - DAY)
    poll = await backend.poll([ask], since=now - DAY, now=now, timeout_s=60)
    assert poll.trouble is None
    return poll.sightings["ml/train"]


def again(ask, seen):
    return replace(ask, birth=seen.birth, state=seen.state, facts=seen.facts)


async def after(state, looks, *, now=kube_shapes.LATER):
    """The sighting after some looks at the same record, a quarter of an hour apart."""
    ask = Ask("ml/train", None, added_at=now - DAY)
    for left in reversed(range(looks)):
        seen = await looked(state, ask, now=now - left * timedelta(minutes=15))
        ask = again(ask, seen)
    return seen


def plain(reason):
    if reason is None:
        return None
    return reason.lower().translate(str.maketrans("", "", "-_: "))


def cause(seen):
    """What is told of an end, where no log is left to be read."""
    if seen.state not in TERMINAL or seen.state is State.COMPLETED:
        return None
    blank = builders.unseen("ml/train", kind=Kind.KUBERNETES)
    ((job, _),) = resolve(blank, seen, now=kube_shapes.LATER, unknown_for=DAY).lives
    told = autopsy(job, Absent(), ended_now=True, agent_logs="/l", sweeps=3, now=kube_shapes.LATER)
    return told.job.diagnosis.cause if told.job.diagnosis else None


def check(seen, want, *, first=False):
    assert isinstance(seen, Seen), seen
    suffix = "_first" if first and "state_first" in want else ""
    states = want.get(f"acceptable_states{suffix}") or [want[f"state{suffix}"]]
    assert seen.state in states
    assert (seen.state in TERMINAL) is want[f"terminal{suffix}" if suffix else "terminal"]
    if not suffix:
        reasons = [plain(one) for one in want.get("acceptable_reasons", [want.get("reason")])]
        assert plain(seen.facts.reason) in reasons
    if seen.state in TERMINAL:
        assert seen.facts.exit_code in want.get("acceptable_exit_codes", [want["exit_code"]])
        assert seen.facts.signal in (want["signal"], None)
        assert cause(seen) in want.get("acceptable_causes", [want["cause"]])
    else:
        assert (seen.facts.exit_code, seen.facts.signal) == (None, None)


SINGLE = kube_shapes.of_kind("record", "job_status", "pod_status")


@pytest.mark.parametrize("key", [k for k in SINGLE if k != "deleted.json#read_after"])
async def test_a_record_as_it_stands(key):
    want = kube_shapes.verdicts()[key]
    seen = await looked(kube_shapes.state_of(key))
    check(seen, want, first=True)
    if "last_exit_code" in want and want["last_exit_code"] and "restarts" in want:
        assert f"last exit code {want['last_exit_code']}" in (seen.facts.message or "") or (
            seen.facts.message is None or seen.facts.reason in (None, "BackoffLimitExceeded")
        )
    if want.get("restarts"):
        assert seen.facts.restarts == want["restarts"]


# A gap of 0.2 s before the controller counts the failure: looked at once, as it was recorded.
GAP = "backoff_gap.json#0.3"
CHANGING = [k for k in SINGLE if "state_first" in kube_shapes.verdicts()[k] and k != GAP]


@pytest.mark.parametrize("key", CHANGING)
async def test_the_same_record_at_the_third_look(key):
    want = kube_shapes.verdicts()[key]
    check(await after(kube_shapes.state_of(key), 3), want)


@pytest.mark.parametrize(
    "key", [k for k in SINGLE if kube_shapes.verdicts()[k].get("zero_pods") == "never"]
)
async def test_no_number_of_looks_without_pods_makes_it_lost(key):
    check(await after(kube_shapes.state_of(key), 10), kube_shapes.verdicts()[key])


@pytest.mark.parametrize("key", [k for k in SINGLE if "joined" in kube_shapes.verdicts()[k]])
async def test_a_job_with_its_pod(key):
    want = kube_shapes.verdicts()[key]["joined"]
    check(await looked(kube_shapes.joined(key)), want)


@pytest.mark.parametrize("key", [k for k in SINGLE if "under_job" in kube_shapes.verdicts()[k]])
async def test_the_end_of_a_pod_is_not_the_end_of_its_job(key):
    want = kube_shapes.verdicts()[key]["under_job"]
    active = {"startTime": "2026-11-29T16:00:00Z", "active": 1, "terminating": 0, "ready": 0}
    seen = await looked(kube_shapes.under_job(key, active))
    assert seen.state in want["acceptable_states"]
    assert seen.state not in TERMINAL
    assert seen.facts.exit_code is None


SEQUENCES = [key.partition("#") for key in kube_shapes.of_kind("sequence")]
HISTORIES = sorted(name for file, _, name in SEQUENCES if file == "real_history.json")


@pytest.mark.parametrize("name", HISTORIES)
async def test_a_pod_over_time(name):
    want = kube_shapes.verdicts()[f"real_history.json#{name}"]
    timeline = want["timeline"]
    ask = Ask("ml/train", None, added_at=kube_shapes.LATER - DAY)
    said = []
    for at, state in kube_shapes.history(name):
        seen = await looked(state, ask)
        ask = again(ask, seen)
        said.append((at, seen.state.value, seen.facts.reason))
    expected = {at: (state, reason) for at, state, reason in timeline}
    for at, state, reason in said:
        if at in expected:
            assert state == expected[at][0], (at, state, reason)
            assert plain(reason) in (plain(expected[at][1]), "running", None), (at, reason)
    check(seen, want)


async def test_a_workload_that_waits_for_quota():
    key = "crd_workloads.json#job-train-1a2b3"
    held = kube_shapes.load("crd_workloads.json")
    held["metadata"]["name"] = "train"
    state = kube.ApiState(kueue=True)
    state.put("workloads", held)
    check(await looked(state), kube_shapes.verdicts()[key])


async def test_an_indexed_job_tells_its_parts():
    want = kube_shapes.verdicts()["indexed_failed_indexes.json"]["tasks"]
    seen = await looked(kube_shapes.state_of("indexed_failed_indexes.json"))
    tasks = seen.facts.tasks
    assert tasks.total == want["total"]
    assert {state.value: count for state, count in tasks.by_state.items()} == want["by_state"]
    assert list(tasks.failed) == want["failed"]


async def test_a_start_time_of_1970_is_none():
    seen = await looked(kube_shapes.state_of("real_nocmd_3.json"))
    assert (seen.facts.started_at, seen.facts.signal) == (None, None)


async def test_the_back_off_of_a_failed_pod_is_waited_for():
    """Ten seconds after the first failure; what comes later counts."""
    key = "failed_pod_job_backing_off.json"
    state = kube_shapes.state_of(key)
    failed_at = kube_shapes.LATER.replace(hour=16, minute=17, second=34)
    ask = Ask("ml/train", None, added_at=failed_at - DAY)
    for _ in range(5):
        seen = await looked(state, ask, now=failed_at + timedelta(seconds=9))
        ask = again(ask, seen)
        check(seen, kube_shapes.verdicts()[key])
        assert seen.facts.misses is None
    for misses in (1, 2):
        seen = await looked(state, ask, now=failed_at + timedelta(seconds=11))
        ask = again(ask, seen)
        assert (seen.state, seen.facts.misses) == (State.RUNNING, misses)
    seen = await looked(state, ask, now=failed_at + timedelta(minutes=10))
    assert seen.state is State.RUNNING  # three looks, and not long enough
    seen = await looked(state, again(ask, seen), now=failed_at + timedelta(seconds=611))
    assert (seen.state, seen.facts.reason) == (State.LOST, "no-pods")
    assert seen.facts.message == "its last pod ended: Error, exit code 3"
