"""The bell rings on the grid, and at once after the clock jumped past a tick."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from jobmond.daemon.bell import Bell

START = datetime(2026, 11, 29, 12, 1, tzinfo=UTC)


class Clock:
    """Wall clock and monotonic clock that a test moves apart."""

    def __init__(self):
        self.wall = START
        self.running_s = 1000.0

    def now(self):
        return self.wall

    def monotonic(self):
        return self.running_s

    def pass_(self, seconds):
        self.wall += timedelta(seconds=seconds)
        self.running_s += seconds


@pytest.fixture
async def ringing():
    clock, rung = Clock(), []
    bell = Bell(
        clock,
        ring=rung.append,
        watch=lambda: rung.append("watch"),
        interval=timedelta(minutes=15),
        jitter=timedelta(0),
        seed="here",
    )
    bell.start()
    yield bell, clock, rung
    bell.stop()
    await asyncio.sleep(0)


async def test_awake_it_is_due_on_the_grid_and_asleep_never(ringing):
    bell, _, _ = ringing
    assert bell.next_at is None
    bell.wake()
    assert bell.next_at == datetime(2026, 11, 29, 12, 15, tzinfo=UTC)
    bell.sleep()
    assert bell.next_at is None


async def test_a_suspend_past_a_tick_rings_at_once_and_once(ringing):
    bell, clock, rung = ringing
    bell.wake()
    clock.wall += timedelta(hours=3)  # the machine slept: only the wall clock went on
    bell.compare()
    bell.compare()
    assert rung == ["clock jumped", "watch", "watch"]
    assert bell.next_at == datetime(2026, 11, 29, 15, 15, tzinfo=UTC)


@pytest.mark.parametrize("years", [32, -32])
async def test_a_clock_set_by_decades_leaves_the_next_tick_near(ringing, years):
    bell, clock, _ = ringing
    bell.wake()
    clock.wall = START.replace(year=START.year + years)
    bell.compare()
    assert clock.wall < bell.next_at <= clock.wall + timedelta(minutes=15)


async def test_a_clock_set_back_an_hour_does_not_stop_the_ticks_for_an_hour(ringing):
    bell, clock, rung = ringing
    bell.wake()
    clock.wall -= timedelta(hours=1)
    bell.compare()
    assert rung == ["watch"]
    assert bell.next_at == datetime(2026, 11, 29, 11, 15, tzinfo=UTC)


async def test_time_that_just_passes_is_no_jump(ringing):
    bell, clock, rung = ringing
    bell.wake()
    clock.pass_(600)
    bell.compare()
    assert rung == ["watch"]


async def test_asleep_a_jump_rings_nothing(ringing):
    bell, clock, rung = ringing
    clock.wall += timedelta(days=1)
    bell.compare()
    assert rung == ["watch"]


async def test_another_grid_from_now_on(ringing):
    bell, _, _ = ringing
    bell.wake()
    bell.set_grid(timedelta(minutes=5), timedelta(0))
    assert bell.next_at == datetime(2026, 11, 29, 12, 5, tzinfo=UTC)
