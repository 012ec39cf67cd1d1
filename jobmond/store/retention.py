"""Forgetting what is old, a bounded batch at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, func, or_, select

from jobmond.model.registered import Stage
from jobmond.model.state import PostMortem
from jobmond.store.news import DELIVERED, GIVEN_UP
from jobmond.store.schema import (
    audit,
    bookmarks,
    cluster_calls,
    events,
    followups,
    incarnations,
    outbox,
    registry_entries,
    runs,
)

EXPIRY_BATCH = 1000
CALLS_KEEP = timedelta(days=1)  # counts are shown for the last hour


@dataclass(frozen=True, slots=True)
class Expired:
    """How many of each were removed."""

    jobs: int = 0
    events: int = 0
    deliveries: int = 0
    readings: int = 0
    calls: int = 0
    audit: int = 0


Forget = Callable[[Connection], int]


def forgetters(
    now: datetime,
    *,
    history_keep: timedelta | None,
    events_keep: timedelta | None,
    outbox_keep: timedelta | None,
    readings_keep: timedelta | None,
    audit_keep: timedelta | None,
) -> dict[str, Forget]:
    """What to call, one transaction a call, until it answers 0; None keeps for good."""
    wanted: dict[str, Forget] = {
        "calls": _old(cluster_calls, cluster_calls.c.at < now - CALLS_KEEP)
    }
    if history_keep is not None:
        wanted["jobs"] = _old(incarnations, _forgettable(now - history_keep))
    if events_keep is not None:
        wanted["events"] = _old(events, events.c.at < now - events_keep)
    if outbox_keep is not None:
        settled = and_(
            outbox.c.state.in_((DELIVERED, GIVEN_UP)), outbox.c.settled_at < now - outbox_keep
        )
        wanted["deliveries"] = _old(outbox, settled)
    if readings_keep is not None:
        wanted["readings"] = _old(bookmarks, _read_through(now - readings_keep))
    if audit_keep is not None:
        wanted["audit"] = _old(audit, audit.c.at < now - audit_keep)
    return wanted


def drop_empty_runs(connection: Connection) -> None:
    """Runs whose last incarnation was forgotten."""
    held = select(incarnations.c.id).where(incarnations.c.run_id == runs.c.id).exists()
    connection.execute(delete(runs).where(~held))


def _forgettable(before: datetime) -> ColumnElement[bool]:
    """Left tracking long ago, nothing still being looked for, nothing owed for it."""
    table = incarnations.c
    ref = table.cluster + "/" + table.native_id
    owed = select(followups.c.id).where(
        followups.c.state == "open",
        or_(followups.c.ref == ref, followups.c.ref == ref + "@" + func.coalesce(table.birth, "")),
    )
    left_at = func.coalesce(table.ended_at, table.untracked_at, table.added_at)
    return and_(
        ~table.tracked,
        table.post_mortem != PostMortem.PENDING.value,
        left_at < before,
        or_(table.untracked_at.is_(None), table.untracked_at < before),
        ~owed.exists(),
        # An entry that still stands in its file would be taken for a new job.
        ~select(registry_entries.c.key)
        .where(
            registry_entries.c.incarnation_id == table.id,
            registry_entries.c.stage != Stage.GONE.value,
        )
        .exists(),
    )


def _read_through(before: datetime) -> ColumnElement[bool]:
    """Of a job that left tracking long ago, its end explained, and that no other job has yet to go
    on from.
    """
    job, later = incarnations.alias("job"), incarnations.alias("later")
    own = bookmarks.alias("own")
    left_at = func.coalesce(job.c.untracked_at, job.c.ended_at, job.c.added_at)
    waited_for = (
        select(later.c.id)
        .where(
            later.c.predecessor_id == job.c.id,
            later.c.tracked,
            ~select(own.c.incarnation_id).where(own.c.incarnation_id == later.c.id).exists(),
        )
        .exists()
    )
    done = select(job.c.id).where(
        job.c.id == bookmarks.c.incarnation_id,
        ~job.c.tracked,
        job.c.post_mortem != PostMortem.PENDING.value,
        left_at < before,
        ~waited_for,
    )
    return done.exists()


def _old(table: Table, condition: ColumnElement[bool]) -> Forget:
    key = next(iter(table.primary_key.columns))

    def forget(connection: Connection) -> int:
        chosen = select(key).where(condition).limit(EXPIRY_BATCH)
        return connection.execute(delete(table).where(key.in_(chosen))).rowcount

    return forget
