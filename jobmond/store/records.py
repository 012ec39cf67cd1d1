"""What is shown: jobs and what they went through, clusters, follow-ups, the audit trail."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, func, select, update

from jobmond.errors import Refused
from jobmond.model.job import ClusterHealth, Job
from jobmond.model.outcome import Followup, Transition
from jobmond.model.state import PostMortem, State
from jobmond.store.rows import any_of, health_of, job_select, jobs_of, jobs_where
from jobmond.store.schema import (
    audit,
    cluster_calls,
    clusters,
    followups,
    incarnations,
    meta,
    runs,
    transitions,
)


@dataclass(frozen=True, slots=True)
class AuditLine:
    """Who changed what. `uid` is the peer's at the socket, None for jobmond itself."""

    at: datetime
    uid: int | None
    action: str
    subject: str | None
    detail: Mapping[str, Any]


def recent(connection: Connection, since: datetime) -> tuple[Job, ...]:
    table = incarnations.c
    return tuple(jobs_where(connection, any_of(table.tracked, table.ended_at >= since)))


def watched(connection: Connection) -> frozenset[str]:
    table = incarnations.c
    wanted = any_of(table.tracked, table.post_mortem == PostMortem.PENDING.value)
    at_work = frozenset(connection.scalars(select(table.cluster).where(wanted).distinct()))
    return at_work | {
        one.ref.partition("/")[0]
        for one in owed(connection, closed_too=False)
        if one.kind == "cleanup" and one.evidence.get("path")
    }


def lives(connection: Connection, run: str, cluster: str) -> tuple[Job, ...]:
    query = (
        job_select()
        .where(runs.c.cluster == cluster, runs.c.name == run)
        .order_by(incarnations.c.life, incarnations.c.id)
    )
    return tuple(jobs_of(connection, query))


def went_through(connection: Connection, job_id: int) -> tuple[Transition, ...]:
    query = (
        select(transitions).where(transitions.c.incarnation_id == job_id).order_by(transitions.c.n)
    )
    return tuple(transition_of(row) for row in connection.execute(query).mappings())


def transition_of(row: RowMapping) -> Transition:
    """The transition of one row."""
    return Transition(
        at=row["at"],
        before=State(row["before"]) if row["before"] else None,
        after=State(row["after"]),
        native=row["native"],
        correction=row["correction"],
    )


def ended_jobs(
    connection: Connection, *, since: datetime | None, job_id: int | None, limit: int
) -> tuple[Job, ...]:
    table = incarnations.c
    query = job_select().where(table.ended_at.is_not(None))
    if since is not None:
        query = query.where(table.ended_at >= since)
    if job_id is not None:
        its_run = select(table.run_id).where(table.id == job_id).scalar_subquery()
        query = query.where(table.run_id == its_run)
    newest = query.order_by(table.ended_at.desc(), table.id.desc()).limit(limit)
    return tuple(jobs_of(connection, newest))[::-1]


def healths(connection: Connection, now: datetime) -> tuple[ClusterHealth, ...]:
    hour = and_(cluster_calls.c.at > now - timedelta(hours=1), cluster_calls.c.at <= now)
    sums = (
        select(
            cluster_calls.c.cluster,
            func.sum(cluster_calls.c.logins),
            func.sum(cluster_calls.c.total),
            func.sum(cluster_calls.c.moved_bytes),
        )
        .where(hour)
        .group_by(cluster_calls.c.cluster)
    )
    counted = {name: tuple(map(int, sums)) for name, *sums in connection.execute(sums)}
    rows = connection.execute(select(clusters).order_by(clusters.c.name)).mappings()
    return tuple(
        replace(health_of(row), logins_per_h=logins, calls_per_h=total, log_bytes_per_h=moved)
        for row in rows
        for logins, total, moved in [counted.get(row["name"], (0, 0, 0))]
    )


def swept_at(connection: Connection) -> dict[str, datetime]:
    query = select(clusters.c.name, clusters.c.swept_at)
    return {row[0]: row[1] for row in connection.execute(query)}


def owed(connection: Connection, *, closed_too: bool) -> tuple[Followup, ...]:
    query = select(followups).order_by(followups.c.id)
    if not closed_too:
        query = query.where(followups.c.state == "open")
    return tuple(map(followup_of, connection.execute(query).mappings()))


def owed_on(connection: Connection, cluster: str) -> tuple[Followup, ...]:
    """What is owed for jobs of one cluster."""
    here = followups.c.ref.startswith(f"{cluster}/", autoescape=True)
    query = select(followups).where(followups.c.state == "open", here).order_by(followups.c.id)
    return tuple(map(followup_of, connection.execute(query).mappings()))


def followup_of(row: RowMapping | dict[str, Any]) -> Followup:
    """The follow-up of one row."""
    return Followup(**{**row, "evidence": row["evidence"] or {}})


def close_followup(
    connection: Connection,
    followup_id: int,
    *,
    by: str,
    verdict: str | None,
    note: str | None,
    now: datetime,
) -> Followup:
    query = select(followups).where(followups.c.id == followup_id)
    row = connection.execute(query).mappings().first()
    if row is None:
        raise Refused(f"there is no follow-up {followup_id}")
    if row["state"] != "open":
        raise Refused(f"follow-up {followup_id} was closed by {row['closed_by'] or 'jobmond'}")
    held = {
        "state": "closed",
        "closed_at": now,
        "closed_by": by,
        "verdict": verdict,
        "note": note,
    }
    connection.execute(update(followups).where(followups.c.id == followup_id).values(held))
    return followup_of(dict(row) | held)


def write_audit(connection: Connection, line: AuditLine) -> None:
    connection.execute(
        audit.insert(),
        {
            "at": line.at,
            "uid": line.uid,
            "action": line.action,
            "subject": line.subject,
            "detail": dict(line.detail),
        },
    )


def audit_trail(connection: Connection, limit: int) -> tuple[AuditLine, ...]:
    query = select(audit).order_by(audit.c.id.desc()).limit(limit)
    lines = [
        AuditLine(row["at"], row["uid"], row["action"], row["subject"], row["detail"])
        for row in connection.execute(query).mappings()
    ]
    return tuple(reversed(lines))


def set_sweep_times(
    connection: Connection, last_at: datetime | None, next_at: datetime | None
) -> None:
    connection.execute(update(meta).values(last_sweep_at=last_at, next_sweep_at=next_at))


def sweep_times(connection: Connection) -> dict[str, datetime]:
    row = connection.execute(select(meta.c.last_sweep_at, meta.c.next_sweep_at)).mappings().one()
    return {name: at for name, at in row.items() if at is not None}
