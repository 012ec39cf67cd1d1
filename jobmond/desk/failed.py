"""What failed and how often, for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from jobmond.analysis.failures import Group, grouped
from jobmond.analysis.objects import recurrence_object
from jobmond.desk.desk import Desk
from jobmond.desk.fields import Field, Instant, Whole, read_object
from jobmond.desk.peer import Peer
from jobmond.model.outcome import Failure
from jobmond.reports.times import instant

DEFAULT_SPAN = timedelta(days=30)
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class FailuresRequest:
    """Failures since `since` (None: of the last 30 days), the last `limit` of them."""

    since: datetime | None = None
    limit: int = _MOST

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "FailuresRequest":
        form: dict[str, Field] = {"since": Instant(), "limit": Whole(1, _MOST, digits=True)}
        return cls(**read_object(query, form))


async def failures(desk: Desk, request: FailuresRequest, peer: Peer) -> dict[str, Any]:
    """Failures by signature, the one that came last first."""
    desk.rights.check_read(peer)
    since = request.since or desk.clock.now() - DEFAULT_SPAN
    found = await desk.call(desk.store.failures.since, since, limit=request.limit)
    return {"since": instant(since), "failures": [_row(group) for group in grouped(found)]}


def _row(group: Group) -> dict[str, Any]:
    newest = group.newest
    return {
        "fingerprint": group.fingerprint,
        "cause": newest.cause,
        "summary": newest.summary,
        "count": group.count,
        "first_at": instant(group.first_at),
        "last_at": instant(newest.at),
        "clusters": list(group.clusters),
        "runs": list(group.runs),
        "jobs": list(group.refs),
        "recurrence": recurrence_object(group.recurrence),
        "last": _last(newest),
    }


def _last(failure: Failure) -> dict[str, Any]:
    return {
        "ref": failure.ref,
        "name": failure.name,
        "state": failure.state.value,
        "elapsed_s": failure.elapsed_s,
        "agent_log": failure.entry,
    }
