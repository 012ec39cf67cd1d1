"""Ticks stay on the grid whatever the clock does."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from jobmond.daemon.grid import next_tick

QUARTER = timedelta(minutes=15)
MINUTE = timedelta(minutes=1)
instants = st.datetimes(
    min_value=datetime(1971, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)
)


def test_without_jitter_ticks_are_the_quarter_hours():
    now = datetime(2026, 11, 29, 18, 7, 3, tzinfo=UTC)
    at = next_tick(now, interval=QUARTER, jitter=timedelta(0), seed="a")
    assert at == datetime(2026, 11, 29, 18, 15, tzinfo=UTC)


@given(instants)
def test_a_tick_lies_ahead_and_within_its_slot(now):
    at = next_tick(now, interval=QUARTER, jitter=MINUTE, seed="a")
    into_slot = (at - datetime(1970, 1, 1, tzinfo=UTC)) % QUARTER
    assert now < at <= now + QUARTER + MINUTE
    assert into_slot <= MINUTE


@given(instants)
def test_a_thousand_ticks_later_the_grid_has_not_moved(now):
    at = now
    for _ in range(1000):
        at = next_tick(at, interval=QUARTER, jitter=MINUTE, seed="a")
    first = next_tick(now, interval=QUARTER, jitter=timedelta(0), seed="a")
    drift = at - (first + 999 * QUARTER)
    assert -QUARTER <= drift <= MINUTE  # the first call may still catch the jitter of its own slot


def test_asking_twice_gives_the_same_tick():
    now = datetime(2026, 11, 29, 18, 0, 1, tzinfo=UTC)
    assert next_tick(now, interval=QUARTER, jitter=MINUTE, seed="a") == next_tick(
        now, interval=QUARTER, jitter=MINUTE, seed="a"
    )


def test_two_hosts_tick_apart():
    now = datetime(2026, 11, 29, 18, 14, tzinfo=UTC)
    ticks = {next_tick(now, interval=QUARTER, jitter=MINUTE, seed=f"host{i}") for i in range(20)}
    assert len(ticks) > 15
