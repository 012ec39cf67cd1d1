"""How many scripts run at once over one connection, whose far side may allow fewer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Room:
    """At most `most` at a time, and fewer once the far side has refused one more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = most
        self._inside = 0
        self._change = asyncio.Event()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place in the room, waited for."""
        while self._inside >= self._limit:
            await self._change.wait()
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            self._changed()

    def narrow(self) -> bool:
        """Somebody inside was refused. False where nobody else is inside: others fill the far
        side, or it is in trouble, and waiting for one of ours would not help."""
        if self._inside <= 1:
            return False
        self._limit = min(self._limit, self._inside - 1)
        return True

    def widen(self) -> None:
        """Another connection, of which nothing is known yet."""
        self._limit = self._most
        self._changed()

    def _changed(self) -> None:
        """Let all who wait look again."""
        self._change.set()
        self._change = asyncio.Event()
