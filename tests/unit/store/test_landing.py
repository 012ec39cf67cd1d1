"""Where a sweep's changes land. Every line of the plan, without a database."""

from dataclasses import replace
from datetime import UTC, datetime

from jobmond.model.commit import JobChange
from jobmond.model.job import Choices, Job
from jobmond.model.observation import Facts
from jobmond.model.outcome import Transition
from jobmond.model.state import Bucket, Kind, State
from jobmond.store.landing import Standing, plan

T = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
STEP = Transition(T, State.RUNNING, State.FAILED, "FAILED")


def job(number=1, **changes):
    blank = Job(
        id=number,
        cluster="leo",
        kind=Kind.SLURM,
        native_id="4711",
        birth="b",
        run="train",
        life=1,
        bucket=Bucket.RL,
        type="rl",
        labels=frozenset(),
        choices=Choices(),
        facts=Facts(),
        state=State.RUNNING,
        native="RUNNING",
        added_at=T,
    )
    return replace(blank, **changes)


def row(number=1, **changes):
    blank = Standing(
        id=number,
        kind=Kind.SLURM,
        native_id="4711",
        birth="b",
        choices=Choices(),
        run="train",
        life=1,
        bucket=Bucket.RL,
        type="rl",
        labels=frozenset(),
        state=State.RUNNING,
        tracked=True,
        discovered=False,
        added_at=T,
        untracked_at=None,
        untracked_by=None,
        transitions=0,
        predecessor=None,
        note=None,
    )
    return replace(blank, **changes)


def landed(*jobs, rows=(), dropped=None):
    return plan([JobChange(one) for one in jobs], rows, dropped or {})


def test_nothing_lands_on_nothing():
    assert landed() == plan([], [], {})
    assert landed(job(7)).landed == []


def test_transitions_are_counted_from_what_is_recorded():
    decided = plan([JobChange(job(transitions=1), (STEP, STEP))], [row(transitions=4)], {})
    assert decided.landed[0].job.transitions == 6


def test_a_birth_once_known_never_changes():
    assert landed(job(birth="other"), rows=[row()]).landed[0].job.birth == "b"
    assert landed(job(birth="new"), rows=[row(birth=None)]).landed[0].job.birth == "new"


def test_a_person_who_untracked_wins_and_a_sweep_that_dropped_may_come_back():
    by_person = row(tracked=False, untracked_by="alice", untracked_at=T)
    by_sweep = row(tracked=False, untracked_at=T)
    (kept,) = landed(job(), rows=[by_person]).landed
    assert (kept.job.tracked, kept.untracked_by) == (False, "alice")
    assert landed(job(), rows=[by_sweep]).landed[0].job.tracked


def test_a_new_job_with_a_stored_birth_is_that_row():
    (kept,) = landed(job(0), rows=[row(5, tracked=False, untracked_by="alice")]).landed
    assert (kept.job.id, kept.job.tracked) == (5, False)


def test_a_new_job_takes_the_row_a_person_added_without_birth():
    waiting = row(5, birth=None, choices=Choices(owner="alice"), bucket=Bucket.SFT)
    (kept,) = landed(job(0, discovered=True), rows=[waiting]).landed
    assert (kept.job.id, kept.job.birth, kept.job.bucket) == (5, "b", Bucket.SFT)
    assert not kept.job.discovered


def test_a_waiting_row_is_taken_once():
    decided = landed(job(0, birth="b"), job(0, birth="c"), rows=[row(5, birth=None)])
    assert [(one.job.id, one.job.birth) for one in decided.landed] == [(5, "b"), (0, "c")]
    assert [one.job.tracked for one in decided.landed] == [False, True]


def test_an_ended_life_found_on_the_way_never_takes_a_waiting_row():
    decided = landed(job(0, tracked=False, birth="old"), rows=[row(5, birth=None)])
    assert decided.landed[0].before is None
    assert decided.displaced == []


def test_another_kind_with_the_same_number_is_another_job():
    decided = landed(job(0), rows=[row(5, kind=Kind.LOCAL)])
    assert decided.landed[0].before is None
    assert decided.displaced == []


def test_a_newer_incarnation_displaces_an_older_tracked_one():
    decided = landed(job(0, birth="new"), rows=[row(5)])
    assert decided.landed[0].job.tracked
    assert decided.displaced == [5]


def test_an_older_incarnation_does_not_displace_a_newer_one():
    decided = landed(job(5), rows=[row(5, tracked=False), row(9, birth="new")])
    assert not decided.landed[0].job.tracked
    assert decided.displaced == []


def test_two_rows_of_one_birth_become_one():
    rows = [row(5, tracked=False, state=State.FAILED), row(9, birth=None)]
    decided = landed(job(9, state=State.FAILED, tracked=False), rows=rows)
    assert decided.folded == {9: 5}
    assert decided.landed == []


def test_a_folded_row_whose_life_goes_on_is_written_to_the_older_row():
    rows = [row(5, tracked=False, state=State.LOST), row(9, birth=None)]
    decided = landed(job(9), rows=rows)
    assert decided.folded == {9: 5}
    assert [(one.job.id, one.job.tracked) for one in decided.landed] == [(5, True)]


def test_a_successor_of_a_folded_row_follows_the_row_that_stays():
    rows = [row(5, tracked=False, state=State.TIMEOUT), row(9, birth=None)]
    child = job(0, native_id="4712", predecessor=9)
    decided = landed(
        job(9, state=State.TIMEOUT, tracked=False), child, rows=rows, dropped={9: None}
    )
    assert decided.landed[0].job.predecessor == 5


def test_a_predecessor_that_is_gone_is_forgotten_and_a_known_one_kept():
    child = job(0, native_id="4712", predecessor=9)
    assert landed(child).landed[0].job.predecessor is None
    assert landed(child, dropped={9: None}).landed[0].job.predecessor == 9
    kept = landed(job(1, predecessor=9), rows=[row(1, predecessor=4)])
    assert kept.landed[0].job.predecessor == 4


def test_dropping_a_run_means_its_next_life_unless_that_was_discovered():
    child = job(0, native_id="4712", predecessor=9)
    (kept,) = landed(child, dropped={9: "alice"}).landed
    assert (kept.job.tracked, kept.untracked_by) == (False, "alice")
    assert landed(replace(child, discovered=True), dropped={9: "alice"}).landed[0].job.tracked


def test_a_successor_tracked_already_stays_tracked_though_its_predecessor_was_dropped():
    (kept,) = landed(job(1, predecessor=9), rows=[row(1)], dropped={9: "alice"}).landed
    assert (kept.job.tracked, kept.untracked_by) == (True, None)


def test_two_rows_asked_about_by_one_id_become_one_and_its_own_change_counts():
    rows = [row(5, tracked=False, state=State.LOST), row(9, birth=None)]
    alive = job(5, proof="own"), job(9, proof="other")
    for pair in (alive, alive[::-1]):
        decided = landed(*pair, rows=rows)
        assert decided.folded == {9: 5}
        assert [(one.job.id, one.job.proof) for one in decided.landed] == [(5, "own")]


def test_two_rows_without_birth_that_get_the_same_one_become_one():
    rows = [row(5, birth=None, tracked=False, state=State.LOST), row(9, birth=None)]
    decided = landed(job(5), job(9), rows=rows)
    assert decided.folded == {9: 5}
    assert [(one.job.id, one.job.tracked) for one in decided.landed] == [(5, True)]


def test_a_new_job_that_a_row_turns_out_to_be_in_the_same_sweep_is_that_row():
    decided = landed(job(0), job(5), rows=[row(5, birth=None)])
    assert [one.job.id for one in decided.landed] == [5]
    assert decided.folded == {}
    assert [one.job.id for one in landed(job(0), job(0, birth="b")).landed] == [0]
    assert len(landed(job(0, birth=None), job(0, birth=None, native_id="2")).landed) == 2


def test_a_job_asked_for_again_is_tracked_though_it_was_dropped_before():
    rows = [row(5, tracked=False, untracked_by="alice", state=State.LOST), row(9, birth=None)]
    decided = landed(job(9), rows=rows)
    assert [(one.job.id, one.job.tracked) for one in decided.landed] == [(5, True)]


def launched(number=1, **changes):
    return job(number, kind=Kind.LAUNCHER, native_id="cicd_7", birth="cicd_7", **changes)


def test_a_job_whose_source_found_its_real_id_is_renamed():
    before = row(kind=Kind.LAUNCHER, native_id="file:a.log", birth="file:a.log")
    (landed,) = plan([JobChange(launched())], [before], {}).landed
    assert (landed.job.id, landed.job.native_id, landed.job.birth) == (1, "cicd_7", "cicd_7")
    assert landed.job.tracked


def test_one_that_is_stored_under_that_id_already_takes_it_over():
    before = row(kind=Kind.LAUNCHER, native_id="file:a.log", birth=None)
    known = row(2, kind=Kind.LAUNCHER, native_id="cicd_7", birth="cicd_7")
    decided = plan([JobChange(launched())], [before, known], {})
    assert decided.folded == {1: 2}
    (landed,) = decided.landed
    assert landed.job.id == 2
