"""Jobs and their signals as rows."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, select, union_all

from jobmond.errors import StoreError
from jobmond.model.job import Choices, ClusterHealth, Job, LogEvidence
from jobmond.model.observation import Facts, Part
from jobmond.model.outcome import Diagnosis, Signal
from jobmond.model.state import Bucket, Kind, PostMortem, Severity, State
from jobmond.model.training import Training
from jobmond.model.trials import Work
from jobmond.store import codec
from jobmond.store.engine import IN_LIST, batched
from jobmond.store.schema import clusters, incarnations, runs, signals

Row = RowMapping | dict[str, Any]

# Carried from value to row and back under the same name, without any change.
_ALIKE = (
    "cluster",
    "native_id",
    "birth",
    "life",
    "type",
    "native",
    "added_at",
    "tracked",
    "discovered",
    "stale",
    "first_seen_at",
    "seen_at",
    "ended_at",
    "absent_since",
    "proof",
    "transitions",
    "post_mortem_tries",
    "agent_log",
    "successor",
    "probe",
    "note",
)
_HEALTH = tuple(column.name for column in clusters.c if column.name != "swept_at")


def job_row(job: Job, run_id: int) -> dict[str, Any]:
    """The columns of one incarnation, without its id and who untracked it when."""
    row = {name: getattr(job, name) for name in _ALIKE}
    return row | {
        "kind": job.kind.value,
        "run_id": run_id,
        "name": job.name,
        "bucket": job.bucket.value,
        "labels": sorted(job.labels),
        "choices": codec.dump(job.choices),
        "facts": codec.dump(job.facts),
        "state": job.state.value,
        "post_mortem": job.post_mortem.value,
        "log": codec.dump(job.log),
        "parts": [codec.dump(part) for part in job.parts] or None,
        "training": codec.dump(job.training) if job.training else None,
        "work": codec.dump(job.work) if job.work else None,
        "diagnosis": codec.dump(job.diagnosis) if job.diagnosis else None,
        "predecessor_id": job.predecessor,
    }


def job_of(row: Row, found: Sequence[Signal]) -> Job:
    """The job of one row of `job_select`.

    Raises:
        StoreError: the row holds a word or a shape that this version does not know.
    """
    try:
        return _job_of(row, found)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(
            f"the database's row {row['id']} of incarnations cannot be read: {error}"
        ) from error


def _job_of(row: Row, found: Sequence[Signal]) -> Job:
    diagnosis, training, work = row["diagnosis"], row["training"], row["work"]
    return Job(
        **{name: row[name] for name in _ALIKE},
        id=row["id"],
        kind=Kind(row["kind"]),
        run=row["run"],
        bucket=Bucket(row["bucket"]),
        labels=frozenset(row["labels"]),
        choices=codec.load(Choices, row["choices"]),
        facts=codec.load(Facts, row["facts"]),
        state=State(row["state"]),
        post_mortem=PostMortem(row["post_mortem"]),
        log=codec.load(LogEvidence, row["log"]),
        parts=tuple(codec.load(Part, part) for part in row["parts"] or ()),
        training=None if training is None else codec.load(Training, training),
        work=None if work is None else codec.load(Work, work),
        diagnosis=None if diagnosis is None else codec.load(Diagnosis, diagnosis),
        signals=tuple(found),
        predecessor=row["predecessor_id"],
    )


def job_select() -> Select[Any]:
    """All columns of an incarnation, and its run's name as `run`."""
    return select(incarnations, runs.c.name.label("run")).join(runs)


def jobs_where(connection: Connection, condition: ColumnElement[bool]) -> list[Job]:
    """The incarnations that meet `condition`, in the order they came."""
    return jobs_of(connection, job_select().where(condition).order_by(incarnations.c.id))


def any_of(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """True where one holds. Each is looked up by its own index: an OR would read all history."""
    arms = [select(incarnations.c.id).where(condition) for condition in conditions]
    return incarnations.c.id.in_(union_all(*arms))


def jobs_of(connection: Connection, query: Select[Any]) -> list[Job]:
    """The jobs of a query made of `job_select`, in its order."""
    rows = connection.execute(query).mappings().all()
    standing = signals_of(connection, [row["id"] for row in rows])
    return [job_of(row, standing.get(row["id"], ())) for row in rows]


def signals_of(connection: Connection, ids: Sequence[int]) -> dict[int, list[Signal]]:
    """Signals by incarnation, each list in the order it was stored."""
    found: dict[int, list[Signal]] = {}
    for some in batched(ids, IN_LIST):
        query = (
            select(signals)
            .where(signals.c.incarnation_id.in_(some))
            .order_by(signals.c.incarnation_id, signals.c.n)
        )
        for row in connection.execute(query).mappings():
            found.setdefault(row["incarnation_id"], []).append(_signal_of(row))
    return found


def signal_rows(incarnation_id: int, held: Iterable[Signal]) -> list[dict[str, Any]]:
    return [
        {
            "incarnation_id": incarnation_id,
            "n": n,
            "rule": signal.rule,
            "severity": signal.severity.value,
            "title": signal.title,
            "evidence": dict(signal.evidence),
            "action": signal.action,
            "step": signal.step,
            "last_step": signal.last_step,
            "opened_at": signal.opened_at,
            "cleared_at": signal.cleared_at,
            "recovered_at": signal.recovered_at,
        }
        for n, signal in enumerate(held)
    ]


def _signal_of(row: Row) -> Signal:
    held = {name: value for name, value in row.items() if name not in ("incarnation_id", "n")}
    return Signal(**held | {"severity": Severity(row["severity"])})


def health_row(health: ClusterHealth) -> dict[str, Any]:
    return {name: getattr(health, name) for name in _HEALTH}


def health_of(row: Row) -> ClusterHealth:
    """Its counts per hour are 0."""
    return ClusterHealth(**{name: row[name] for name in _HEALTH})
