"""The event stream and the outbox. Both take a key once and pass over it afterwards."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, func, select, update

from jobmond.errors import Refused
from jobmond.model.outcome import Delivery, News
from jobmond.model.state import Severity
from jobmond.store.engine import insert_new, write
from jobmond.store.schema import events, outbox

PENDING, DELIVERED, GIVEN_UP = "pending", "delivered", "given-up"
LONGEST_WAIT = timedelta(days=1)  # nothing is ever put off for longer than this


def tell(connection: Connection, news: Sequence[News]) -> None:
    rows = [
        {
            "key": one.key,
            "at": one.at,
            "type": one.type,
            "severity": one.severity.value,
            "cluster": one.cluster,
            "ref": one.ref,
            "payload": dict(one.payload),
        }
        for one in news
    ]
    write(connection, insert_new(connection, events), rows)


def owe(connection: Connection, deliveries: Sequence[Delivery]) -> None:
    rows = [
        {
            "key": one.key,
            "sink": one.sink,
            "body": dict(one.body),
            "created_at": one.created_at,
            "due_at": one.due_at,
            "attempts": one.attempts,
            "last_error": one.last_error,
            "state": PENDING,
        }
        for one in deliveries
    ]
    write(connection, insert_new(connection, outbox), rows)


def told(
    connection: Connection, *, after_key: str | None, since: datetime | None, limit: int
) -> tuple[News, ...]:
    query = select(events)
    if since is not None:
        query = query.where(events.c.at >= since)
    if after_key is not None:
        query = query.where(events.c.seq > _place(connection, after_key))
    if after_key is None and since is None:
        rows = connection.execute(query.order_by(events.c.seq.desc()).limit(limit)).mappings()
        return tuple(_news(row) for row in rows)[::-1]
    rows = connection.execute(query.order_by(events.c.seq).limit(limit)).mappings()
    return tuple(_news(row) for row in rows)


def _place(connection: Connection, key: str) -> int:
    seq = connection.execute(select(events.c.seq).where(events.c.key == key)).scalar()
    if seq is None:
        raise Refused(f"no event has the key {key!r} any more; ask with a time instead of a key")
    return int(seq)


def due(connection: Connection, sink: str, now: datetime, limit: int) -> tuple[Delivery, ...]:
    query = (
        select(outbox)
        .where(outbox.c.state == PENDING, outbox.c.sink == sink)
        .order_by(outbox.c.id)
        .limit(limit)
    )
    ready: list[Delivery] = []
    for row in connection.execute(query).mappings():
        if not _is_due(row, now):
            break  # what comes later waits behind it, or the order of a job's news would change
        ready.append(_delivery(row))
    return tuple(ready)


def _is_due(row: RowMapping, now: datetime) -> bool:
    """Never held back by a clock that ran ahead when the row was written and was set right."""
    fresh = row["attempts"] == 0 and row["due_at"] == row["created_at"]
    return bool(fresh or row["due_at"] <= now or row["due_at"] > now + LONGEST_WAIT)


def delivered(connection: Connection, ids: Sequence[int], now: datetime) -> None:
    _settle(connection, ids, {"state": DELIVERED, "settled_at": now, "last_error": None})


def retry_later(connection: Connection, ids: Sequence[int], error: str, due_at: datetime) -> None:
    _settle(connection, ids, {"last_error": error, "due_at": due_at})


def give_up(connection: Connection, ids: Sequence[int], error: str) -> None:
    _settle(
        connection,
        ids,
        {"state": GIVEN_UP, "last_error": error, "settled_at": outbox.c.due_at},
    )


def undelivered(connection: Connection, sink: str) -> int:
    query = select(func.count()).where(outbox.c.state == PENDING, outbox.c.sink == sink)
    return int(connection.execute(query).scalar_one())


def waiting_sinks(connection: Connection) -> tuple[str, ...]:
    query = select(outbox.c.sink).where(outbox.c.state == PENDING).distinct()
    return tuple(sorted(connection.execute(query).scalars()))


def _settle(connection: Connection, ids: Sequence[int], held: Mapping[str, Any]) -> None:
    statement = (
        update(outbox)
        .where(outbox.c.id == bindparam("row"), outbox.c.state == PENDING)
        .values(**held, attempts=outbox.c.attempts + 1)
    )
    write(connection, statement, [{"row": number} for number in ids])


def _news(row: RowMapping) -> News:
    return News(
        key=row["key"],
        at=row["at"],
        type=row["type"],
        severity=Severity(row["severity"]),
        cluster=row["cluster"],
        ref=row["ref"],
        payload=row["payload"],
    )


def _delivery(row: RowMapping) -> Delivery:
    return Delivery(
        id=row["id"],
        key=row["key"],
        sink=row["sink"],
        body=row["body"],
        created_at=row["created_at"],
        due_at=row["due_at"],
        attempts=row["attempts"],
        last_error=row["last_error"],
    )
