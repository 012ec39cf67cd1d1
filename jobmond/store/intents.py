"""What is to be cancelled, and how far that has come."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, select, update

from jobmond.analysis.acting import SPARED
from jobmond.model.intent import Intent, Stage, Unsettled
from jobmond.store.engine import insert_new, write
from jobmond.store.news import DELIVERED
from jobmond.store.rows import jobs_where
from jobmond.store.schema import incarnations, intents, outbox

_OPEN = (Stage.DECIDED.value, Stage.ASKED.value)


def decide(connection: Connection, decided: Iterable[tuple[int, Intent]]) -> None:
    """New intents of these incarnations; one that is under way stays as it is."""
    decided = list(decided)
    numbers = [number for number, _ in decided]
    over = intents.c.stage.not_in(_OPEN)
    connection.execute(delete(intents).where(intents.c.incarnation_id.in_(numbers), over))
    rows = [
        {
            "incarnation_id": number,
            "rule": one.rule,
            "step": one.step,
            "evidence": one.evidence,
            "allowed_by": one.allowed_by,
            "decided_at": one.decided_at,
            "stage": one.stage.value,
            "attempts": one.attempts,
        }
        for number, one in decided
    ]
    write(connection, insert_new(connection, intents), rows)


def unsettled(connection: Connection, cluster: str) -> tuple[Unsettled, ...]:
    """Those on a cluster that have not come to their end."""
    query = (
        select(intents)
        .join(incarnations)
        .where(incarnations.c.cluster == cluster, intents.c.stage.in_(_OPEN))
        .order_by(intents.c.id)
    )
    found = [_intent(row) for row in connection.execute(query).mappings()]
    ids = [one.job_id for one in found]
    jobs = {job.id: job for job in jobs_where(connection, incarnations.c.id.in_(ids))}
    spared = _spared(connection, cluster) if found else frozenset()
    return tuple(Unsettled(one, jobs[one.job_id], spared) for one in found)


def _spared(connection: Connection, cluster: str) -> frozenset[str]:
    """Native ids of tracked jobs there that people said are not to be cancelled."""
    query = select(incarnations.c.native_id, incarnations.c.labels).where(
        incarnations.c.cluster == cluster, incarnations.c.tracked
    )
    found = connection.execute(query)
    return frozenset(native_id for native_id, labels in found if SPARED & set(labels))


def of_job(connection: Connection, job_id: int) -> tuple[Intent, ...]:
    query = select(intents).where(intents.c.incarnation_id == job_id).order_by(intents.c.id)
    return tuple(_intent(row) for row in connection.execute(query).mappings())


def move(
    connection: Connection,
    intent_id: int,
    stage: Stage,
    *,
    detail: str | None,
    asked_at: datetime | None = None,
) -> None:
    """Another stage; with `asked_at` one more attempt."""
    held: dict[str, Any] = {"stage": stage.value, "detail": detail}
    if asked_at is not None:
        held |= {"asked_at": asked_at, "attempts": intents.c.attempts + 1}
    connection.execute(update(intents).where(intents.c.id == intent_id).values(held))


def stands(connection: Connection, key: str, sink: str) -> bool:
    """Whether a delivery was made."""
    query = select(outbox.c.state).where(outbox.c.key == key, outbox.c.sink == sink)
    return connection.execute(query).scalar() == DELIVERED


def _intent(row: RowMapping) -> Intent:
    held = {name: value for name, value in row.items() if name != "incarnation_id"}
    return Intent(**held | {"job_id": row["incarnation_id"], "stage": Stage(row["stage"])})
