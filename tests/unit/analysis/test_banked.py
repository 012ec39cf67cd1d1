"""Which checkpoints are complete."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.banked import Place, banked, is_step, tracked_step


def place(path="", *, latest=None, names=(), **steps):
    inside = {name: frozenset(files) for name, files in steps.items()}
    return Place(path, inside, latest, frozenset(names))


WHOLE = ("trainer_state.pt", "data.pt", "policy")


def test_ahead_of_the_tracker_is_not_complete():
    found = banked(
        [place("checkpoints", latest=10, global_step_5=WHOLE, global_step_10=WHOLE,
               global_step_15=WHOLE)]
    )  # fmt: skip
    assert (found.complete, found.unfinished, found.step) == ((5, 10), (15,), 10)
    assert found.paths[10] == "checkpoints/global_step_10"


def test_without_a_tracker_what_is_written_last_decides():
    found = banked([place(global_step_20=("actor", "data.pt"), global_step_30=("actor",))])
    assert (found.complete, found.unfinished, found.dialect) == ((20,), (30,), "verl")


def test_with_neither_the_newest_may_be_being_written():
    found = banked([place(iter_0000100=("a",), iter_0000200=("a",))])
    assert (found.complete, found.unfinished) == ((100,), (200,))
    assert banked([place(iter_0000100=("a",))]).complete == ()
    assert banked([place(iter_0000100=("a",), latest=100)]).complete == (100,)


def test_the_marks_of_each_trainer():
    assert banked([place(step_50=("STABLE",), step_60=("trainer",))]).complete == (50,)
    assert banked([place(step_10=("training_info.json",), tmp_step_20=())]).step == 10
    assert banked(
        [place(**{"checkpoint-500": ("trainer_state.json",), "checkpoint-600": ("x",)})]
    ).complete == (500,)


def test_where_counting_is_from_zero_the_step_is_one_more():
    assert banked([place(epoch0epochstep9globalstep9=("config.json",))]).step == 10


def test_exports_and_broadcasts_prove_nothing():
    found = banked(
        [
            place("run/exports", global_step_10=WHOLE),
            place("broadcasts", step_61=("STABLE",)),
            place("rollouts", step_61=("train",)),
        ]
    )
    assert (found.complete, found.unfinished, found.step) == ((), (), None)


def test_every_place_is_searched_and_complete_anywhere_is_complete():
    found = banked(
        [
            place("a", latest=5, global_step_5=WHOLE, global_step_10=("policy",)),
            place("b", latest=10, global_step_10=WHOLE),
        ]
    )
    assert (found.complete, found.unfinished) == ((5, 10), ())


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("global_step_5", 1), ("global_step_5_evals", 0), ("tmp_step_20", 0), ("iter_0000500", 1)],
)
def test_names_of_checkpoints(name, wanted):
    assert is_step(name) is bool(wanted)


@pytest.mark.parametrize(
    ("text", "step"), [("10", 10), (" 500\n", 500), ("release", None), ("", None), ("1x", None)]
)
def test_a_tracker_file(text, step):
    assert tracked_step(text) == step


@given(
    st.dictionaries(st.text(max_size=20), st.frozensets(st.text(max_size=5), max_size=3)),
    st.none() | st.integers(0, 100),
)
def test_any_folder_is_accepted(steps, latest):
    banked([Place("x", steps, latest)])
