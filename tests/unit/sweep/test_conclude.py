"""What a sweep tells of a move."""

import pytest

from jobmond.analysis.settle import Move
from jobmond.model.observation import Facts, TaskCounts
from jobmond.model.outcome import Transition
from jobmond.model.state import State
from jobmond.sweep.conclude import Setting, Terms, concluded
from tests.unit.builders import NOW, job

TERMS = Terms(rules=(), sinks=("news",), agent_logs="/a")


def told(move: Move) -> list[tuple[str, str]]:
    """Type and severity of the news."""
    made = concluded([move], {}, Setting(TERMS, NOW))
    assert len({n.key for n in made.news}) == len(made.news)
    return [(n.type, n.severity.value) for n in made.news]


def array(state: State, *failed: str):
    counts = TaskCounts(4, {}, failed)
    return job(state=state, native=state.value, facts=Facts(name="train", tasks=counts))


WAITED = job(state=State.PENDING, native="PENDING")
STARTED = Transition(NOW, State.PENDING, State.RUNNING, "RUNNING")


@pytest.mark.parametrize(
    ("transition", "expected"),
    [
        (None, [("transition", "alarm")]),
        (STARTED, [("transition", "info"), ("transition", "alarm")]),
        (Transition(NOW, None, State.RUNNING, "RUNNING"), [("transition", "alarm")]),
    ],
)
def test_the_first_failure_of_an_array_is_told_whatever_else_happened(transition, expected):
    running = array(State.RUNNING, "4711_2")
    assert told(Move(WAITED, running, transition, first_part_failed=True)) == expected
    assert told(Move(WAITED, running, None)) == []


def test_an_array_that_is_over_is_told_once():
    over = array(State.FAILED, "4711_2")
    ended = Transition(NOW, State.RUNNING, State.FAILED, "FAILED")
    assert told(Move(WAITED, over, ended, first_part_failed=True)) == [("transition", "alarm")]
