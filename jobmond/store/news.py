"""The event stream and the outbox. Both take a key once and pass over it afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    and_,
    bindparam,
    func,
    or_,
    select,
    update,
)

from jobmond.errors import Refused
from jobmond.model.outcome import Delivery, News, SinkStanding
from jobmond.model.state import Severity
from jobmond.store.engine import insert_new, write
from jobmond.store.schema import events, outbox

PENDING, DELIVERED, GIVEN_UP = "pending", "delivered", "given-up"
STUBBORN = 5  # tries after which it is more likely the event than the receiver
_LOOK_AHEAD = 1000
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


def due(
    connection: Connection, sink: str, now: datetime, limit: int, *, aside: int = 0
) -> tuple[Delivery, ...]:
    query = (
        select(outbox)
        .where(outbox.c.state == PENDING, outbox.c.sink == sink)
        .order_by(outbox.c.id)
        .limit(max(limit, _LOOK_AHEAD) if aside else limit)
    )
    ready: list[Delivery] = []
    held: set[str] = set()
    for row in connection.execute(query).mappings():
        job = _about(row["body"])
        if job in held:
            continue
        if not _is_due(row, now):
            if row["attempts"] < STUBBORN or len(held) == aside:
                break  # what comes later waits behind it, or the order of news would change
            held.add(job)
            continue
        ready.append(_delivery(row))
        if len(ready) == limit:
            break
    return tuple(ready)


def _about(body: Mapping[str, Any]) -> str:
    """The job that a piece of news is about; all that is about none counts as one."""
    job = body.get("job")
    return str(job.get("ref")) if isinstance(job, Mapping) else ""


def _is_due(row: RowMapping, now: datetime) -> bool:
    """Never held back by a clock that ran ahead when the row was written and was set right."""
    fresh = row["attempts"] == 0 and row["due_at"] == row["created_at"]
    return bool(fresh or row["due_at"] <= now or row["due_at"] > now + LONGEST_WAIT)


def delivered(connection: Connection, ids: Sequence[int], now: datetime) -> None:
    _settle(connection, ids, {"state": DELIVERED, "settled_at": now, "last_error": None})


def retry_later(connection: Connection, ids: Sequence[int], error: str, due_at: datetime) -> None:
    _settle(connection, ids, {"last_error": error, "due_at": due_at})


def give_up(connection: Connection, ids: Sequence[int], error: str, now: datetime) -> None:
    _settle(connection, ids, {"state": GIVEN_UP, "last_error": error, "settled_at": now})


def shed(
    connection: Connection,
    sink: str,
    *,
    created_before: datetime,
    keep: int,
    error: str,
    now: datetime,
) -> int:
    """Give up what waits since `created_before`, and all but the newest `keep`.

    Where the sink has taken something since, only what it failed at again and again is too old:
    the rest waits behind that, and its turn comes.
    """
    waiting = and_(outbox.c.state == PENDING, outbox.c.sink == sink)
    newest = select(outbox.c.id).where(waiting).order_by(outbox.c.id.desc())
    beyond = connection.execute(newest.offset(keep).limit(1)).scalar()
    lapsed: ColumnElement[bool] = outbox.c.created_at < created_before
    if _took_something(connection, sink, created_before):
        lapsed = and_(lapsed, outbox.c.attempts >= STUBBORN)
    if beyond is not None:
        lapsed = or_(lapsed, outbox.c.id <= beyond)
    held = {"state": GIVEN_UP, "last_error": error, "settled_at": now}
    return connection.execute(update(outbox).where(waiting, lapsed).values(held)).rowcount


def undelivered(connection: Connection, sink: str) -> int:
    query = select(func.count()).where(outbox.c.state == PENDING, outbox.c.sink == sink)
    return int(connection.execute(query).scalar_one())


def waiting_sinks(connection: Connection) -> tuple[str, ...]:
    query = select(outbox.c.sink).where(outbox.c.state == PENDING).distinct()
    return tuple(sorted(connection.execute(query).scalars()))


def _took_something(connection: Connection, sink: str, since: datetime) -> bool:
    query = (
        select(outbox.c.settled_at)
        .where(outbox.c.state == DELIVERED, outbox.c.sink == sink)
        .order_by(outbox.c.id.desc())
        .limit(1)
    )
    last = connection.execute(query).scalar()
    return last is not None and last >= since


def standings(connection: Connection) -> tuple[SinkStanding, ...]:
    """Every sink that something waits for or was given up at."""
    first, last = func.min(outbox.c.id), func.max(outbox.c.id)
    counted = (
        select(outbox.c.sink, outbox.c.state, func.count().label("n"), first, last)
        .where(outbox.c.state.in_((PENDING, GIVEN_UP)))
        .group_by(outbox.c.sink, outbox.c.state)
    )
    found: dict[str, SinkStanding] = {}
    # Given up before pending: what waits is more urgent, and overwrites the error.
    for sink, state, n, lowest, highest in sorted(connection.execute(counted)):
        telling = lowest if state == PENDING else highest
        row = connection.execute(select(outbox).where(outbox.c.id == telling)).mappings().one()
        found[sink] = _standing(found.get(sink, SinkStanding(sink)), row, n)
    return tuple(found.values())


def _standing(known: SinkStanding, row: RowMapping, n: int) -> SinkStanding:
    error = row["last_error"] or known.last_error
    if row["state"] == GIVEN_UP:
        return replace(known, given_up=n, given_up_at=row["settled_at"], last_error=error)
    retry_at = row["due_at"] if row["attempts"] else None
    return replace(known, undelivered=n, retry_at=retry_at, last_error=error)


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
