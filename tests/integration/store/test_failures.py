"""What the store remembers of failures: which jobs count, how far back, how many."""

from datetime import timedelta

from jobmond.model.commit import JobChange
from jobmond.model.outcome import Diagnosis
from jobmond.model.state import State

DISK = Diagnosis("disk-full", "no space", fingerprint="disk-full:OSError:-:0a")


def over(make, native_id, minute, state=State.FAILED, found=DISK, **changes):
    return make.job(
        native_id,
        state=state,
        tracked=False,
        ended_at=make.at(minute),
        life=minute,
        diagnosis=found,
        agent_log=f"/a/{native_id}.md",
        **changes,
    )


def test_only_diagnosed_ends_that_are_failures(store, make):
    store.commit(
        make.sweep(
            over(make, "1", 1),
            over(make, "2", 2, found=None),
            over(make, "3", 3, state=State.COMPLETED),
            over(make, "4", 4, state=State.TIMEOUT),
            make.job("5", life=5),
        )
    )
    found = store.failures.since(make.at(0), limit=9)
    assert [(f.ref, f.state, f.cause, f.entry) for f in found] == [
        ("leo/1", State.FAILED, "disk-full", "/a/1.md"),
        ("leo/4", State.TIMEOUT, "disk-full", "/a/4.md"),
    ]
    assert (found[0].run, found[0].name, found[0].at) == ("train", "train", make.at(1))


def test_the_last_ones_since_then_oldest_first(store, make):
    store.commit(make.sweep(*(over(make, str(n), n) for n in range(1, 6))))
    assert [f.ref for f in store.failures.since(make.at(2), limit=2)] == ["leo/4", "leo/5"]
    assert [f.ref for f in store.failures.since(make.at(4), limit=9)] == ["leo/4", "leo/5"]


def test_the_past_of_some_jobs_is_their_clusters_failures_and_their_own_steps(store, make):
    step = make.step(State.FAILED, State.RUNNING, minute=1)
    store.commit(make.sweep(JobChange(over(make, "1", 1), (step,)), make.job("2", life=9)))
    [job] = store.find("leo/1")
    past = store.failures.past("leo", [job.id, 99], since=make.at(0), limit=9)
    assert [f.ref for f in past.failures] == ["leo/1"]
    assert past.transitions == {job.id: (step,)}
    other = store.failures.past("vega", [], since=make.at(0) - timedelta(days=1), limit=9)
    assert (other.failures, other.transitions) == ((), {})
