"""The outbox, emptied: each sink gets what it is owed, in order, whatever the others do."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from jobmond.errors import SinkRefusal, SinkRetry, StoreError
from jobmond.model.outcome import Delivery
from jobmond.ports import Clock, FarSink, Sink

journal = structlog.get_logger("jobmond.deliver")

BATCH = 200
# How many events that a receiver fails at again and again may be passed by those of other jobs.
# With more of them it is the receiver that fails.
ASIDE = 3
BACKOFF = timedelta(seconds=15)
BACKOFF_MAX = timedelta(hours=1)

Call = Callable[..., Awaitable[Any]]


class Outbox(Protocol):
    """The part of the store that deliveries live in."""

    def due(
        self, sink: str, now: datetime, limit: int, *, aside: int = 0
    ) -> Sequence[Delivery]: ...
    def delivered(self, ids: Sequence[int], now: datetime) -> None: ...
    def retry_later(self, ids: Sequence[int], error: str, due_at: datetime) -> None: ...
    def give_up(self, ids: Sequence[int], error: str, now: datetime) -> None: ...
    def shed(
        self, sink: str, *, created_before: datetime, keep: int, error: str, now: datetime
    ) -> int: ...


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one round did for one sink."""

    sink: str
    sent: int
    error: str | None = None


@dataclass(slots=True)
class Unstored:
    """What the database could not note, by sink.

    `taken` is noted before anything else is sent, or it would be sent again and again;
    `held_until_s` (monotonic) is until when the sink wants to be left alone.
    """

    taken: dict[str, Sequence[int]] = field(default_factory=dict)
    held_until_s: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Post:
    """Takes things from the outbox to sinks. `call` runs a store method in the writer's thread.

    `backoff` is the first pause after a failure; it doubles up to `backoff_max`, which also
    bounds what a receiver may ask for. `stopping` says that no more is to be begun.
    """

    outbox: Outbox
    call: Call
    clock: Clock
    backoff: timedelta = BACKOFF
    backoff_max: timedelta = BACKOFF_MAX
    stopping: Callable[[], bool] = lambda: False
    unstored: Unstored = field(default_factory=Unstored)

    async def round(self, name: str, sink: Sink) -> Delivered:
        """Send what is due to one sink, until nothing is or it wants a pause.

        What it does not take keeps its place in the queue, and later deliveries wait behind it:
        the order of a job's news never changes.
        """
        done = Delivered(name, 0)
        size, aside = (1, ASIDE) if isinstance(sink, FarSink) else (BATCH, 0)
        if self.clock.monotonic() < self.unstored.held_until_s.get(name, 0.0):
            return done
        await self._record(name)
        while not self.stopping():
            now = self.clock.now()
            batch = await self.call(self.outbox.due, name, now, size, aside=aside)
            if not batch:
                break
            ids = [d.id for d in batch]
            try:
                await sink.send(batch)
            except SinkRetry as later:
                await self._postpone(name, sink, batch, later)
                return replace(done, error=str(later))
            except SinkRefusal as refusal:
                if len(batch) == 1:
                    await self._give_up(name, batch[0], refusal)
                size = 1  # of several only one may be refused: find out which
                continue
            self.unstored.taken[name] = ids
            await self._record(name)
            if batch[0].last_error is not None:
                journal.info("delivery works again", sink=name, was=batch[0].last_error)
            done = replace(done, sent=done.sent + len(ids))
        return done

    async def _record(self, name: str) -> None:
        taken = self.unstored.taken.get(name)
        if taken:
            await self.call(self.outbox.delivered, taken, self.clock.now())
            del self.unstored.taken[name]

    @asynccontextmanager
    async def _held(self, name: str, pause: timedelta) -> AsyncIterator[None]:
        """While a pause that a sink wants is stored: it is kept where it cannot be."""
        try:
            yield
        except StoreError:
            until_s = self.clock.monotonic() + pause.total_seconds()
            self.unstored.held_until_s[name] = until_s
            raise

    async def _postpone(
        self, name: str, sink: Sink, batch: Sequence[Delivery], later: SinkRetry
    ) -> None:
        now = self.clock.now()  # not from before the request: it may have taken its time
        pause = self._wait(batch[0].attempts, later.after_s)
        due_at = now + pause
        async with self._held(name, pause):
            await self.call(self.outbox.retry_later, [d.id for d in batch], str(later), due_at)
        # Every reason once: a disk that stays full would fill the journal as well.
        say = journal.debug if str(later) == batch[0].last_error else journal.warning
        say("delivery postponed", sink=name, error=str(later), until=due_at.isoformat())
        if isinstance(sink, FarSink):
            await self._shed(name, sink, str(later), now)

    async def _give_up(self, name: str, delivery: Delivery, refusal: SinkRefusal) -> None:
        async with self._held(name, self.backoff):
            await self.call(self.outbox.give_up, [delivery.id], str(refusal), self.clock.now())
        journal.error("delivery given up", sink=name, key=delivery.key, error=str(refusal))

    async def _shed(self, name: str, sink: FarSink, error: str, now: datetime) -> None:
        """Only after a failure: while a sink takes things, no age and no number is too much."""
        count = await self.call(
            self.outbox.shed,
            name,
            created_before=now - sink.give_up_after,
            keep=sink.spool,
            error=f"not taken in time: {error}",
            now=now,
        )
        if count:
            journal.error(
                "deliveries given up: too old, or too many wait",
                sink=name,
                events=count,
                give_up_after=str(sink.give_up_after),
                spool=sink.spool,
                error=error,
            )

    def _wait(self, attempts: int, asked_s: float | None) -> timedelta:
        if asked_s is not None:
            return min(timedelta(seconds=max(0.0, asked_s)), self.backoff_max)
        return min(self.backoff * float(2 ** min(attempts, 12)), self.backoff_max)


async def deliver_all(
    sinks: Mapping[str, Sink], *, outbox: Outbox, call: Call, clock: Clock
) -> tuple[Delivered, ...]:
    """One round for every sink; a slow one holds up none of the others, and is waited for."""
    return await all_rounds(Post(outbox, call, clock), sinks)


async def all_rounds(post: Post, sinks: Mapping[str, Sink]) -> tuple[Delivered, ...]:
    """One round for every sink, side by side, waited for."""
    rounds = (post.round(name, sink) for name, sink in sinks.items())
    return tuple(await asyncio.gather(*rounds))
