"""Requests for sweeps: many at once are one sweep, none overlaps another of the same cluster."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from jobmond.sweep.sweep import Result

Sweep = Callable[[str, bool], Awaitable[Result]]


@dataclass(slots=True)
class _Lane:
    """One cluster's queue: at most one sweep running and one waiting."""

    running: "asyncio.Task[Result] | None" = None
    waiting: "asyncio.Task[Result] | None" = None
    waiting_asked: bool = False
    last: Result | None = None

    def unfinished(self) -> "Iterable[asyncio.Task[Result]]":
        return (task for task in (self.running, self.waiting) if task and not task.done())


@dataclass(slots=True)
class Lanes:
    """Runs sweeps. `sweep(cluster, asked)` does one; `asked` overrides back-off and needs-login."""

    sweep: Sweep
    _lanes: dict[str, _Lane] = field(default_factory=dict)

    def request(self, cluster: str, *, asked: bool = False) -> "asyncio.Task[Result]":
        """A sweep of `cluster` that starts after this call; shared with everybody who waits."""
        lane = self._lanes.setdefault(cluster, _Lane())
        if lane.waiting is None:
            work = self._run(cluster, lane, lane.running)
            lane.waiting = asyncio.create_task(work, name=f"sweep {cluster}")
        lane.waiting_asked = lane.waiting_asked or asked
        return lane.waiting

    async def _run(
        self, cluster: str, lane: _Lane, before: "asyncio.Task[Result] | None"
    ) -> Result:
        if before is not None:
            await asyncio.wait([before])
        lane.running, lane.waiting = lane.waiting, None
        asked, lane.waiting_asked = lane.waiting_asked, False
        result = await self.sweep(cluster, asked)
        lane.last = result
        return result

    def last(self, cluster: str) -> Result | None:
        """What the last finished sweep of `cluster` said."""
        lane = self._lanes.get(cluster)
        return lane.last if lane else None

    async def finish(self) -> None:
        """Wait for the sweeps in hand; those that have not begun never will."""
        for lane in self._lanes.values():
            if lane.waiting is not None:
                lane.waiting.cancel()
        await self.settle()

    async def settle(self) -> None:
        """Wait until no sweep is in hand or waiting."""
        while tasks := [t for lane in self._lanes.values() for t in lane.unfinished()]:
            await asyncio.wait(tasks)
