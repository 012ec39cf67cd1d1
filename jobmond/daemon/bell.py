"""APScheduler as the bell: it only sets an event, the daemon sweeps.

A scheduled function that did the work itself would be cancelled by the scheduler's shutdown.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from jobmond.daemon.grid import next_tick
from jobmond.ports import Clock

# How often the clocks are compared: a suspend or a clock that was set is noticed this soon.
WATCH_S = 15
# Less than this is the clock being disciplined, not set.
JUMP_S = 5.0


class GridTrigger(BaseTrigger):  # type: ignore[misc] # apscheduler has no types
    """Fires on the grid; what fired before does not matter."""

    def __init__(self, interval: timedelta, jitter: timedelta, seed: str) -> None:
        self.interval = interval
        self.jitter_by = jitter
        self.seed = seed

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        """The next tick after `now`."""
        del previous_fire_time
        return next_tick(now, interval=self.interval, jitter=self.jitter_by, seed=self.seed)


class Bell:
    """Rings `ring` on the grid while it is awake, and at once after the clock jumped past a tick.

    `watch` is called every few seconds whether awake or not.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        ring: Callable[[str], None],
        watch: Callable[[], None],
        interval: timedelta,
        jitter: timedelta,
        seed: str,
    ) -> None:
        self._clock = clock
        self._ring = ring
        self._watch = watch
        self._trigger = GridTrigger(interval, jitter, seed)
        self._scheduler: Any = AsyncIOScheduler(timezone="UTC")
        self._awake = False
        self._due: datetime | None = None
        self._offset = self._now_offset()
        self._watcher: asyncio.Task[None] | None = None

    @property
    def next_at(self) -> datetime | None:
        """The next tick; None while asleep."""
        return self._due if self._awake else None

    def start(self) -> None:
        self._scheduler.start()
        self._watcher = asyncio.create_task(self._watch_clocks())

    def stop(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        self._scheduler.shutdown(wait=False)

    def wake(self) -> None:
        """Tick from now on; no effect when awake."""
        if not self._awake:
            self._awake = True
            self._schedule()

    def sleep(self) -> None:
        """No more ticks until woken."""
        if self._awake:
            self._awake = False
            self._due = None
            self._scheduler.remove_job("tick")

    def set_grid(self, interval: timedelta, jitter: timedelta) -> None:
        """Another grid from now on."""
        self._trigger = GridTrigger(interval, jitter, self._trigger.seed)
        if self._awake:
            self._schedule()

    def _schedule(self) -> None:
        self._due = self._trigger.get_next_fire_time(None, self._clock.now())
        self._scheduler.add_job(
            self._tick,
            self._trigger,
            id="tick",
            replace_existing=True,
            misfire_grace_time=None,  # a tick that is late is still wanted
            coalesce=True,  # many missed ones are one
        )

    async def _tick(self) -> None:
        self._due = self._trigger.get_next_fire_time(None, self._clock.now())
        self._ring("tick")

    async def _watch_clocks(self) -> None:
        # No job of the scheduler: its timers follow the wall clock, which is what is watched here.
        while True:
            await asyncio.sleep(WATCH_S)
            self.compare()

    def compare(self) -> None:
        """Notice a suspend or a clock that was set: timers count neither.

        After a jump forward past a tick the sweep is due now; after a jump either way the next
        tick is computed afresh.
        """
        offset = self._now_offset()
        jumped = abs(offset - self._offset) > JUMP_S
        self._offset = offset
        if jumped and self._awake:
            missed = self._due is not None and self._due <= self._clock.now()
            self._schedule()
            if missed:
                self._ring("clock jumped")
        self._watch()

    def _now_offset(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()
