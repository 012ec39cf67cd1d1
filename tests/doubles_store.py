"""An in-memory store with the methods the desk asks of the real one, and things around it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from jobmond.analysis.failures import failure_of
from jobmond.errors import Refused
from jobmond.model.commit import Added
from jobmond.model.job import Choices, Classified, ClusterHealth, Job
from jobmond.model.observation import Facts
from jobmond.model.outcome import Failure, Followup, News, SinkStanding, Transition
from jobmond.model.state import Bucket, Kind, Severity, State

NOW = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)


def job(ref: str = "leonardo/4711", **over: Any) -> Job:
    """A tracked, running SLURM job of alice, changed as asked."""
    cluster, _, native_id = ref.partition("/")
    plain: dict[str, Any] = {
        "id": 1,
        "cluster": cluster,
        "kind": Kind.SLURM,
        "native_id": native_id,
        "birth": "1764434000",
        "run": "train",
        "life": 1,
        "bucket": Bucket.OTHER,
        "type": "other",
        "labels": frozenset(),
        "choices": Choices(owner="alice", owner_uid=1000),
        "facts": Facts(name="train", user="alice"),
        "state": State.RUNNING,
        "native": "RUNNING",
        "added_at": NOW - timedelta(hours=2),
    }
    return Job(**{**plain, **over})


def news(key: str, ref: str = "leonardo/4711") -> News:
    payload = {"schema": 1, "type": "transition", "after": "FAILED"}
    return News(key, NOW, "transition", Severity.ALARM, ref.partition("/")[0], ref, payload)


def owed(**over: Any) -> Followup:
    return replace(Followup(3, "kill-verdict", "leonardo/4711", "kill it?", NOW), **over)


def health(name: str, **over: Any) -> ClusterHealth:
    plain: dict[str, Any] = {"kind": "slurm", "active": True, "status": "ok", "since": NOW}
    return ClusterHealth(name=name, **{**plain, **over})


@dataclass
class FixedClock:
    """Stands still until it is moved."""

    at: datetime = NOW
    mono_s: float = 1000.0

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.mono_s

    def move(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)
        self.mono_s += seconds


class NoRegistries:
    """No registry file asked for anything."""

    def __init__(self) -> None:
        self.held: list[int] = []

    def hold(self, job_id: int) -> None:
        self.held.append(job_id)


class Failed:
    """Those of the jobs of a list that have a cause."""

    def __init__(self, rows: list[Job]) -> None:
        self._rows = rows

    def since(self, at: datetime, *, limit: int) -> Sequence[Failure]:
        found = [failure_of(j, NOW) for j in self._rows if (j.ended_at or at) >= at]
        return [failure for failure in found if failure is not None][-limit:]


@dataclass
class MemoryStore:
    """Lists in place of tables; nothing is checked that the real one's tests check."""

    rows: list[Job] = field(default_factory=list)
    told: list[News] = field(default_factory=list)
    healths: list[ClusterHealth] = field(default_factory=list)
    owed: list[Followup] = field(default_factory=list)
    steps: dict[int, list[Transition]] = field(default_factory=dict)
    audited: list[tuple[int, str, str, Mapping[str, Any]]] = field(default_factory=list)
    swept: dict[str, datetime] = field(default_factory=dict)
    registries: NoRegistries = field(default_factory=NoRegistries)
    sinks: list[SinkStanding] = field(default_factory=list)

    @property
    def failures(self) -> Failed:
        return Failed(self.rows)

    def standings(self) -> Sequence[SinkStanding]:
        return list(self.sinks)

    def find(self, word: str) -> Sequence[Job]:
        return [j for j in self.rows if word in (j.ref, f"{j.ref}@{j.birth}", j.native_id, j.name)]

    def add(
        self,
        cluster: str,
        kind: Kind,
        native_id: str,
        *,
        choices: Choices,
        classified: Classified,
        birth: str | None,
        facts: Facts,
        now: datetime,
        submitted_at: datetime | None,
    ) -> Added:
        if any(j.tracked and j.ref == f"{cluster}/{native_id}" for j in self.rows):
            raise Refused("is still tracked as an earlier job under this id")
        fresh = job(
            f"{cluster}/{native_id}",
            id=len(self.rows) + 1,
            kind=kind,
            birth=birth,
            run=classified.run,
            bucket=classified.bucket,
            type=classified.type,
            labels=classified.labels,
            choices=choices,
            facts=replace(facts, submitted_at=submitted_at),
            state=State.PENDING,
            native="",
            added_at=now,
        )
        self.rows.append(fresh)
        return Added(fresh, created=True)

    def known(
        self, cluster: str, kind: Kind, native_ids: Sequence[str]
    ) -> set[tuple[str, str | None]]:
        same = [j for j in self.rows if (j.cluster, j.kind) == (cluster, kind)]
        return {(j.native_id, j.birth) for j in same if j.native_id in native_ids}

    def choose(self, job_id: int, choices: Choices, classified: Classified) -> None:
        self._swap(
            job_id,
            choices=choices,
            run=classified.run,
            bucket=classified.bucket,
            type=classified.type,
            labels=classified.labels,
        )

    def untrack(self, job_id: int, *, by: str, now: datetime) -> None:
        self._swap(job_id, tracked=False)

    def jobs(self, *, recent_since: datetime) -> Sequence[Job]:
        return [j for j in self.rows if j.tracked or (j.ended_at or NOW) >= recent_since]

    def job(self, job_id: int) -> Job | None:
        return next((j for j in self.rows if j.id == job_id), None)

    def lives(self, run: str, cluster: str) -> Sequence[Job]:
        return [j for j in self.rows if (j.run, j.cluster) == (run, cluster)]

    def transitions(self, job_id: int) -> Sequence[Transition]:
        return self.steps.get(job_id, [])

    def history(self, *, since: datetime | None, job_id: int | None, limit: int) -> Sequence[Job]:
        over = [j for j in self.rows if j.ended_at is not None]
        over = [j for j in over if since is None or j.ended_at >= since]
        return [j for j in over if job_id in (None, j.id)][:limit]

    def events(
        self, *, after_key: str | None, since: datetime | None, limit: int
    ) -> Sequence[News]:
        keys = [n.key for n in self.told]
        start = keys.index(after_key) + 1 if after_key in keys else 0
        return [n for n in self.told[start:] if since is None or n.at >= since][:limit]

    def clusters(self, now: datetime) -> Sequence[ClusterHealth]:
        return list(self.healths)

    def followups(self, *, all: bool) -> Sequence[Followup]:
        return [f for f in self.owed if all or f.state == "open"]

    def close_followup(
        self, followup_id: int, *, by: str, verdict: str | None, note: str | None, now: datetime
    ) -> None:
        self.owed = [
            replace(f, state="closed", closed_by=by, verdict=verdict, note=note, closed_at=now)
            if f.id == followup_id
            else f
            for f in self.owed
        ]

    def audit(
        self, *, at: datetime, uid: int, action: str, subject: str, detail: Mapping[str, Any]
    ) -> None:
        self.audited.append((uid, action, subject, dict(detail)))

    def superseded(self, jobs: Sequence[Job]) -> set[int]:
        newest = {j.ref: j.id for j in self.rows}
        return {j.id for j in jobs if newest[j.ref] > j.id}

    def swept_at(self) -> Mapping[str, datetime]:
        return dict(self.swept)

    def _swap(self, job_id: int, **over: Any) -> None:
        self.rows = [replace(j, **over) if j.id == job_id else j for j in self.rows]
