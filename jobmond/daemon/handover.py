"""`import` and `export`: registry files handed in and out by people."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from jobmond.analysis.activejobs import Entry, MalformedRegistry, parsed
from jobmond.app import App
from jobmond.daemon.registries import Registries, listed_of
from jobmond.desk import track
from jobmond.desk.desk import Desk
from jobmond.desk.listed import Listed
from jobmond.desk.peer import Peer, user_name
from jobmond.desk.registered import submitted_at
from jobmond.desk.requests import ImportRequest, Wish
from jobmond.desk.track import Asker, Subject
from jobmond.errors import ConfigError, JobmondError, Refused
from jobmond.model.job import Job
from jobmond.settings.clusters import SlurmCluster

Row = dict[str, Any]


class Handover:
    """Takes entries in for the person who asks, and gives out what is tracked as entries."""

    def __init__(self, app: App, desk: Desk, registries: Registries) -> None:
        self._app, self._desk, self._registries = app, desk, registries

    async def take_in(self, request: ImportRequest, peer: Peer) -> Row:
        """Track what a text lists, once; or watch a file, or stop watching it.

        Raises:
            ConfigError: the text is no registry; the file that is to be watched cannot be used.
            NotYours: a file to watch is for the daemon's user and admins to name.
        """
        if request.text is not None:
            rows = await self._once(_entries(request.text), peer)
            return {"jobs": rows, "watched": None}
        path = request.path or ""
        # The daemon reads and writes it with its own rights.
        self._desk.rights.check_all(peer, "name a file to watch")
        store, now = self._app.store.registries, self._app.clock.now()
        if not request.watch:
            if not await self._app.writer.call(store.unwatch, path):
                raise Refused(f"{path} is not watched by anybody's request")
            await self._registries.look()
            return {"jobs": [], "watched": None}
        await self._registries.usable(path)
        await self._app.writer.call(store.watch, path, by=user_name(peer.uid), now=now)
        await self._registries.look()
        entries, taken, problem = self._registries.file(path)
        if problem:
            raise Refused(f"{problem} (it is watched from now on)")
        rows = [
            _row(
                entry.id,
                ref=taken.refs.get(entry.key),
                created=taken.refs.get(entry.key) in taken.started,
                error=taken.errors.get(entry.key),
            )
            for entry in entries
        ]
        return {"jobs": rows, "watched": path}

    async def give_out(self, peer: Peer) -> Row:
        """What is tracked, as the entries of a registry file."""
        self._desk.rights.check_read(peer)
        now = self._app.clock.now()
        jobs = await self._app.writer.call(self._app.store.jobs, recent_since=now)
        tracked = {job.ref: job for job in jobs if job.tracked}
        hosts = _hosts(self._app.parts.tables)
        whole = [job for job in tracked.values() if _array(job) not in tracked]
        return {"jobs": [_given(job, hosts.get(job.cluster, job.cluster)) for job in whole]}

    async def _once(self, entries: Sequence[Entry], peer: Peer) -> list[Row]:
        asker = await self._desk.asker(peer)
        tables = self._app.parts.tables
        listed = await asyncio.to_thread(listed_of, entries, tables, self._desk)
        rows = [await self._track(one, asker) for one in listed]
        await self._desk.swept_soon(row["ref"] for row in rows if row["error"] is None)
        return rows

    async def _track(self, one: Listed, asker: Asker) -> Row:
        entry, target = one.entry, one.target
        if target is None:
            return _row(entry.id, error=one.error)
        subject = Subject(
            target.cluster, target.kind, target.native_id, submitted_at=submitted_at(entry)
        )
        wish = Wish(
            description=entry.description,
            user=entry.user,
            session=entry.owner,
            last_status=entry.last_status,
        )
        desk = self._desk
        try:
            added = await desk.call(track.track, desk.store, subject, wish, desk.classify, asker)
        except JobmondError as refusal:
            return _row(entry.id, ref=target.ref, error=str(refusal))
        over = None
        if not added.job.tracked:
            over = f"{added.job.ref} ended already as {added.job.state}: nothing is left to track"
        return _row(entry.id, ref=added.job.ref, created=added.created, note=over)


def _entries(text: str) -> Sequence[Entry]:
    try:
        return parsed(text)
    except MalformedRegistry as error:
        raise ConfigError(str(error)) from error


def _row(
    word: str,
    *,
    ref: str | None = None,
    created: bool = False,
    note: str | None = None,
    error: str | None = None,
) -> Row:
    code = 1 if error else 0
    given = {"ref": ref, "created": created, "note": note, "error": error, "exit_code": code}
    return {"word": word, **given}


def _hosts(tables: Mapping[str, Any]) -> dict[str, str]:
    """What an entry names as the host of each cluster: one that leads back to it alone."""
    first = {n: t.host[0] for n, t in tables.items() if isinstance(t, SlurmCluster) and t.host}
    given = list(first.values())
    return {name: host for name, host in first.items() if given.count(host) == 1}


def _array(job: Job) -> str:
    """The ref of the array that a job would be a part of; no job's where it is none."""
    master, part, _ = job.native_id.partition("_")
    return f"{job.cluster}/{master}" if part else ""


def _given(job: Job, host: str) -> Row:
    submitted = job.facts.submitted_at
    entry = {
        "type": job.kind.value,
        "id": job.native_id,
        "host": host,
        "user": job.choices.user or job.facts.user,
        "submitted": submitted and submitted.astimezone().strftime("%Y-%m-%d %H:%M"),
        "description": job.choices.description or job.name,
        "last_status": job.native or None,
        "owner": job.choices.session,
    }
    return {key: value for key, value in entry.items() if value is not None}
