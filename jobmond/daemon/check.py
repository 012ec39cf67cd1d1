"""What can be checked before jobs depend on it: one line a thing."""

import asyncio
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from jobmond.app import App, open_app
from jobmond.clock import SystemClock
from jobmond.errors import JobmondError, Refused
from jobmond.model.state import ClusterStatus
from jobmond.settings import Loaded
from jobmond.settings.paths import state_directory
from jobmond.store.engine import database_file
from jobmond.store.filesystem import network_file_system
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.observe import ask


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was checked."""

    what: str
    fine: bool
    said: str


async def checks(loaded: Loaded, env: Mapping[str, str], *, offline: bool) -> list[Line]:
    """Check what `loaded` describes. `offline` contacts no cluster; nothing is ever changed
    there, and nothing is recorded."""
    settings = loaded.settings
    lines = [Line("configuration", True, str(loaded.path or "none, this host only"))]
    lines += _places(loaded, env)
    try:
        app = await open_app(settings, state_directory(env), SystemClock())
    except Refused as running:
        lines.append(Line("database", True, f"in use: {running}"))
        return lines
    except JobmondError as error:
        lines.append(Line("database", False, str(error)))
        return lines
    try:
        lines.append(Line("database", True, "opens, schema is current"))
        lines += [Line(f"sink {name}", True, "configured") for name in app.parts.sinks]
        clusters = app.clusters.values()
        if not offline:
            lines += await asyncio.gather(*(_cluster(app, c) for c in clusters))
    finally:
        await app.close()
    return lines


def _places(loaded: Loaded, env: Mapping[str, str]) -> list[Line]:
    database = database_file(loaded.settings.database.url)
    lines = []
    if database is not None:
        lines.append(_private("database file", database))
        remote = network_file_system(database.parent)
        if remote:
            said = f"{remote}, a network file system: one process at a time, no write-ahead log"
            lines.append(Line("file system of the database", True, said))
    lines.append(_writable("agent_logs", Path(loaded.settings.agent_logs)))
    return lines


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
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if os.access(there, os.W_OK | os.X_OK) and there.is_dir():
        return Line(what, True, str(path))
    return Line(what, False, f"{path} cannot be written by this user")


async def _cluster(app: App, cluster: Cluster) -> Line:
    what = f"cluster {cluster.name}"
    if not cluster.active:
        return Line(what, True, ClusterStatus.INACTIVE)
    since = app.clock.now() - timedelta(minutes=15)
    answers = await ask(cluster, [], since=since, clock=app.clock, anyway=True)
    if answers.trouble is not None:
        fix = f" (try: {answers.remedy})" if answers.remedy else ""
        return Line(what, False, f"{answers.trouble}{fix}")
    return Line(what, True, f"answers, {len(answers.found)} jobs of its users seen")
