"""Records that no API server should send: one line about them, and never a lost sweep."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobmond.backends.kubernetes import KubernetesBackend
from jobmond.backends.kubernetes.indexes import spans
from jobmond.backends.kubernetes.records import Unreadable, happening, job, pod, workload
from jobmond.model.observation import Ask, Gone, Seen, Unreachable
from tests import kube
from tests.unit.builders import NOW

WORDS = [
    *("metadata", "spec", "status", "name", "namespace", "uid", "labels", "ownerReferences"),
    *("phase", "conditions", "type", "reason", "message", "containerStatuses", "state", "waiting"),
    *("terminated", "running", "exitCode", "restartCount", "lastState", "active", "failed"),
    *("completedIndexes", "failedIndexes", "completionMode", "completions", "startTime", "items"),
    *("deletionTimestamp", "suspend", "managedBy", "nodeName", "annotations", "involvedObject"),
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["True", "False", "Running", "Failed", "Indexed", "0,2-5", "9-1", "1e9"]),
    st.sampled_from(
        ["2026-11-29T16:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
    ),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_a_record_or_unreadable(raw):
    for read in (pod, job, workload, happening):
        try:
            read(raw)
        except Unreadable as odd:
            assert str(odd).isprintable()


def overlaid(base, change):
    """`base` with parts of it replaced."""
    if isinstance(base, dict) and isinstance(change, dict):
        return {**base, **{key: overlaid(base.get(key), value) for key, value in change.items()}}
    return change


SHAPES = st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), JSON, max_size=2)


@settings(max_examples=60)
@given(SHAPES, SHAPES)
def test_no_record_loses_a_sweep(job_change, pod_change):
    state = kube.ApiState(kueue=True)
    active = {"startTime": "2026-11-29T11:00:00Z", "active": 1}
    state.put("jobs", overlaid(kube.job(status=active), job_change), kube.job("other", active))
    state.put("pods", overlaid(kube.pod(status=kube.RUNNING), pod_change))
    state.put("pods", kube.pod("other-x", kube.RUNNING, of="other"))
    backend = KubernetesBackend(kube.ApiPort(state), clock=kube.Steady())
    asks = [Ask(f"ml/{name}", None, NOW - timedelta(days=1)) for name in ("train", "other")]
    poll = asyncio.run(backend.poll(asks, since=NOW, now=NOW, timeout_s=60))
    assert poll.trouble is None
    assert isinstance(poll.sightings["ml/train"], Seen | Gone | Unreachable)
    other = poll.sightings["ml/other"]
    assert isinstance(other, Seen)
    assert other.state.value == "RUNNING"


@pytest.mark.parametrize("text", ["x", "1-", "-1", "1,,2", "1 2", "99999999999", "1-2-3"])
def test_indexes_that_are_none(text):
    with pytest.raises(Unreadable):
        spans(text)


def test_indexes():
    some = spans("0,2-5,9")
    assert [n for n in range(12) if n in some] == [0, 2, 3, 4, 5, 9]
    assert (len(some), some.first(3)) == (6, [0, 2, 3])
    assert (len(spans("")), 0 in spans("")) == (0, False)
