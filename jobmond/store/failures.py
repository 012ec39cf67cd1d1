"""What failed, and what the jobs to be explained went through: the past that explains an end."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from jobmond.analysis.failures import lived_s
from jobmond.errors import StoreError
from jobmond.model.commit import Past
from jobmond.model.observation import Facts
from jobmond.model.outcome import Diagnosis, Failure, Transition
from jobmond.model.state import WORST_FIRST, State
from jobmond.store import codec
from jobmond.store.engine import IN_LIST, batched
from jobmond.store.records import transition_of
from jobmond.store.schema import incarnations, runs, transitions

_FAILED = tuple(state.value for state in WORST_FIRST if state is not State.CANCELLED)


class Failures:
    """The part of the store that remembers failures; each method is one transaction."""

    def __init__(self, read: Callable[..., Any]) -> None:
        self._read = read

    def since(self, at: datetime, *, limit: int) -> tuple[Failure, ...]:
        """The last `limit` failures that were diagnosed and came since, oldest first."""
        found: tuple[Failure, ...] = self._read(_failures, since=at, limit=limit)
        return found

    def past(self, cluster: str, ids: Sequence[int], *, since: datetime, limit: int) -> Past:
        """What explaining the ends of the jobs `ids` needs: the last `limit` failures of their
        cluster since then, and what the jobs went through.
        """
        found: Past = self._read(_past, cluster, ids, since=since, limit=limit)
        return found


def _past(
    connection: Connection, cluster: str, ids: Sequence[int], *, since: datetime, limit: int
) -> Past:
    found = _failures(connection, since=since, cluster=cluster, limit=limit)
    return Past(found, _went_through(connection, ids))


def _failures(
    connection: Connection, *, since: datetime, cluster: str | None = None, limit: int
) -> tuple[Failure, ...]:
    table = incarnations.c
    columns = (
        table.id, table.cluster, table.native_id, table.birth, table.name, table.state,
        table.facts, table.diagnosis, table.ended_at, table.agent_log,
    )  # fmt: skip
    query = (
        select(*columns, runs.c.name.label("run"))
        .join(runs)
        .where(
            table.ended_at >= since,
            table.diagnosis.is_not(None),
            table.state.in_(_FAILED),
        )
        .order_by(table.ended_at.desc(), table.id.desc())
        .limit(limit)
    )
    if cluster is not None:
        query = query.where(table.cluster == cluster)
    rows = connection.execute(query).mappings().all()
    return tuple(_failure_of(row) for row in reversed(rows))


def _failure_of(row: RowMapping) -> Failure:
    try:
        facts, found = codec.load(Facts, row["facts"]), codec.load(Diagnosis, row["diagnosis"])
        state = State(row["state"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(
            f"the database's row {row['id']} of incarnations cannot be read: {error}"
        ) from error
    return Failure(
        ref=f"{row['cluster']}/{row['native_id']}",
        birth=row["birth"],
        name=row["name"],
        run=row["run"],
        config=facts.command,
        state=state,
        cause=found.cause,
        fingerprint=found.fingerprint,
        summary=found.summary,
        at=row["ended_at"],
        elapsed_s=lived_s(facts, row["ended_at"]),
        entry=row["agent_log"],
    )


def _went_through(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[Transition, ...]]:
    found: dict[int, list[Transition]] = {}
    for some in batched(sorted(set(ids)), IN_LIST):
        query = (
            select(transitions)
            .where(transitions.c.incarnation_id.in_(some))
            .order_by(transitions.c.incarnation_id, transitions.c.n)
        )
        for row in connection.execute(query).mappings():
            found.setdefault(row["incarnation_id"], []).append(transition_of(row))
    return {number: tuple(held) for number, held in found.items()}
