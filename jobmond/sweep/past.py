"""What explaining the ends of a sweep needs of the past, loaded before anything is decided."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

from jobmond.analysis.ends import wants_explaining
from jobmond.analysis.settle import Move
from jobmond.model.commit import NO_PAST, Past
from jobmond.sweep.conclude import Terms

Call = Callable[..., Awaitable[Any]]

COMPARED = 2000  # failures of a cluster that a new one is compared with, the newest


class Archive(Protocol):
    """Where failures are kept."""

    def past(self, cluster: str, ids: Sequence[int], *, since: datetime, limit: int) -> Past: ...


class Archives(Protocol):
    """The part of the store that remembers failures."""

    @property
    def failures(self) -> Archive: ...


async def past_of(
    cluster: str,
    moves: Sequence[Move],
    store: Archives,
    call: Call,
    *,
    terms: Terms,
    now: datetime,
) -> Past:
    """Nothing is loaded where there is no end to explain."""
    ids = [move.job.id for move in moves if wants_explaining(move)]
    if not ids:
        return NO_PAST
    since = now - terms.recurrence_window
    found: Past = await call(store.failures.past, cluster, ids, since=since, limit=COMPARED)
    return found
