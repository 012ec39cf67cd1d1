"""Troubles are told once, and sweeps the database did not take are done again soon."""

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from jobmond.daemon.trouble import Again
from jobmond.sweep.trouble import Troubles

FULL = "disk full: nothing was written to /x; make room there"


def test_an_error_is_told_once_whatever_fails_of_it() -> None:
    troubles = Troubles()
    with capture_logs() as told:
        troubles.failed("sweep a", FULL)
        troubles.failed("deliver", FULL)
        troubles.failed("sweep a", FULL)
    assert [(t["log_level"], t["what"], t["error"]) for t in told] == [("error", "sweep a", FULL)]
    assert troubles.newest == FULL


def test_it_is_over_when_all_that_failed_was_done() -> None:
    troubles = Troubles()
    troubles.failed("sweep a", FULL)
    troubles.failed("deliver", FULL)
    with capture_logs() as told:
        troubles.worked("pick up")
        troubles.worked("deliver")
        troubles.worked("deliver")
        assert told == []
        troubles.worked("sweep a")
    assert [(t["log_level"], t["event"], t["was"]) for t in told] == [("info", "works again", FULL)]
    assert troubles.newest is None


def test_it_is_told_again_when_it_comes_back() -> None:
    troubles = Troubles()
    with capture_logs() as told:
        troubles.failed("deliver", FULL)
        troubles.worked("deliver")
        troubles.failed("deliver", FULL)
    assert [t["event"] for t in told] == ["failed", "works again", "failed"]


def test_another_error_of_the_same_work_takes_the_place_of_the_first() -> None:
    troubles = Troubles()
    troubles.failed("sweep a", FULL)
    with capture_logs() as told:
        troubles.failed("sweep a", "locked")
        assert troubles.newest == "locked"
        troubles.worked("sweep a")
    assert [(t["event"], t.get("error") or t.get("was")) for t in told] == [
        ("failed", "locked"),
        ("works again", "locked"),
    ]


@pytest.fixture
def again() -> Again:
    return Again(timedelta(minutes=1), timedelta(minutes=5))


def test_pauses_double_up_to_the_longest(again: Again) -> None:
    at_s = 1000.0
    pauses = []
    for _ in range(5):
        again.failed("a", at_s=at_s)
        pause = next(p for p in range(1000) if again.due(at_s + p))
        pauses.append(pause)
        at_s += pause
    assert pauses == [60, 120, 240, 300, 300]


def test_what_worked_is_not_done_again_and_begins_anew(again: Again) -> None:
    again.failed("a", at_s=0)
    again.failed("a", at_s=60)
    again.failed("b", at_s=60)
    again.worked("a")
    assert again.due(10_000) == ["b"]
    again.failed("a", at_s=100)
    assert again.due(160) == ["b", "a"]
