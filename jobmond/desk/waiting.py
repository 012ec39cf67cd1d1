"""Waiting: for news without asking again and again, and for one's turn at a cluster."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from jobmond.errors import Refused


class Bell:
    """Wakes everybody who waits.

    Take `ring` before looking for news and wait on what it was: a ring between the look and the
    wait is then not missed. Belongs to one event loop.
    """

    def __init__(self) -> None:
        self.ring = asyncio.Event()
        self.closed = False

    def strike(self) -> None:
        """There is news."""
        ring, self.ring = self.ring, asyncio.Event()
        ring.set()

    def close(self) -> None:
        """Nobody waits any more, now or later."""
        self.closed = True
        self.strike()

    async def wait(self, ring: asyncio.Event, *, timeout_s: float) -> bool:
        """Whether `ring` came within `timeout_s`; at once False after `close`."""
        if self.closed:
            return False
        try:
            async with asyncio.timeout(timeout_s):
                await ring.wait()
        except TimeoutError:
            return False
        return True


@dataclass(slots=True)
class LogQueue:
    """One log read at a time and cluster, and a short line behind it.

    A cluster that hangs would otherwise be asked by everybody at once when it comes back, also
    for those who have long gone.
    """

    line: int = 16
    _turns: dict[str, asyncio.Lock] = field(default_factory=dict)
    _waiting: dict[str, int] = field(default_factory=dict)

    @asynccontextmanager
    async def turn(self, cluster: str) -> AsyncIterator[None]:
        """Hold the cluster's turn.

        Raises:
            Refused: the line is full.
        """
        if self._waiting.get(cluster, 0) >= self.line:
            raise Refused(f"{cluster} is still busy with earlier requests for logs: try later")
        self._waiting[cluster] = self._waiting.get(cluster, 0) + 1
        try:
            async with self._turns.setdefault(cluster, asyncio.Lock()):
                yield
        finally:
            self._waiting[cluster] -= 1
