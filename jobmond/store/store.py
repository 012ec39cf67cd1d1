"""The store: every method is one transaction, every value in and out is frozen."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine

from jobmond.model.commit import Added, ClusterSnapshot, SweepCommit
from jobmond.model.intent import Intent, Stage, Unsettled
from jobmond.model.job import Choices, Classified, ClusterHealth, Job
from jobmond.model.observation import Facts
from jobmond.model.outcome import Delivery, Followup, News, SinkStanding, Transition
from jobmond.model.state import Kind
from jobmond.model.training import Place
from jobmond.store import bookmarks, intents, migrate, news, people, records, retention, sweeping
from jobmond.store.engine import database_file, engine, named, reading, writing
from jobmond.store.failures import Failures
from jobmond.store.open_file import OpenFile
from jobmond.store.owed import note
from jobmond.store.records import AuditLine
from jobmond.store.registries import Registries
from jobmond.store.retention import Expired
from jobmond.store.rows import jobs_where
from jobmond.store.schema import incarnations
from jobmond.store.trees import memories
from jobmond.store.trouble import one_line

P = ParamSpec("P")
R = TypeVar("R")


class Store:
    """One database, used by one thread at a time.

    Every method raises `StoreError` with one line where the database is locked, full, damaged or
    gone; nothing of a failed call is written. Whoever writes holds the database's `StoreLock`.
    """

    def __init__(self, made: Engine, where: str, file: OpenFile | None = None) -> None:
        self._engine = made
        self._where = where
        self._file = file

    @classmethod
    def open(cls, url: str, *, exclusive: bool = False) -> "Store":
        """Open `url` (`sqlite:////abs/path` or `postgresql+psycopg://…`) and migrate it.

        `exclusive` is for a SQLite file on a network file system: locked by this process as long
        as it is open, no WAL.

        Raises:
            ConfigError: `url` is none, or its driver is not installed.
            DatabaseFromTheFuture: a newer jobmond wrote it.
            StoreError: it cannot be used, in one line.
        """
        where = named(url)
        with one_line(where):
            made = engine(url, exclusive=exclusive)
            try:
                migrate.upgrade(made, where=where, path=database_file(url))
            except BaseException:
                made.dispose()
                raise
            path = database_file(url)
            return cls(made, where, OpenFile.at(path) if path else None)

    def close(self) -> None:
        with one_line(self._where):
            self._engine.dispose()

    # What a sweep needs

    def snapshot(self, cluster: str, *, correct_since: datetime) -> ClusterSnapshot:
        """What a sweep of `cluster` needs of the past; jobs LOST since `correct_since` included.

        Jobs that a person stopped tracking are left out. The health's counts per hour are 0.
        """
        return self._read(sweeping.snapshot, cluster, correct_since=correct_since)

    def known(
        self, cluster: str, kind: Kind, native_ids: Sequence[str]
    ) -> frozenset[tuple[str, str | None]]:
        """(native id, birth) of every incarnation stored under these ids."""
        return self._read(sweeping.known, cluster, kind, native_ids)

    def commit(self, swept: SweepCommit) -> None:
        """Write all that a sweep concluded, or nothing.

        What people changed since the snapshot stands: choices, and with them bucket, labels, run
        and note; a job they stopped tracking stays untracked, a deleted one is not written. A
        new job that is stored already is that row. News and deliveries whose key is taken are
        passed over, so that a commit may be repeated.
        """
        self._write(sweeping.commit, swept)

    def places(self, ids: Sequence[int]) -> Mapping[int, Place]:
        """Where the readings of these incarnations' logs stand."""
        return self._read(bookmarks.places, ids)

    def readings(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        """What was put down of these incarnations' logs, packed."""
        return self._read(bookmarks.readings, ids)

    def trees(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        """What is known of the trees of trials of these incarnations, packed."""
        return self._read(memories, ids)

    def unsettled_intents(self, cluster: str) -> tuple[Unsettled, ...]:
        """Those on a cluster that have not come to their end, with their jobs as stored."""
        return self._read(intents.unsettled, cluster)

    def intents_of(self, job_id: int) -> tuple[Intent, ...]:
        return self._read(intents.of_job, job_id)

    def move_intent(
        self,
        intent_id: int,
        stage: Stage,
        *,
        detail: str | None = None,
        asked_at: datetime | None = None,
    ) -> None:
        """Another stage; with `asked_at` one more attempt."""
        self._write(intents.move, intent_id, stage, detail=detail, asked_at=asked_at)

    def stands(self, key: str, sink: str) -> bool:
        """Whether a delivery was made."""
        return self._read(intents.stands, key, sink)

    def set_sweep_times(self, last_at: datetime | None, next_at: datetime | None) -> None:
        self._write(records.set_sweep_times, last_at, next_at)

    # What people ask

    def add(
        self,
        cluster: str,
        kind: Kind,
        native_id: str,
        *,
        choices: Choices,
        classified: Classified,
        now: datetime,
        birth: str | None = None,
        facts: Facts | None = None,
        submitted_at: datetime | None = None,
    ) -> Added:
        """Track a job; where it is tracked already, change only what `choices` gives.

        `created` is whether tracking began now. An incarnation that has ended is not tracked
        again; it is meant where `birth` says so, or `submitted_at` within a day of what its
        source said. `submitted_at` is kept as the facts' until the source is asked.

        Raises:
            Refused: the id is tracked with another birth.
        """
        known = facts or Facts()
        if known.submitted_at is None and submitted_at is not None:
            known = people.submitted(known, submitted_at)
        asked = people.fresh(
            cluster,
            kind,
            native_id,
            choices=choices,
            classified=classified,
            birth=birth,
            facts=known,
            now=now,
        )
        return self._write(people.add, asked, classified=classified, submitted_at=submitted_at)

    def find(self, word: str) -> tuple[Job, ...]:
        """The jobs that `word` can mean: a ref, `ref@birth`, a native id, else a name.

        The tracked or else newest incarnation stands for its ref, tracked jobs before ended
        ones, and of a run the latest life for the name. None is unknown, several are ambiguous.
        """
        return self._read(people.find, word)

    def choose(self, job_id: int, choices: Choices, classified: Classified) -> Job:
        """Replace what was chosen; a job that changes its run becomes that run's next life.

        Raises:
            Refused: there is no such job.
        """
        return self._write(people.choose, job_id, choices, classified)

    def untrack(self, job_id: int, *, by: str, now: datetime) -> Job:
        """Stop tracking, on a person's word: no sweep takes it up again.

        Raises:
            Refused: there is no such job.
        """
        return self._write(people.untrack, job_id, by=by, now=now)

    def jobs(self, *, recent_since: datetime) -> tuple[Job, ...]:
        """Tracked jobs and those that ended since, in the order they were added."""
        return self._read(records.recent, recent_since)

    def job(self, job_id: int) -> Job | None:
        return next(iter(self._read(jobs_where, incarnations.c.id == job_id)), None)

    def superseded(self, jobs: Iterable[Job]) -> frozenset[int]:
        """The ids of those that do not own their ref: the tracked or else newest one does."""
        return self._read(people.superseded, [job.id for job in jobs])

    def lives(self, run: str, cluster: str) -> tuple[Job, ...]:
        """All incarnations of a run, by life."""
        return self._read(records.lives, run, cluster)

    def transitions(self, job_id: int) -> tuple[Transition, ...]:
        """What one incarnation went through, in order."""
        return self._read(records.went_through, job_id)

    def history(
        self, *, since: datetime | None = None, job_id: int | None = None, limit: int = 1000
    ) -> tuple[Job, ...]:
        """The last `limit` jobs that ended, oldest first; with `job_id` all lives of its run."""
        return self._read(records.ended_jobs, since=since, job_id=job_id, limit=limit)

    def events(
        self, *, after_key: str | None = None, since: datetime | None = None, limit: int = 1000
    ) -> tuple[News, ...]:
        """News in the order it was committed: the first `limit` after the key or since the time,
        the last `limit` where neither is given.

        Raises:
            Refused: no event has the key.
        """
        return self._read(news.told, after_key=after_key, since=since, limit=limit)

    def clusters(self, now: datetime) -> tuple[ClusterHealth, ...]:
        """Every cluster that was ever swept, with its calls and logins of the last hour."""
        return self._read(records.healths, now)

    def watched_clusters(self) -> frozenset[str]:
        """Those with a job, an ended one's log or a tree that is to go, to look at."""
        return self._read(records.watched)

    def swept_at(self) -> dict[str, datetime]:
        """When each cluster's last sweep was committed."""
        return self._read(records.swept_at)

    def sweep_times(self) -> Mapping[str, datetime]:
        """`last_sweep_at` and `next_sweep_at`, each where it is known."""
        return self._read(records.sweep_times)

    # What is owed to people

    def followups(self, *, all: bool = False) -> tuple[Followup, ...]:
        """Open follow-ups, with `all` closed ones too, in the order they were opened."""
        return self._read(records.owed, closed_too=all)

    def close_followup(
        self, followup_id: int, *, by: str, verdict: str | None, note: str | None, now: datetime
    ) -> Followup:
        """Close one.

        Raises:
            Refused: there is none, or it is closed.
        """
        return self._write(
            records.close_followup, followup_id, by=by, verdict=verdict, note=note, now=now
        )

    def note_followup(self, followup_id: int, evidence: Mapping[str, Any]) -> None:
        """More is known of an open one."""
        self._write(note, followup_id, evidence)

    # What is owed to sinks

    def publish(self, told: Sequence[News], deliveries: Sequence[Delivery]) -> None:
        """News that no sweep concluded, and what is owed for it; a taken key is passed over."""
        self._write(_publish, told, deliveries)

    def due(self, sink: str, now: datetime, limit: int, *, aside: int = 0) -> tuple[Delivery, ...]:
        """What to send to one sink now, strictly in order: a delivery that waits for its next
        try holds back all later ones. Of those that failed again and again, up to `aside` hold
        back only what is about the same job."""
        return self._read(news.due, sink, now, limit, aside=aside)

    def delivered(self, ids: Sequence[int], now: datetime) -> None:
        self._write(news.delivered, ids, now)

    def retry_later(self, ids: Sequence[int], error: str, due_at: datetime) -> None:
        self._write(news.retry_later, ids, error, due_at)

    def give_up(self, ids: Sequence[int], error: str, now: datetime) -> None:
        """The sink will never take these; they hold back nothing any more."""
        self._write(news.give_up, ids, error, now)

    def shed(
        self, sink: str, *, created_before: datetime, keep: int, error: str, now: datetime
    ) -> int:
        """Give up what waits since `created_before`, and all but the newest `keep`; how many."""
        return self._write(
            news.shed, sink, created_before=created_before, keep=keep, error=error, now=now
        )

    def standings(self) -> tuple[SinkStanding, ...]:
        """Every sink that something waits for or was given up at, configured or not."""
        return self._read(news.standings)

    def undelivered(self, sink: str) -> int:
        """How many deliveries wait for one sink."""
        return self._read(news.undelivered, sink)

    def outbox_sinks(self) -> tuple[str, ...]:
        """The sinks that something waits for, whether they are configured or not."""
        return self._read(news.waiting_sinks)

    @property
    def failures(self) -> Failures:
        """What failed."""
        return Failures(self._read)

    @property
    def registries(self) -> Registries:
        """What is remembered of registry files."""
        return Registries(self._read, self._write)

    def audit(
        self,
        *,
        at: datetime,
        uid: int | None,
        action: str,
        subject: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        self._write(records.write_audit, AuditLine(at, uid, action, subject, detail or {}))

    def audit_trail(self, limit: int = 1000) -> tuple[AuditLine, ...]:
        """The last `limit` lines, oldest first."""
        return self._read(records.audit_trail, limit)

    def expire(
        self,
        now: datetime,
        *,
        history_keep: timedelta | None = None,
        events_keep: timedelta | None = None,
        outbox_keep: timedelta | None = None,
        readings_keep: timedelta | None = None,
        audit_keep: timedelta | None = None,
        batches: int = 20,
    ) -> Expired:
        """Remove what is older; None keeps it for good. Each batch is a transaction of its own.

        At most `batches` of 1000 rows of each kind are removed, so that a call stays short;
        what is left goes with the next one.

        Never removes tracked jobs, jobs that something is still owed or looked for,
        undelivered news, or the reading of a log that a job has yet to go on from.
        """
        wanted = retention.forgetters(
            now,
            history_keep=history_keep,
            events_keep=events_keep,
            outbox_keep=outbox_keep,
            readings_keep=readings_keep,
            audit_keep=audit_keep,
        )
        counts = {name: self._some_of(forget, batches) for name, forget in wanted.items()}
        if counts.get("jobs"):
            self._write(retention.drop_empty_runs)
        return Expired(**counts)

    def _some_of(self, forget: retention.Forget, batches: int) -> int:
        total = 0
        for _ in range(batches):
            removed = self._write(forget)
            total += removed
            if removed < retention.EXPIRY_BATCH:
                break
        return total

    def _read(
        self, query: Callable[Concatenate[Connection, P], R], *args: P.args, **kw: P.kwargs
    ) -> R:
        self._check()
        with one_line(self._where), reading(self._engine) as connection:
            return query(connection, *args, **kw)

    def _write(
        self, change: Callable[Concatenate[Connection, P], R], *args: P.args, **kw: P.kwargs
    ) -> R:
        self._check()
        with one_line(self._where), writing(self._engine) as connection:
            return change(connection, *args, **kw)

    def _check(self) -> None:
        if self._file is not None:
            self._file.check()


def _publish(connection: Connection, told: Sequence[News], deliveries: Sequence[Delivery]) -> None:
    news.tell(connection, told)
    news.owe(connection, deliveries)
