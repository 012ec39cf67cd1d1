"""The outbox, emptied: each sink gets what it is owed, in order, whatever the others do."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from jobmond.errors import SinkRefusal, SinkRetry
from jobmond.model.outcome import Delivery
from jobmond.ports import Clock, Sink

journal = structlog.get_logger("jobmond.deliver")

BATCH = 200
BACKOFF = timedelta(seconds=15)
BACKOFF_MAX = timedelta(hours=1)

Call = Callable[..., Awaitable[Any]]


class Outbox(Protocol):
    """The part of the store that deliveries live in."""

    def due(self, sink: str, now: datetime, limit: int) -> Sequence[Delivery]: ...
    def delivered(self, ids: Sequence[int], now: datetime) -> None: ...
    def retry_later(self, ids: Sequence[int], error: str, due_at: datetime) -> None: ...
    def give_up(self, ids: Sequence[int], error: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one round did for one sink."""

    sink: str
    sent: int
    error: str | None = None


async def deliver(
    sink_name: str, sink: Sink, *, outbox: Outbox, call: Call, clock: Clock
) -> Delivered:
    """Send what is due to one sink, until nothing is or it refuses.

    A sink that wants a retry keeps its place in the queue: later deliveries wait behind it, so
    that the order of a job's news never changes.
    """
    sent = 0
    while True:
        now = clock.now()
        batch: Sequence[Delivery] = await call(outbox.due, sink_name, now, BATCH)
        if not batch:
            return Delivered(sink_name, sent)
        ids = [d.id for d in batch]
        try:
            await sink.send(batch)
        except SinkRetry as later:
            due_at = now + _wait(batch[0].attempts, later.after_s)
            await call(outbox.retry_later, ids, str(later), due_at)
            journal.warning("delivery postponed", sink=sink_name, error=str(later))
            return Delivered(sink_name, sent, str(later))
        except SinkRefusal as refusal:
            await call(outbox.give_up, ids, str(refusal))
            journal.error("delivery given up", sink=sink_name, error=str(refusal), events=len(ids))
            continue
        await call(outbox.delivered, ids, clock.now())
        sent += len(ids)


def _wait(attempts: int, asked_s: float | None) -> timedelta:
    if asked_s is not None:
        return min(timedelta(seconds=asked_s), BACKOFF_MAX)
    return min(BACKOFF * float(2 ** min(attempts, 12)), BACKOFF_MAX)


async def deliver_all(
    sinks: Mapping[str, Sink], *, outbox: Outbox, call: Call, clock: Clock
) -> tuple[Delivered, ...]:
    """One round for every sink; a slow one holds up none of the others."""
    return tuple(
        await asyncio.gather(
            *(
                deliver(name, sink, outbox=outbox, call=call, clock=clock)
                for name, sink in sinks.items()
            )
        )
    )
