"""What one sighting does to one job."""

from dataclasses import replace
from datetime import timedelta

from jobmond.analysis.resolve import merged, resolve
from jobmond.model.observation import Facts, Gone, Unreachable
from jobmond.model.state import State
from tests.unit.builders import DAY, NOW, at, ended, job, seen, unseen


def once(before, sighting, now=NOW):
    result = resolve(before, sighting, now=now, unknown_for=DAY)
    assert len(result.lives) == 1
    return result.lives[0]


def test_silence_moves_nothing_but_says_stale():
    before = job()
    after, transition = once(before, Unreachable("connection refused"))
    assert transition is None
    assert after == replace(before, stale=True)


def test_the_first_sighting_has_no_before_and_gives_the_birth():
    after, transition = once(unseen(), seen(State.PENDING, birth="170"))
    assert (after.birth, after.state, after.first_seen_at) == ("170", State.PENDING, NOW)
    assert (transition.before, transition.after) == (None, State.PENDING)


def test_the_same_state_is_no_transition():
    after, transition = once(job(), seen(State.RUNNING, elapsed_s=60))
    assert transition is None
    assert (after.seen_at, after.facts.elapsed_s, after.transitions) == (NOW, 60, 1)


def test_an_end_leaves_tracking_and_keeps_when():
    after, transition = once(job(), seen(State.FAILED, exit_code=3, ended_at=at(-2)))
    assert (after.tracked, after.ended_at, after.facts.exit_code) == (False, at(-2), 3)
    assert (transition.before, transition.after) == (State.RUNNING, State.FAILED)
    assert after.transitions == 2


def test_an_end_without_a_time_ends_when_it_was_learned():
    after, _ = once(job(), seen(State.CANCELLED))
    assert after.ended_at == NOW


def test_preempted_without_a_new_life_is_an_end():
    after, _ = once(job(), seen(State.PREEMPTED))
    assert not after.tracked


def test_gone_everywhere_is_lost():
    after, transition = once(job(), Gone("unknown to queue and accounting"))
    assert (after.state, after.tracked, after.ended_at) == (State.LOST, False, NOW)
    assert transition.after is State.LOST


def test_gone_where_nobody_could_tell_is_unknown_for_a_day_then_lost():
    gone = Gone("left the queue, no accounting", complete=False)
    unknown, first = once(job(), gone)
    assert (unknown.state, unknown.tracked, unknown.absent_since) == (State.UNKNOWN, True, NOW)
    assert first.after is State.UNKNOWN
    same, second = once(unknown, gone, now=NOW + timedelta(hours=23))
    assert (same.state, second) == (State.UNKNOWN, None)
    lost, third = once(same, gone, now=NOW + DAY)
    assert (lost.state, lost.tracked) == (State.LOST, False)
    assert not third.correction


def test_a_proof_corrects_unknown():
    unknown, _ = once(job(), Gone("left the queue", complete=False))
    after, transition = once(unknown, seen(State.COMPLETED))
    assert after.state is State.COMPLETED
    assert transition.correction


def test_a_proof_corrects_lost_even_back_to_life():
    lost, _ = once(job(), Gone("unknown everywhere"))
    after, transition = once(lost, seen(State.RUNNING))
    assert (after.state, after.tracked, after.ended_at) == (State.RUNNING, True, None)
    assert transition.correction


def test_a_requeue_is_a_second_life_under_the_same_id():
    before = job(facts=Facts(name="train", dependency="afterany:1"))
    result = resolve(
        before,
        seen(State.PENDING, birth="200", previous=(ended(State.NODE_FAIL),)),
        now=NOW,
        unknown_for=DAY,
    )
    (old, old_move), (new, new_move) = result.lives
    assert (old.birth, old.state, old.tracked, old.life) == ("100", State.NODE_FAIL, False, 1)
    assert (new.birth, new.state, new.tracked, new.life) == ("200", State.PENDING, True, 2)
    assert (new.id, new.predecessor, new.transitions) == (0, before.id, 1)
    assert (old_move.before, old_move.after) == (State.RUNNING, State.NODE_FAIL)
    assert new_move.before is None


def test_two_requeues_between_sweeps_are_three_lives():
    sighting = seen(
        State.RUNNING,
        birth="300",
        previous=(ended(State.PREEMPTED), ended(State.PREEMPTED, birth="200")),
    )
    result = resolve(job(), sighting, now=NOW, unknown_for=DAY)
    assert [(j.birth, j.state, j.life) for j, _ in result.lives] == [
        ("100", State.PREEMPTED, 1),
        ("200", State.PREEMPTED, 2),
        ("300", State.RUNNING, 3),
    ]


def test_an_unseen_job_that_was_requeued_begins_with_its_oldest_life():
    sighting = seen(State.RUNNING, birth="200", previous=(ended(State.PREEMPTED),))
    result = resolve(unseen(), sighting, now=NOW, unknown_for=DAY)
    assert [(j.birth, j.state) for j, _ in result.lives] == [
        ("100", State.PREEMPTED),
        ("200", State.RUNNING),
    ]


def test_another_job_under_a_recycled_id_is_not_taken_for_ours():
    result = resolve(job(), seen(State.FAILED, birth="900"), now=NOW, unknown_for=DAY)
    after, transition = result.lives[0]
    assert (after.state, after.stale, transition) == (State.RUNNING, True, None)
    assert "another job" in result.error


def test_what_the_source_forgets_is_remembered():
    known = Facts(dependency="afterany:7", log_path="/l.out", reason="Dependency", exit_code=1)
    news = Facts(reason=None, log_path="/new.out")
    assert merged(known, news) == Facts(dependency="afterany:7", log_path="/new.out")


def test_detail_asked_for_in_this_state_is_not_owed_again():
    known = job(facts=Facts(name="train", detailed=True))
    same, _ = once(known, seen(State.RUNNING))
    moved, _ = once(known, seen(State.FAILED))
    assert (same.facts.detailed, moved.facts.detailed) == (True, False)
