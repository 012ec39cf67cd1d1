"""What is kept of a tree between two looks."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.harbor import JobResult
from jobmond.analysis.treestate import (
    Entry,
    FoundEntry,
    FoundJob,
    FoundTree,
    JobMemory,
    TreeMemory,
    absorbed,
    known,
    put_down,
    taken_up,
    trials_of,
)
from jobmond.model.trials import Trial
from tests.trees import result

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
DONE = Trial("x", 1.0, turns=3, turns_source="episodes", output_tokens=5, duration_s=2.5)


def entry(mtime, trial=DONE, stamp="7.5"):
    return Entry(mtime, stamp, mtime if trial else 0, trial)


def found(*entries, now=10_000, **changes):
    job = FoundJob(".", "key", **{"count": len(entries), "entries": entries, **changes})
    return FoundTree(now, (job,))


class TestWhatTheFarSideIsTold:
    def test_nothing_known(self):
        assert known(JobMemory()).watermark == 0
        assert not known(JobMemory()).entries

    def test_only_folders_near_the_newest_are_named(self):
        memory = JobMemory(entries={"old": entry(1000), "near": entry(4701), "new": entry(5000)})
        told = known(memory)
        assert told.watermark == 4700
        assert told.entries == [(4701, "7.5", "near"), (5000, "7.5", "new")]

    def test_what_has_no_result_yet_is_always_looked_at(self):
        memory = JobMemory(entries={"a": entry(5000), "b": entry(100, None)})
        assert known(memory).entries == [(5000, "7.5", "a"), (0, "0", "b")]

    def test_everything_is_named_after_a_count_that_does_not_add_up(self):
        memory = JobMemory(entries={"a": entry(5000), "b": entry(100)}, checked=False)
        told = known(memory)
        assert (told.watermark, len(told.entries)) == (0, 2)

    def test_the_key_only_once_nothing_can_have_changed(self):
        memory = JobMemory(key="k", settled=True, entries={"a": entry(5000)})
        assert known(memory).key == "k"
        assert known(JobMemory(key="k", settled=False)).key == ""

    def test_trajectories_where_results_do_not_say_their_turns(self):
        bare = Trial("a", 1.0)
        told = known(JobMemory(settled=True, key="k", entries={"a": entry(5, bare)}))
        assert (told.turns, told.key, told.entries) == (True, "", [(0, "0", "a")])
        looked = Trial("a", 1.0, turns_source="nowhere")
        told = known(JobMemory(settled=True, key="k", entries={"a": entry(5, looked)}))
        assert (told.turns, told.key, told.entries) == (True, "k", [(5, "7.5", "a")])


class TestALook:
    def test_what_is_new_joins_what_was_known(self):
        memory = TreeMemory({".": JobMemory(entries={"a": entry(10)})})
        fresh = FoundEntry("b", 20, "8.1", 21, result("b"))
        after = absorbed(memory, found(fresh, count=2))
        assert sorted(after.jobs["."].entries) == ["a", "b"]
        assert after.jobs["."].checked

    def test_a_count_that_does_not_add_up_is_noticed(self):
        memory = TreeMemory({".": JobMemory(entries={"a": entry(10)})})
        assert not absorbed(memory, found(count=2)).jobs["."].checked
        assert absorbed(memory, found(count=0, gone=("a",))).jobs["."].checked
        assert absorbed(memory, found(count=3, later=2)).jobs["."].checked

    @pytest.mark.parametrize(
        ("changes", "settled"),
        [
            ({}, True),
            ({"written_at": 9_950}, False),
            ({"written_at": 0}, False),
            ({"root": None}, False),
            ({"later": 1, "count": 1}, False),
            ({"count": 1}, False),
        ],
    )
    def test_settled_is_what_nothing_can_have_changed_in(self, changes, settled):
        options = {"written_at": 9_000, "root": {"n_total_trials": 3}, **changes}
        assert absorbed(TreeMemory(), found(**options)).jobs["."].settled is settled

    def test_the_same_is_the_same(self):
        memory = TreeMemory({".": JobMemory("key", True, entries={"a": entry(10)})}, chunks=2)
        look = FoundTree(1, (FoundJob(".", "key", same=True),), chunks=3)
        assert absorbed(memory, look) == TreeMemory(memory.jobs, 3)

    def test_a_job_that_is_gone_is_forgotten(self):
        memory = TreeMemory({"a": JobMemory(), "b": JobMemory()})
        assert set(absorbed(memory, FoundTree(1, (FoundJob("b", ""),))).jobs) == {"b"}

    def test_ages_are_of_the_far_sides_clock(self):
        memory = TreeMemory({".": JobMemory(entries={"a": entry(1000), "b": entry(1060)})})
        trials = trials_of(memory, far_now=4660, now=NOW)
        assert trials.last_result_at == NOW - timedelta(hours=1)
        assert trials_of(memory, far_now=1, now=NOW).last_result_at == NOW
        assert trials_of(TreeMemory({".": JobMemory()}), far_now=1, now=NOW).last_result_at is None


RESULTS = st.builds(
    JobResult, total=st.none() | st.integers(0, 9), done=st.none() | st.integers(0, 9),
    exceptions=st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2),
    rewards=st.dictionaries(st.floats(0, 1), st.integers(0, 9), max_size=3),
    mean=st.none() | st.floats(0, 1), basis=st.none() | st.just("all-trials"),
    finished=st.booleans(), evals=st.lists(st.text(max_size=3), max_size=2).map(tuple),
)  # fmt: skip


def named(every):
    """Trials are called like their folders."""
    return {n: replace(e, trial=e.trial and Trial(n, 0.5)) for n, e in every.items()}


ENTRIES = st.dictionaries(
    st.text(max_size=5), st.sampled_from([entry(5, None), entry(7)]), max_size=3
).map(named)
MEMORIES = st.builds(
    TreeMemory, st.dictionaries(st.text(max_size=3), st.builds(
        JobMemory, key=st.text(max_size=3), settled=st.booleans(), checked=st.booleans(),
        result=st.none() | RESULTS, entries=ENTRIES, unread=st.integers(0, 3)), max_size=2),
    st.none() | st.integers(0, 9), st.text(max_size=3),
)  # fmt: skip


@given(MEMORIES)
def test_put_down_and_taken_up(memory):
    assert taken_up(json.loads(json.dumps(put_down(memory)))) == memory


def test_what_another_version_put_down_is_begun_again():
    assert taken_up(None) == TreeMemory()
    assert taken_up({"version": 0}) == TreeMemory()
