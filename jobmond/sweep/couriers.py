"""Deliveries to far sinks, in the background: nothing ever waits for a receiver."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from jobmond.ports import FarSink
from jobmond.sweep.deliver import Post
from jobmond.sweep.trouble import Troubles

GRACE_S = 3.0


class Couriers:
    """At most one round under way for each far sink.

    A round that fails is no fault of its receiver: it is the database, which may have told the
    same of other work already. `troubles` are those of all such work.
    """

    def __init__(self, troubles: Troubles | None = None) -> None:
        self.troubles = troubles or Troubles()
        self._rounds: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._stopping = False

    def wake(self, post: Post, sinks: Mapping[str, FarSink]) -> None:
        """Begin a round for every sink; one that is under way looks once more before it ends."""
        if self._stopping:
            return
        for name, sink in sinks.items():
            under_way = self._rounds.get(name)
            if under_way is not None and not under_way.done():
                self._again.add(name)
                continue
            work = self._deliver(replace(post, stopping=lambda: self._stopping), name, sink)
            task = asyncio.create_task(work, name=f"deliver to {name}")
            self._rounds[name] = task
            task.add_done_callback(partial(self._ended, name))

    async def idle(self, *, timeout_s: float) -> None:
        """Wait until no round is under way, but not longer than that."""
        if self._rounds:
            await asyncio.wait(list(self._rounds.values()), timeout=timeout_s)

    async def stop(self, *, grace_s: float = GRACE_S) -> None:
        """Begin nothing more until resumed. A request in hand may end within `grace_s`; what is
        cut off then is sent again later, with the same key."""
        self._stopping = True
        rounds = list(self._rounds.values())
        if rounds:
            _, late = await asyncio.wait(rounds, timeout=grace_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*rounds, return_exceptions=True)

    def resume(self) -> None:
        """Rounds may begin again."""
        self._stopping = False

    async def _deliver(self, post: Post, name: str, sink: FarSink) -> None:
        while True:
            self._again.discard(name)
            await post.round(name, sink)
            if name not in self._again:
                return

    def _ended(self, name: str, task: "asyncio.Task[None]") -> None:
        if self._rounds.get(name) is task:
            del self._rounds[name]
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self.troubles.worked(task.get_name())
        else:
            self.troubles.failed(task.get_name(), error)
