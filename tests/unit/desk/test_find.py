"""Which job a word means."""

import pytest

from jobmond.desk.find import the_job
from jobmond.desk.refusals import UnknownJob
from jobmond.model.observation import Facts
from jobmond.model.state import State
from tests.doubles_store import job


def meant(word, *found, known=()):
    return the_job(word, found, lambda: known)


def test_the_newest_incarnation_owns_the_ref():
    old = job(id=1, birth="1", tracked=False, state=State.NODE_FAIL)
    new = job(id=2, birth="2")
    assert meant("leonardo/4711", old, new).id == 2
    assert meant("leonardo/4711@1", old, new).id == 1


def test_a_ref_beats_a_job_named_like_it():
    named = job("jureca/1", id=2, facts=Facts(name="leonardo/4711"))
    assert meant("leonardo/4711", named, job(id=1)).id == 1


def test_a_native_id_beats_a_job_named_like_it():
    named = job("leonardo/12", id=2, facts=Facts(name="4711"))
    assert meant("4711", named, job(id=1)).id == 1


def test_two_clusters_are_ambiguous():
    with pytest.raises(UnknownJob, match=r"'4711' is ambiguous: jureca/4711, leonardo/4711"):
        meant("4711", job(id=1), job("jureca/4711", id=2))


def test_the_only_tracked_one_is_meant():
    ended = job("jureca/4711", id=2, tracked=False, state=State.COMPLETED)
    assert meant("4711", ended, job(id=1)).ref == "leonardo/4711"


def test_a_name_means_the_newest_life_of_its_run():
    lives = [
        job(f"leonardo/{n}", id=n, life=n, tracked=False, state=State.TIMEOUT) for n in (1, 3, 2)
    ]
    assert meant("train", *lives).ref == "leonardo/3"


def test_a_name_of_two_runs_is_ambiguous():
    one = job("leonardo/1", id=1, tracked=False, run="a")
    two = job("leonardo/2", id=2, tracked=False, run="b")
    with pytest.raises(UnknownJob, match="leonardo/1, leonardo/2"):
        meant("train", one, two)


def test_many_candidates_are_counted():
    many = [job(f"leonardo/{n}", id=n) for n in range(10, 20)]
    with pytest.raises(UnknownJob, match="leonardo/14 and 5 more"):
        meant("train", *many)


def test_several_tracked_jobs_of_one_run_are_never_picked_from():
    with pytest.raises(UnknownJob, match="leonardo/1, leonardo/2"):
        meant("train", job("leonardo/1", id=1), job("leonardo/2", id=2, life=2))


def test_unknown_names_the_nearest():
    with pytest.raises(UnknownJob, match=r"unknown job 'leonardo/4712'; nearest: 'leonardo/4711'"):
        meant("leonardo/4712", known=[job()])


def test_unknown_with_nothing_near():
    with pytest.raises(UnknownJob, match=r"^unknown job 'x'$"):
        meant("x")


def test_a_hostile_word_is_shown_safely():
    with pytest.raises(UnknownJob) as refusal:
        meant("\x1b[2Jx" * 100)
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 800
