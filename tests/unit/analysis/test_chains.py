"""Which job continues which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.chains import Candidate, Successors, waits_for
from jobmond.model.observation import Facts
from jobmond.model.state import State
from tests.unit.builders import at


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (None, set()),
        ("(null)", set()),
        ("afterany:12(unfulfilled)", {"12"}),
        ("afterany:12_*(unfulfilled)", {"12"}),
        ("afterany:12:13", {"12", "13"}),
        ("afterok:11(failed),afterany:12(unfulfilled)", {"12"}),
        ("afterany:12(unfulfilled)?afterany:14(unfulfilled)", {"12", "14"}),
        ("afternotok:12", set()),
        ("afterany:12+5", {"12"}),
        ("singleton", set()),
    ],
)
def test_the_ids_of_afterany_clauses(text, ids):
    assert waits_for(text) == ids


@given(st.text(max_size=200))
def test_any_text_is_a_dependency(text):
    assert all(found.isdigit() for found in waits_for(text))


def waiting(native_id, on, submitted=None):
    facts = Facts(dependency=f"afterany:{on}", submitted_at=submitted)
    return Candidate(native_id, State.PENDING, facts, True)


def test_the_first_submitted_of_several_is_taken():
    pool = Successors([waiting("9", "1", at(-1)), waiting("8", "1", at(-2))])
    assert pool.take("1", Facts(), at(0)).native_id == "8"


def test_each_continues_at_most_one():
    pool = Successors([waiting("9", "1:2")])
    assert pool.take("1", Facts(), at(0)).native_id == "9"
    assert pool.take("2", Facts(), at(0)) is None


def test_a_job_does_not_continue_itself():
    assert Successors([waiting("1", "1")]).take("1", Facts(), at(0)) is None


def test_a_copy_without_a_name_or_directory_is_never_guessed():
    pool = Successors([Candidate("9", State.RUNNING, Facts(started_at=at(0)), False)])
    assert pool.take("1", Facts(), at(0)) is None
