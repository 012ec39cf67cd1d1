"""Entries of registry files: which incarnation each means, and what should stand there."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from jobmond.model.commit import Added
from jobmond.model.job import Choices, Classified, Job
from jobmond.model.observation import Facts
from jobmond.model.outcome import Delivery
from jobmond.model.registered import Registered, Stage, WatchedFile
from jobmond.model.state import TERMINAL, Kind
from jobmond.store import people
from jobmond.store.engine import IN_LIST, batched, upsert, write
from jobmond.store.news import PENDING, owe
from jobmond.store.rows import jobs_where
from jobmond.store.schema import incarnations, outbox, registry_entries, registry_files

SINK = "registry_file:"  # one queue a file: one that cannot be written holds back no other

_entries = registry_entries.c
_LIVE = (Stage.PRESENT.value, Stage.MISSING.value)


def sink_name(path: str) -> str:
    """The outbox queue of one file."""
    return SINK + path


class Registries:
    """The part of the store that registry files live in; each method is one transaction."""

    def __init__(self, read: Callable[..., Any], write: Callable[..., Any]) -> None:
        self._read, self._write = read, write

    def entries(self, path: str) -> tuple[Registered, ...]:
        """All that is remembered of one file."""
        found: tuple[Registered, ...] = self._read(entries, path)
        return found

    def add(
        self,
        path: str,
        key: str,
        cluster: str,
        kind: Kind,
        native_id: str,
        *,
        choices: Choices,
        classified: Classified,
        submitted_at: datetime | None,
        last_status: str | None,
        now: datetime,
    ) -> Added:
        """Track what an entry means, as `Store.add` does, and remember the entry."""
        asked = people.fresh(
            cluster,
            kind,
            native_id,
            choices=choices,
            classified=classified,
            birth=None,
            facts=Facts(submitted_at=submitted_at),
            now=now,
        )
        added: Added = self._write(
            add,
            (path, key),
            asked,
            classified=classified,
            submitted_at=submitted_at,
            last_status=last_status,
            now=now,
        )
        return added

    def join(
        self, path: str, key: str, job_id: int, *, last_status: str | None, now: datetime
    ) -> None:
        """Remember an entry for a job that is known, and change nothing else."""
        self._write(join, (path, key), job_id, last_status=last_status, now=now)

    def move(self, path: str, keys: Collection[str], stage: Stage, now: datetime) -> None:
        """Put entries into another stage."""
        self._write(move, path, keys, stage, now)

    def forget(self, path: str, key: str) -> None:
        """What the entry meant is over for good; if it comes back it means something new."""
        self._write(forget, path, key)

    def needed(self, job_id: int) -> bool:
        """Whether another entry, of any file, still asks for the job, or anybody else does."""
        needs: bool = self._read(needed, job_id)
        return needs

    def hold(self, job_id: int) -> None:
        """A person asked for the job: no file ends its tracking any more."""
        self._write(hold, job_id)

    def wanted(self, path: str) -> dict[str, str | None]:
        """The status that should stand in each entry, None where it should go, by key."""
        status: dict[str, str | None] = self._read(wanted, path)
        return status

    def stood(self, path: str, written: Mapping[str, str | None], now: datetime) -> None:
        """The file was written so, or found to be so already."""
        self._write(stood, path, written, now)

    def owe(self, path: str, now: datetime) -> None:
        """The file does not say what it should: write it, unless that is owed already."""
        self._write(owe_once, path, now)

    def files(self) -> tuple[WatchedFile, ...]:
        """The files that somebody asked to watch."""
        found: tuple[WatchedFile, ...] = self._read(files)
        return found

    def watch(self, path: str, *, by: str, now: datetime) -> None:
        """Watch a file from now on."""
        self._write(watch, path, by=by, now=now)

    def unwatch(self, path: str) -> bool:
        """Watch a file no longer; whether it was by somebody's request."""
        known: bool = self._write(unwatch, path)
        return known


def unwatch(connection: Connection, path: str) -> bool:
    gone = connection.execute(delete(registry_files).where(registry_files.c.path == path))
    return gone.rowcount > 0


def entries(connection: Connection, path: str) -> tuple[Registered, ...]:
    rows = connection.execute(select(registry_entries).where(_entries.path == path)).mappings()
    held = rows.all()
    known: dict[int, Job] = {}
    for some in batched(sorted({row["incarnation_id"] for row in held}), IN_LIST):
        known |= {job.id: job for job in jobs_where(connection, incarnations.c.id.in_(some))}
    return tuple(
        Registered(
            path=row["path"],
            key=row["key"],
            job=known[row["incarnation_id"]],
            stage=Stage(row["stage"]),
            since=row["since"],
            sole=row["sole"],
            last_status=row["last_status"],
        )
        for row in held
    )


def add(
    connection: Connection,
    entry: tuple[str, str],
    asked: Job,
    *,
    classified: Classified,
    submitted_at: datetime | None,
    last_status: str | None,
    now: datetime,
) -> Added:
    added = people.add(connection, asked, classified=classified, submitted_at=submitted_at)
    sole = added.created or _only_files(connection, added.job.id)
    _put(connection, entry, added.job.id, sole=sole, last_status=last_status, now=now)
    return added


def join(
    connection: Connection,
    entry: tuple[str, str],
    job_id: int,
    *,
    last_status: str | None,
    now: datetime,
) -> None:
    sole = _only_files(connection, job_id)
    _put(connection, entry, job_id, sole=sole, last_status=last_status, now=now)


def _only_files(connection: Connection, job_id: int) -> bool:
    """Whether the job is tracked for the sake of entries, and of nothing else."""
    query = select(_entries.sole).where(_entries.incarnation_id == job_id)
    said = connection.execute(query).scalars().all()
    return bool(said) and all(said)


def _put(
    connection: Connection,
    entry: tuple[str, str],
    job_id: int,
    *,
    sole: bool,
    last_status: str | None,
    now: datetime,
) -> None:
    path, key = entry
    connection.execute(delete(registry_entries).where(_entries.path == path, _entries.key == key))
    connection.execute(
        insert(registry_entries),
        {
            "path": path,
            "key": key,
            "incarnation_id": job_id,
            "stage": Stage.PRESENT.value,
            "since": now,
            "sole": sole,
            "last_status": last_status,
        },
    )


def move(
    connection: Connection, path: str, keys: Collection[str], stage: Stage, now: datetime
) -> None:
    statement = (
        update(registry_entries)
        .where(_entries.path == path, _entries.key == bindparam("row"))
        .values(stage=stage.value, since=now)
    )
    write(connection, statement, [{"row": key} for key in sorted(keys)])


def forget(connection: Connection, path: str, key: str) -> None:
    connection.execute(delete(registry_entries).where(_entries.path == path, _entries.key == key))


def needed(connection: Connection, job_id: int) -> bool:
    query = select(_entries.stage, _entries.sole).where(_entries.incarnation_id == job_id)
    rows = connection.execute(query).all()
    return any(stage in _LIVE or not sole for stage, sole in rows)


def hold(connection: Connection, job_id: int) -> None:
    connection.execute(
        update(registry_entries).where(_entries.incarnation_id == job_id).values(sole=False)
    )


def wanted(connection: Connection, path: str) -> dict[str, str | None]:
    return {
        one.key: status
        for one in entries(connection, path)
        for said, status in [should_say(one)]
        if said
    }


def should_say(one: Registered) -> tuple[bool, str | None]:
    """Whether there is a word on an entry, and the word: None takes it out."""
    if not one.job.tracked and one.job.state in TERMINAL:
        return True, None
    live = one.stage is not Stage.GONE and one.job.tracked and one.job.native
    return bool(live), one.job.native


def stood(
    connection: Connection, path: str, written: Mapping[str, str | None], now: datetime
) -> None:
    move(connection, path, [key for key, word in written.items() if word is None], Stage.GONE, now)
    statement = (
        update(registry_entries)
        .where(_entries.path == path, _entries.key == bindparam("row"))
        .values(last_status=bindparam("word"))
    )
    said = [{"row": key, "word": word} for key, word in written.items() if word is not None]
    write(connection, statement, said)


def owe_once(connection: Connection, path: str, now: datetime) -> None:
    waiting = select(func.count()).where(
        outbox.c.state == PENDING, outbox.c.sink == sink_name(path)
    )
    if not connection.execute(waiting).scalar_one():
        owe(connection, [_delivery(path, now)])


def files(connection: Connection) -> tuple[WatchedFile, ...]:
    rows = connection.execute(select(registry_files).order_by(registry_files.c.path)).mappings()
    return tuple(WatchedFile(**row) for row in rows)


def watch(connection: Connection, path: str, *, by: str, now: datetime) -> None:
    row = {"path": path, "watched_since": now, "watched_by": by}
    connection.execute(upsert(connection, registry_files, key="path"), row)


# What the commit of a sweep does


def follow(connection: Connection, cluster: str, fresh: Iterable[tuple[Job, int]]) -> None:
    """Entries of a job that was queued again mean its new life; `fresh` are such lives."""
    table = incarnations.c
    query = (
        select(table.kind, table.native_id, table.id)
        .join(registry_entries, _entries.incarnation_id == table.id)
        .where(table.cluster == cluster, _entries.stage.in_(_LIVE))
        .distinct()
    )
    asked = {(row[0], row[1]): row[2] for row in connection.execute(query)}
    moves = [
        {"old": asked[job.kind.value, job.native_id], "new": number}
        for job, number in fresh
        if (job.kind.value, job.native_id) in asked
    ]
    statement = (
        update(registry_entries)
        .where(_entries.incarnation_id == bindparam("old"), _entries.stage.in_(_LIVE))
        .values(incarnation_id=bindparam("new"))
    )
    write(connection, statement, moves)


def merge(connection: Connection, folded: Mapping[int, int]) -> None:
    """Rows that turn out to be another incarnation take their entries there."""
    statement = (
        update(registry_entries)
        .where(_entries.incarnation_id == bindparam("row"))
        .values(incarnation_id=bindparam("owner"))
    )
    write(connection, statement, [{"row": a, "owner": b} for a, b in sorted(folded.items())])


def owe_writes(connection: Connection, numbers: Sequence[int], now: datetime) -> None:
    """Files in which an entry of these incarnations does not say what it should by now.

    What waits for such a file is replaced, never added to: one write makes it stand.
    """
    paths: set[str] = set()
    for some in batched(sorted(set(numbers)), IN_LIST):
        query = select(_entries.path).where(
            _entries.incarnation_id.in_(some), _entries.stage.in_(_LIVE)
        )
        paths.update(connection.execute(query).scalars())
    for path in sorted(paths):
        held = [one for one in entries(connection, path) if one.stage is not Stage.GONE]
        if all(_stands(one) for one in held):
            continue
        connection.execute(
            delete(outbox).where(outbox.c.state == PENDING, outbox.c.sink == sink_name(path))
        )
        owe(connection, [_delivery(path, now)])


def _stands(one: Registered) -> bool:
    said, word = should_say(one)
    return not said or (word is not None and word == one.last_status)


def _delivery(path: str, now: datetime) -> Delivery:
    key = f"{path}@{now.isoformat()}"
    return Delivery(0, key, sink_name(path), {"path": path}, created_at=now, due_at=now)
