"""What can be checked before jobs depend on it: one line a thing."""

import asyncio
import glob
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from jobmond.analysis.activejobs import MalformedRegistry, parsed
from jobmond.app import outlets_of
from jobmond.app.clusters import Builder
from jobmond.app.ops_files import OpsFiles
from jobmond.backends.nel import NelBackend
from jobmond.clock import SystemClock
from jobmond.errors import JobmondError, SinkRetry
from jobmond.model.state import ClusterStatus, Kind
from jobmond.ports import Clock, FarSink
from jobmond.settings import Loaded, Settings
from jobmond.settings.clusters import IrisCluster
from jobmond.settings.paths import state_directory
from jobmond.settings.tables import SinkTable
from jobmond.sinks.registry_file import UnusableFile, read_registry, text_of
from jobmond.store.engine import database_file
from jobmond.store.filesystem import network_file_system
from jobmond.store.standing import standing
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.observe import ask

_LOOK_BACK = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was checked."""

    what: str
    fine: bool
    said: str


async def checks(loaded: Loaded, env: Mapping[str, str], *, offline: bool) -> list[Line]:
    """Check what `loaded` describes, also while a daemon runs.

    Nothing is created, migrated or recorded. `offline` contacts no cluster.
    """
    settings = loaded.settings
    database = database_file(settings.database.url)
    state = database.parent if database else state_directory(env)
    lines = [Line("configuration", True, str(loaded.path or "none, this host only"))]
    lines += storage(settings, state)
    told = await receivers(settings)
    lines += [told.get(line.what, line) for line in sinks(settings)]
    ops = OpsFiles()
    tables = await asyncio.to_thread(ops.all, settings.clusters)
    settings = settings.model_copy(update={"clusters": tables})
    lines += [Line(f"ops file of {name}", False, said) for name, said in ops.problems.items()]
    lines += registry_files(settings)
    lines += _headers(settings)
    unused: list[Line] = []

    def not_set_up(cluster: str, squeue: str) -> None:
        said = f"{squeue}; only processes are watched until SLURM is set up"
        unused.append(Line(f"SLURM on {cluster}", True, said))

    clusters = await Builder(settings, state, not_set_up=not_set_up).all(tables)
    try:
        lines += await asyncio.gather(
            *(
                _cluster(name, clusters.get(name), settings, SystemClock(), offline=offline)
                for name in settings.clusters
            )
        )
        lines += await launchers(settings, clusters)
    finally:
        for cluster in clusters.values():
            await cluster.close()
    return lines + unused


async def launchers(settings: Settings, clusters: Mapping[str, Cluster]) -> list[Line]:
    """Whether nel, where it is configured, is the launcher; it contacts nobody for that."""
    if not settings.nel.command:
        return []
    asked = (cluster.backends.get(Kind.NEL) for cluster in clusters.values())
    nel = next((backend for backend in asked if isinstance(backend, NelBackend)), None)
    if nel is None:
        return [Line("nel", False, "no cluster is configured that its jobs could run on")]
    wrong = await nel.usable(SystemClock().now())
    return [Line("nel", wrong is None, wrong or shlex.join(settings.nel.command))]


def storage(settings: Settings, state: Path) -> Iterator[Line]:
    """The database, its file system, and who can read and write where."""
    url = settings.database.url
    try:
        found = standing(url)
    except JobmondError as error:
        yield Line("database", False, str(error))
    else:
        yield Line("database", True, f"{found.where}, {found.said}")
    database = database_file(url)
    if database is not None:
        remote = network_file_system(state)
        if remote:
            said = f"{remote}, a network file system: one process at a time, no write-ahead log"
            yield Line("file system of the database", True, said)
        yield _private("database file", database)
    yield _writable("state folder", state)
    yield _writable("agent_logs", settings.agent_logs)


def sinks(settings: Settings) -> Iterator[Line]:
    """Whether the file a sink writes to can be written."""
    for name, sink in settings.sinks.items():
        path = sink.options.get("path")
        if not isinstance(path, Path):
            yield Line(f"sink {name}", True, sink.kind)
        elif path.exists() and (not path.is_file() or not os.access(path, os.W_OK)):
            yield Line(f"sink {name}", False, f"{path} cannot be written by this user")
        else:
            yield _writable(f"sink {name}", path.parent)


def registry_files(settings: Settings) -> Iterator[Line]:
    """Whether the files that are there can be read and, with their lock, be written."""
    for pattern in settings.registry_files:
        paths = [pattern, *glob.glob(pattern)]  # noqa: PTH207 # absolute
        for path in sorted({Path(path) for path in paths if os.path.lexists(path)}):
            yield _registry(f"registry file {path}", path)


def _registry(what: str, path: Path) -> Line:
    try:
        entries = parsed(text_of(read_registry(path)[0]))
    except (MalformedRegistry, UnusableFile) as error:
        return Line(what, False, str(error))
    except OSError as error:
        return Line(what, False, str(error.strerror))
    wrong = [entry.error for entry in entries if entry.error]
    if wrong:
        return Line(what, False, wrong[0])
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return Line(what, False, f"{path.parent} cannot be written by this user")
    return Line(what, True, f"{len(entries)} entries")


async def receivers(settings: Settings) -> dict[str, Line]:
    """Sinks that others answer for, by the name of their line: their files, nothing is sent."""
    made = outlets_of(settings, SystemClock())
    lines = [
        await _receiver(f"sink {name}", settings.sinks[name], sink)
        for name, sink in made.far.items()
    ]
    await made.close()
    return {line.what: line for line in lines}


async def _receiver(what: str, table: SinkTable, sink: FarSink) -> Line:
    try:
        await sink.check()
    except SinkRetry as trouble:
        return Line(what, False, str(trouble))
    for key, path in table.options.items():
        if key.endswith("_file") and (open_to_all := _open_to_all(path)):
            return Line(what, False, open_to_all)
    return Line(what, True, f"{table.kind}, nothing was sent")


def _headers(settings: Settings) -> Iterator[Line]:
    """Who can read the files that say to a controller who asks."""
    for name, table in settings.clusters.items():
        file = table.auth_header_file if isinstance(table, IrisCluster) else None
        if file is not None and file.exists():
            wrong = _open_to_all(file)
            yield Line(f"header of {name}", wrong is None, wrong or f"{file}, not for everybody")


def _open_to_all(path: Path) -> str | None:
    if stat.S_IMODE(path.stat().st_mode) & 0o007:
        return f"{path} can be read by everybody: chmod o-rwx {path}"
    return None


def _private(what: str, path: Path) -> Line:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return Line(what, True, f"{path} will be created")
    except OSError as error:
        return Line(what, False, f"{path}: {error.strerror}")
    if mode & 0o077:
        return Line(what, False, f"{path} is open to others: chmod 600 {path}")
    return Line(what, True, f"{path}, only its owner can read it")


def _writable(what: str, path: Path) -> Line:
    there = next((p for p in (path, *path.parents) if p.exists()), Path("/"))
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return Line(what, True, str(path))
    return Line(what, False, f"{path} cannot be written by this user")


async def _cluster(
    name: str, cluster: Cluster | None, settings: Settings, clock: Clock, *, offline: bool
) -> Line:
    what = f"cluster {name}"
    if not settings.clusters[name].active:
        return Line(what, True, ClusterStatus.INACTIVE)
    if cluster is None:
        kind = settings.clusters[name].kind
        return Line(what, False, f"kind {kind} is not available in this version")
    if offline:
        return Line(what, True, "not contacted (--offline)")
    answers = await ask(cluster, [], since=clock.now() - _LOOK_BACK, clock=clock, anyway=True)
    if answers.trouble is not None:
        fix = f" (try: {answers.remedy})" if answers.remedy else ""
        return Line(what, False, f"{answers.trouble}{fix}")
    return Line(what, True, f"answers, {len(answers.found)} jobs of its users seen")
