"""One sweep, one transaction, and people's word stands."""

from dataclasses import replace
from datetime import datetime

import pytest
from sqlalchemy import event

from jobmond.errors import StoreError
from jobmond.model.commit import JobChange
from jobmond.model.job import Choices
from jobmond.model.observation import Facts
from jobmond.model.outcome import Followup, Signal
from jobmond.model.state import Bucket, Kind, PostMortem, Severity, State


def only(store, make):
    (job,) = store.jobs(recent_since=make.at(-10_000))
    return job


def ended(job, state, make, **changes):
    return replace(
        job, state=state, native=state.value, tracked=False, ended_at=make.at(5), **changes
    )


def test_a_commit_repeated_tells_and_owes_nothing_twice(store, make):
    sweep = make.sweep(
        JobChange(make.job(transitions=1), (make.step(State.RUNNING),)),
        news=(make.news("a"), make.news("b")),
        deliveries=(make.delivery("a"), make.delivery("b"), make.delivery("a", "team")),
        opened=(Followup(0, "cleanup", "leo/4711", "t", make.noon),),
    )
    store.commit(sweep)
    store.commit(sweep)
    assert [n.key for n in store.events()] == ["a", "b"]
    assert [d.key for d in store.due("news", make.noon, 10)] == ["a", "b"]
    assert [d.key for d in store.due("team", make.noon, 10)] == ["a"]
    assert len(store.followups()) == 1
    assert len(store.jobs(recent_since=make.noon)) == 1


def test_a_key_delivered_before_is_not_owed_again(store, make):
    store.commit(make.sweep(deliveries=(make.delivery("a"),)))
    store.delivered([1], make.noon)
    store.commit(make.sweep(deliveries=(make.delivery("a"), make.delivery("b"))))
    assert [d.key for d in store.due("news", make.noon, 10)] == ["b"]


def test_nothing_of_a_failed_commit_is_written(store, make):
    store.commit(make.sweep(make.job()))
    job = only(store, make)
    bad = make.sweep(
        ended(job, State.FAILED, make),
        news=(make.news("a"),),
        deliveries=(make.delivery("a"),),
        health=make.health(since=datetime(2026, 11, 29)),
    )
    with pytest.raises(StoreError):
        store.commit(bad)
    assert store.job(job.id) == job
    assert store.events() == ()
    assert store.outbox_sinks() == ()


def test_choices_made_during_a_sweep_stand(store, make):
    store.commit(make.sweep(make.job()))
    loaded = only(store, make)
    mine = Choices(name="mine", bucket=Bucket.SFT, labels_added=frozenset({"no-kill"}))
    place = make.classified("other", bucket=Bucket.SFT, type="sft", labels=frozenset({"no-kill"}))
    store.choose(loaded.id, mine, place)
    store.commit(make.sweep(replace(loaded, state=State.PENDING, note="swept", life=9)))
    kept = only(store, make)
    assert kept.choices == mine
    assert (kept.bucket, kept.type, kept.run, kept.life) == (Bucket.SFT, "sft", "other", 1)
    assert kept.labels == {"no-kill"}
    assert kept.note is None
    assert kept.state is State.PENDING
    assert store.find("mine") == (kept,)


def test_without_a_new_choice_the_sweep_places_the_job(store, make):
    store.commit(make.sweep(make.job()))
    loaded = only(store, make)
    store.commit(
        make.sweep(
            replace(
                loaded,
                bucket=Bucket.EVAL,
                type="eval",
                run="e",
                life=1,
                labels=frozenset({"x"}),
                note="n",
            )
        )
    )
    kept = only(store, make)
    assert (kept.bucket, kept.type, kept.run, kept.note) == (Bucket.EVAL, "eval", "e", "n")
    assert kept.labels == {"x"}


def test_a_job_untracked_during_a_sweep_stays_untracked_and_its_end_is_recorded(store, make):
    store.commit(make.sweep(make.job()))
    loaded = only(store, make)
    store.untrack(loaded.id, by="alice", now=make.at(1))
    store.commit(make.sweep(replace(loaded, seen_at=make.at(2)), minute=2))
    assert not store.job(loaded.id).tracked
    assert store.snapshot("leo", correct_since=make.noon).jobs == ()
    store.commit(make.sweep(ended(loaded, State.FAILED, make), minute=3))
    assert store.job(loaded.id).state is State.FAILED


def test_a_requeue_of_a_job_untracked_during_the_sweep_is_not_tracked(store, make):
    store.commit(make.sweep(make.job()))
    loaded = only(store, make)
    store.untrack(loaded.id, by="alice", now=make.at(1))
    child = make.job(birth="later", life=2, predecessor=loaded.id)
    store.commit(make.sweep(ended(loaded, State.PREEMPTED, make), child))
    assert [job.tracked for job in store.lives("train", "leo")] == [False, False]


def test_a_discovered_successor_is_tracked_whatever_happened_to_its_predecessor(store, make):
    store.commit(make.sweep(make.job()))
    loaded = only(store, make)
    store.untrack(loaded.id, by="alice", now=make.at(1))
    child = make.job("4712", life=2, predecessor=loaded.id, discovered=True)
    store.commit(make.sweep(ended(loaded, State.TIMEOUT, make), child))
    assert store.lives("train", "leo")[1].tracked


def test_a_deleted_job_is_not_resurrected(store, make):
    store.commit(make.sweep(ended(make.job(), State.FAILED, make)))
    loaded = only(store, make)
    store.expire(make.at(60 * 24), history_keep=make.at(1) - make.noon)
    change = JobChange(loaded, (make.step(State.COMPLETED, State.LOST),))
    store.commit(make.sweep(change, make.job("4712", predecessor=loaded.id)))
    (left,) = store.jobs(recent_since=make.noon)
    assert (left.native_id, left.predecessor) == ("4712", None)


def test_a_requeue_moves_tracking_to_the_newer_incarnation(store, make):
    store.commit(make.sweep(make.job()))
    first = only(store, make)
    child = make.job(birth="later", life=2, predecessor=first.id, state=State.PENDING)
    store.commit(
        make.sweep(
            JobChange(ended(first, State.NODE_FAIL, make), (make.step(State.NODE_FAIL),)),
            JobChange(child, (make.step(State.PENDING),)),
        )
    )
    old, new = store.lives("train", "leo")
    assert (old.state, old.tracked) == (State.NODE_FAIL, False)
    assert (new.state, new.tracked, new.predecessor) == (State.PENDING, True, first.id)
    assert store.superseded([old, new]) == {old.id}
    assert store.find("leo/4711") == (new,)
    assert store.find("leo/4711@1764400000") == (old,)
    assert len(store.transitions(new.id)) == 1


def test_a_successor_tracked_as_its_own_run_joins_its_predecessors(store, make):
    store.commit(make.sweep(make.job("1"), make.job("2", run="train_2", life=1)))
    first, second = store.jobs(recent_since=make.noon)
    store.commit(
        make.sweep(
            ended(first, State.TIMEOUT, make, successor="leo/2"),
            replace(second, run="train", life=2, predecessor=first.id),
        )
    )
    assert [job.native_id for job in store.lives("train", "leo")] == ["1", "2"]
    assert store.job(second.id).predecessor == first.id
    assert store.snapshot("leo", correct_since=make.noon).lives == {"train": 2}


def test_joining_a_run_survives_a_label_given_meanwhile_but_not_a_run_given_meanwhile(store, make):
    store.commit(
        make.sweep(make.job("1"), make.job("2", run="b"), make.job("3", run="c", birth="z"))
    )
    first, second, third = store.jobs(recent_since=make.noon)
    label = Choices(labels_added=frozenset({"x"}))
    store.choose(second.id, label, make.classified("b", labels=frozenset({"x"})))
    store.choose(third.id, Choices(run="mine"), make.classified("mine"))
    store.commit(
        make.sweep(
            replace(second, run="train", life=2, predecessor=first.id),
            replace(third, run="train", life=3, predecessor=first.id),
        )
    )
    assert (store.job(second.id).run, store.job(second.id).life) == ("train", 2)
    assert store.job(second.id).labels == {"x"}
    assert (store.job(third.id).run, store.job(third.id).life) == ("mine", 1)


def test_what_a_sweep_finds_and_a_person_adds_meanwhile_is_one_job(store, make):
    mine = Choices(owner="alice", name="mine")
    added = store.add(
        "leo", Kind.SLURM, "4711", choices=mine, classified=make.classified(), now=make.noon
    )
    found = make.job(discovered=True, run="train", bucket=Bucket.EVAL)
    store.commit(make.sweep(JobChange(found, (make.step(State.RUNNING),))))
    kept = only(store, make)
    assert kept.id == added.job.id
    assert (kept.birth, kept.state, kept.transitions) == ("1764400000", State.RUNNING, 1)
    assert (kept.choices, kept.bucket, kept.discovered) == (mine, Bucket.RL, False)


def test_a_readded_id_that_proves_to_be_the_ended_life_is_folded_into_it(store, make):
    store.commit(make.sweep(ended(make.job(), State.FAILED, make, agent_log="/entry.md")))
    old = only(store, make)
    again = store.add(
        "leo",
        Kind.SLURM,
        "4711",
        choices=Choices(name="mine", labels_added=frozenset({"x"})),
        classified=make.classified(),
        now=make.at(9),
    ).job
    assert again.id != old.id
    seen = ended(replace(again, birth=old.birth, first_seen_at=make.noon), State.FAILED, make)
    store.commit(make.sweep(JobChange(seen, (make.step(State.FAILED),))))
    kept = only(store, make)
    assert kept == replace(
        old, choices=Choices(name="mine", labels_added=frozenset({"x"})), labels=frozenset({"x"})
    )
    assert store.job(again.id) is None
    assert store.transitions(old.id) == ()


def test_a_lost_job_that_turns_up_alive_under_a_second_add_is_tracked_again(store, make):
    store.commit(make.sweep(ended(make.job(), State.LOST, make)))
    old = only(store, make)
    again = store.add(
        "leo",
        Kind.SLURM,
        "4711",
        choices=Choices(),
        classified=make.classified(),
        now=make.at(9),
    ).job
    alive = replace(again, birth=old.birth, state=State.RUNNING, native="RUNNING")
    store.commit(make.sweep(JobChange(alive, (make.step(State.RUNNING, State.LOST),))))
    kept = only(store, make)
    assert (kept.id, kept.state, kept.tracked) == (old.id, State.RUNNING, True)
    assert len(store.transitions(old.id)) == 1


def test_a_lost_job_can_be_corrected_back_to_life(store, make):
    store.commit(make.sweep(ended(make.job(), State.LOST, make)))
    (lost,) = store.snapshot("leo", correct_since=make.at(5)).jobs
    assert store.snapshot("leo", correct_since=make.at(6)).jobs == ()
    store.commit(
        make.sweep(replace(lost, state=State.RUNNING, tracked=True, ended_at=None), minute=9)
    )
    assert only(store, make).tracked


def test_a_lost_job_is_not_tracked_again_where_a_newer_one_has_its_id(store, make):
    store.commit(make.sweep(ended(make.job(), State.LOST, make)))
    lost = only(store, make)
    store.commit(make.sweep(make.job(birth="new", life=2)))
    store.commit(make.sweep(replace(lost, state=State.RUNNING, tracked=True)))
    assert [job.tracked for job in store.lives("train", "leo")] == [False, True]


def test_two_new_incarnations_of_one_id_leave_the_newest_tracked(store, make):
    store.commit(make.sweep(make.job(birth="1"), make.job(birth="2", life=2)))
    assert [(job.birth, job.tracked) for job in store.lives("train", "leo")] == [
        ("1", False),
        ("2", True),
    ]


def test_a_life_taken_meanwhile_becomes_the_next_one(store, make):
    store.add(
        "leo",
        Kind.SLURM,
        "1",
        choices=Choices(owner="a"),
        classified=make.classified(),
        now=make.noon,
    )
    store.commit(make.sweep(make.job("2", life=1), make.job("3", life=2)))
    assert [(j.native_id, j.life) for j in store.lives("train", "leo")] == [
        ("1", 1),
        ("2", 2),
        ("3", 3),
    ]


def test_the_snapshot_holds_what_is_still_of_interest(store, make):
    store.commit(
        make.sweep(
            make.job("1"),
            ended(make.job("2", life=2), State.FAILED, make, post_mortem=PostMortem.PENDING),
            ended(make.job("3", life=3), State.FAILED, make, post_mortem=PostMortem.DONE),
            ended(make.job("4", life=4), State.LOST, make),
            replace(ended(make.job("5", life=5), State.LOST, make), ended_at=make.at(-60)),
        )
    )
    store.commit(replace(make.sweep(make.job("6", cluster="jup")), cluster="jup"))
    snapshot = store.snapshot("leo", correct_since=make.noon)
    assert [job.native_id for job in snapshot.jobs] == ["1", "2", "4"]
    assert snapshot.lives == {"train": 5}
    assert store.snapshot("jup", correct_since=make.noon).lives == {"train": 1}


def test_a_cluster_never_swept_has_an_empty_snapshot(store, make):
    snapshot = store.snapshot("new", correct_since=make.noon)
    assert (snapshot.jobs, snapshot.health, snapshot.lives) == ((), None, {})


def test_known_names_every_incarnation_ever_stored(store, make):
    store.commit(
        make.sweep(
            ended(make.job(birth="1"), State.FAILED, make),
            make.job(birth="2", life=2),
            make.job("5", kind=Kind.LOCAL),
        )
    )
    found = store.known("leo", Kind.SLURM, ["4711", "5", "no"])
    assert found == {("4711", "1"), ("4711", "2")}
    assert store.known("leo", Kind.SLURM, []) == frozenset()


def test_signals_follow_the_newest_sweep(store, make):
    opened = Signal("stall", Severity.WATCH, "t", {"s": 1}, opened_at=make.noon)
    held = Signal("held", Severity.WATCH, "h", {})
    store.commit(make.sweep(make.job(signals=(opened, held))))
    job = only(store, make)
    cleared = replace(opened, cleared_at=make.at(3))
    store.commit(make.sweep(replace(job, signals=(cleared,))))
    assert only(store, make).signals == (cleared,)
    store.commit(make.sweep(replace(job, signals=())))
    assert only(store, make).signals == ()


def test_followups_are_opened_once_and_closed_by_the_sweep(store, make):
    owed = Followup(0, "cleanup", "leo/4711", "t", make.noon)
    store.commit(make.sweep(opened=(owed, owed, replace(owed, kind="deep-probe"))))
    store.commit(make.sweep(opened=(owed,)))
    assert [f.kind for f in store.followups()] == ["cleanup", "deep-probe"]
    closed = replace(owed, closed_by="jobmond", note="gone", closed_at=make.at(1))
    store.commit(make.sweep(closed=(closed,)))
    assert [f.kind for f in store.followups()] == ["deep-probe"]
    store.commit(make.sweep(opened=(owed,)))
    first, again = (f for f in store.followups(all=True) if f.kind == "cleanup")
    assert (first.state, first.closed_by, first.note) == ("closed", "jobmond", "gone")
    assert (first.closed_at, again.state) == (make.at(1), "open")


def test_calls_count_for_an_hour(store, make):
    calls = {"squeue": 1, "sacct": 1}
    for minute in (0, 30, 59):
        store.commit(make.sweep(minute=minute, calls=calls, logins=1))
    (health,) = store.clusters(make.at(60))
    assert (health.logins_per_h, health.calls_per_h) == (2, 4)
    (health,) = store.clusters(make.at(200))
    assert (health.logins_per_h, health.calls_per_h) == (0, 0)
    assert store.swept_at() == {"leo": make.at(59)}


def test_ten_thousand_jobs_stay_batched(lite, make):
    jobs = [make.job(str(n), run=f"r{n}", facts=Facts(name=f"n{n}")) for n in range(10_000)]
    statements = []
    event.listen(lite._engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    lite.commit(make.sweep(*jobs))
    assert len(statements) < 150
    loaded = lite.snapshot("leo", correct_since=make.noon)
    assert len(loaded.jobs) == 10_000
    statements.clear()
    lite.commit(
        make.sweep(
            *(
                JobChange(replace(job, state=State.PENDING), (make.step(State.PENDING),))
                for job in loaded.jobs
            )
        )
    )
    assert len(statements) < 150
    assert lite.transitions(loaded.jobs[9999].id) == (make.step(State.PENDING),)
