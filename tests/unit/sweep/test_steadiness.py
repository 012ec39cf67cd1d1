"""A clock that somebody sets is noticed, and what lasts is counted from then on."""

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from jobmond.analysis.evidence import quiet_for
from jobmond.analysis.silence import silent_for
from jobmond.analysis.steady import steadied
from jobmond.model.job import LogEvidence
from jobmond.model.observation import Facts, LogTail, Read
from jobmond.model.training import Training
from jobmond.model.trials import Trials
from jobmond.ports import Case
from jobmond.sweep.steadiness import Steadiness
from tests.doubles_store import FixedClock
from tests.unit.builders import NOW, at, job

DAY_S = 86_400.0


def set_by(clock: FixedClock, seconds: float) -> None:
    clock.at += timedelta(seconds=seconds)


@pytest.mark.parametrize("seconds", [DAY_S, 3600, -3600, 121, -121])
def test_a_clock_that_is_set_is_said_once(seconds: float) -> None:
    clock, steadiness = FixedClock(NOW), Steadiness()
    with capture_logs() as said:
        assert steadiness.look(clock) is None
        clock.move(900)
        assert steadiness.look(clock) is None
        clock.move(900)
        set_by(clock, seconds)
        since = clock.at
        assert steadiness.look(clock) == since
        clock.move(900)
        assert steadiness.look(clock) == since
    [line] = said
    assert (line["log_level"], line["by_s"]) == ("warning", seconds)


def test_a_clock_that_is_slewed_or_a_host_that_is_busy_is_no_matter() -> None:
    clock, steadiness = FixedClock(NOW), Steadiness()
    steadiness.look(clock)
    for _ in range(100):
        clock.move(900)
        set_by(clock, 1)
        assert steadiness.look(clock) is None
    clock.move(30 * DAY_S)
    assert steadiness.look(clock) is None


def old(minutes: float):
    """A job of which everything was last seen so many minutes after the time of the test."""
    return job(
        absent_since=at(minutes),
        log=LogEvidence(changed_at=at(minutes)),
        training=Training(stepped_at=at(minutes)),
    )


@pytest.mark.parametrize(
    ("minutes", "counted"),
    [(-60, -10), (-5, -5), (30, -10)],  # long before it was set; since then; ahead of us
)
def test_what_lasts_is_counted_from_then_on(minutes: float, counted: float) -> None:
    found = steadied(old(minutes), at(-10), NOW)
    assert found.absent_since == found.log.changed_at == at(counted)
    assert found.training is not None
    assert found.training.stepped_at == at(counted)
    assert steadied(old(minutes), None, NOW) == old(minutes)
    assert steadied(job(), at(-10), NOW) == job()


def test_no_rule_hears_of_a_silence_that_is_longer() -> None:
    tail = Read(LogTail("/l", 1, 1, at(-60), 0, b"x"), NOW)
    assert silent_for(steadied(old(-60), at(-10), NOW), tail, NOW) == timedelta(minutes=10)
    running = job(facts=Facts(started_at=at(-90)))
    quiet = Case(running, running, NOW)
    trials = Trials(1, last_result_at=at(-60))
    assert quiet_for(quiet, trials) == timedelta(minutes=60)
    since = Case(running, running, NOW, steady_since=at(-10))
    assert quiet_for(since, trials) == timedelta(minutes=10)
    fresh = Trials(1, last_result_at=at(-3))
    assert quiet_for(since, fresh) == timedelta(minutes=3)
    assert quiet_for(Case(job(), job(), NOW, steady_since=at(-10)), Trials(0)) is None
