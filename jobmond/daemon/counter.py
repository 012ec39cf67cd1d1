"""The desk, set up over the running parts."""

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jobmond.analysis.instants import instant
from jobmond.analysis.links import LINKED
from jobmond.app import App
from jobmond.desk.aim import ClusterInfo, Target
from jobmond.desk.budget import SweepBudget
from jobmond.desk.desk import Desk
from jobmond.desk.peer import Rights
from jobmond.desk.requests import AddRequest, LocalExit
from jobmond.desk.shelf import Found
from jobmond.desk.sweeps import RequestSweep
from jobmond.errors import Refused
from jobmond.model.job import Choices, Classified, Job
from jobmond.model.observation import Ask, Facts, Gone
from jobmond.model.state import Bucket, Kind
from jobmond.ports import Knows
from jobmond.settings import Settings
from jobmond.settings.clusters import IrisCluster, SlurmCluster
from jobmond.sweep.logs import log_text

_LOOK_S = 5.0  # whoever adds a process waits for the look at it


async def nobody_sweeps(name: str | None, wait: bool) -> Sequence[Mapping[str, Any]]:
    """What a desk without a daemon asks for sweeps."""
    return ()


def desk_of(
    app: App,
    *,
    request_sweep: RequestSweep = nobody_sweeps,
    wake: Callable[[], None] = lambda: None,
    changed: Callable[[], None] = lambda: None,
    last_answer: Callable[[str], Mapping[str, Any] | None] = lambda name: None,
) -> Desk:
    """A desk that answers from `app`'s store; what a reload replaces is looked up anew."""
    counter = Counter(app)
    settings = app.parts.settings
    return Desk(
        call=app.writer.call,
        store=app.store,
        clock=app.clock,
        clusters=counter.clusters,
        classify=counter.classify,
        validate_id=counter.validate_id,
        request_sweep=request_sweep,
        read_log=counter.read_log,
        discovered=counter.discovered,
        daemon_info=app.daemon_info,
        local_exit=counter.local_exit,
        missing=counter.missing,
        rights=Rights.of(socket_group=settings.socket_group, admins=settings.admins),
        wake=wake,
        changed=changed,
        last_answer=last_answer,
        sinks=app.sink_names,
        recent=settings.recent,
        locate=counter.locate,
        budget=SweepBudget(per_hour=settings.on_demand_per_hour, burst=settings.on_demand_burst),
    )


def refit(desk: Desk, settings: Settings) -> None:
    """Let `desk` work by another configuration; how much was spent of a budget stays spent.

    Raises:
        ConfigError: it names a user or group that this host does not have; nothing is changed.
    """
    desk.rights = Rights.of(socket_group=settings.socket_group, admins=settings.admins)
    desk.recent = settings.recent


class Counter:
    """What the desk asks of the running parts."""

    def __init__(self, app: App) -> None:
        self._app = app

    def clusters(self) -> Sequence[ClusterInfo]:
        tables = self._app.parts.tables
        return [
            ClusterInfo(
                name=name,
                kind=cluster.kind,
                kinds=tuple(cluster.backends),
                active=cluster.active,
                hosts=_hosts(tables[name]),
                users=tables[name].users,
                notes=cluster.notes,
            )
            for name, cluster in self._app.clusters.items()
        ]

    def classify(
        self, choices: Choices, facts: Facts, native_id: str, read_as: Bucket | None = None, /
    ) -> Classified:
        return self._app.parts.classify(choices, facts, native_id, read_as)

    def validate_id(self, cluster: str, kind: str, native_id: str) -> str | None:
        backends = self._app.clusters[cluster].backends
        return next(b.valid_id(native_id) for k, b in backends.items() if k == kind)

    async def locate(self, word: str, request: AddRequest) -> str | None:
        """The one cluster whose launcher knows where the jobs of `word` run."""
        ask = Ask(
            word,
            birth=None,
            added_at=self._app.clock.now(),
            facts=Facts(log_path=request.wish.log_path),
            command=request.wish.nel_command,
            home=request.wish.nel_home,
        )
        asked = {
            name: backend
            for name, cluster in self._app.clusters.items()
            for kind, backend in cluster.backends.items()
            if kind in LINKED
            and request.kind in (None, kind)
            and backend.valid_id(word) is None
            and isinstance(backend, Knows)
        }
        if len(asked) < 2:
            return None
        known = [name for name, backend in asked.items() if await backend.knows(ask)]
        return known[0] if len(known) == 1 else None

    async def read_log(self, job: Job, *, n: int, after: int | None) -> Mapping[str, Any]:
        cluster = self._app.clusters.get(job.cluster)
        if cluster is None or not cluster.active:
            raise Refused(f"cluster {job.cluster} is switched off or not configured")
        return await log_text(cluster, job, n=n, after=after, now=self._app.clock.now())

    def discovered(self) -> Sequence[Found]:
        return [
            Found(name, one.kind, one.native_id, one.seen, at)
            for name, (at, found) in self._app.found.items()
            for one in found
        ]

    async def missing(self, target: Target, submitted_at: datetime | None) -> str | None:
        """Why there is no such process on this host. All other sources are left to the sweeps."""
        cluster = self._app.clusters[target.cluster]
        if target.kind is not Kind.LOCAL or not cluster.active:
            return None
        now = self._app.clock.now()
        ask = Ask(target.native_id, None, added_at=now, submitted_at=submitted_at)
        source = cluster.backends[Kind.LOCAL]
        poll = await source.poll([ask], since=now, now=now, timeout_s=_LOOK_S)
        sighting = poll.sightings[target.native_id]
        return sighting.reason if isinstance(sighting, Gone) else None

    async def local_exit(self, job: Job, end: LocalExit) -> None:
        await asyncio.to_thread(_record, self._app.runs, job, end)


def _hosts(table: Any) -> tuple[str, ...]:
    if isinstance(table, SlurmCluster):
        return tuple(table.host)
    return (urlsplit(table.url).hostname or "",) if isinstance(table, IrisCluster) else ()


def _record(folder: Path, job: Job, end: LocalExit) -> None:
    """Write down how an announced process ended, unless whoever started it did so here.

    A process started by another user, or with other state, left its record elsewhere.
    """
    path = folder / f"{job.native_id}-{job.birth}.json"
    known: dict[str, Any] = {}
    if path.exists():
        known = json.loads(path.read_text(encoding="utf-8"))
        if known.get("ended_at"):
            return
    record = {
        "pid": int(job.native_id.removeprefix("pid-")),
        "birth": job.birth,
        "name": job.facts.name,
        "command": [job.facts.command] if job.facts.command else [],
        "log": job.choices.log_path,
        "workdir": job.facts.workdir,
        "user": job.facts.user,
        "started_at": instant(job.facts.started_at),
        **known,
        "exit_code": end.exit_code,
        "signal": end.signal,
        "ended_at": instant(end.ended_at),
    }
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.tmp")
    part.write_text(json.dumps(record), encoding="utf-8")
    part.chmod(0o600)
    part.replace(path)
