"""The running parts over registry files, with a cluster that says what a test wants."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from jobmond.app import App, open_app
from jobmond.daemon.counter import desk_of
from jobmond.daemon.handover import Handover
from jobmond.daemon.registries import Registries
from jobmond.desk.desk import Desk
from jobmond.model.job import Job
from jobmond.model.observation import Absent, Poll, Unreachable
from jobmond.model.state import Kind
from jobmond.settings import load
from tests.doubles_store import FixedClock
from tests.unit.builders import NOW

SSH_CONFIG = """
Host leo
  HostName login.leonardo.example
Host *
  Port 2222
"""


@dataclass
class Far:
    """Says what is true there, and remembers what it was asked."""

    says: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    kind: str = "slurm"
    discovers: bool = False

    async def poll(self, asks: Any, *, since: Any, now: Any, timeout_s: float) -> Poll:
        self.asked += sorted(a.native_id for a in asks)
        return Poll({a.native_id: self.says.get(a.native_id, Unreachable("x")) for a in asks})

    def valid_id(self, native_id: str) -> str | None:
        return None if native_id.isdigit() else f"{native_id} is no SLURM id"

    async def read_tails(self, asks: Any, *, now: Any, timeout_s: float) -> dict[str, Any]:
        return {a.native_id: Absent() for a in asks}


@dataclass
class Scene:
    """One daemon's life over `folder`."""

    folder: Path
    app: App
    desk: Desk
    clock: FixedClock
    far: Far
    swept: list[tuple[str | None, bool]]
    registries: Registries

    @property
    def path(self) -> Path:
        return self.folder / "active_jobs.json"

    def write(self, *entries: dict[str, Any], path: Path | None = None) -> None:
        """As another program does, without a lock."""
        text = json.dumps(list(entries), indent=2)
        (path or self.path).write_text(text)

    def read(self) -> Any:
        return json.loads(self.path.read_text())

    async def look(self, minutes: float = 1) -> None:
        self.clock.move(60 * minutes)
        await self.registries.look_around()

    async def sweep(self, **says: Any) -> None:
        self.far.says |= {name.removeprefix("j"): seen for name, seen in says.items()}
        self.clock.move(900)
        await self.registries.look()
        await self.app.sweep("leonardo")

    async def jobs(self) -> dict[str, Job]:
        since = self.clock.at - timedelta(days=9)
        found = await self.app.writer.call(self.app.store.jobs, recent_since=since)
        return {job.ref: job for job in found}

    async def tracked(self) -> list[str]:
        return sorted(ref for ref, job in (await self.jobs()).items() if job.tracked)


def configuration(folder: Path, **more: str) -> Path:
    """A cluster behind ssh that no test contacts, and this host."""
    (folder / "ssh_config").write_text(SSH_CONFIG)
    lines = {
        "registry_files": f'["{folder}/active_jobs.json", "{folder}/agents/*/active_jobs.json"]',
        "database.url": f'"sqlite:///{folder}/db"',
        "agent_logs": f'"{folder}/agent_logs"',
        **more,
    }
    text = "\n".join(f"{name} = {value}" for name, value in lines.items())
    path = folder / "config.toml"
    path.write_text(
        f"""{text}
[clusters.leonardo]
kind = "slurm"
host = "login.leonardo.example"
ssh_config_file = "{folder}/ssh_config"
[clusters.here]
kind = "local"
slurm = false
[sinks.news]
kind = "file"
path = "{folder}/news.jsonl"
"""
    )
    return path


@asynccontextmanager
async def living(
    folder: Path, *, far: Far | None = None, clock: FixedClock | None = None, **more: str
) -> AsyncIterator[Scene]:
    """One life of the daemon's inside; the next one on the same folder goes on from there."""
    path = configuration(folder, **more)
    clock, far = clock or FixedClock(NOW), far or Far()
    loaded = load(path, {"HOME": str(folder)})
    app = await open_app(loaded.settings, folder, clock)
    cluster = app.parts.clusters["leonardo"]
    app.parts.clusters["leonardo"] = replace(cluster, backends={Kind.SLURM: far}, logs=far)
    swept: list[tuple[str | None, bool]] = []

    async def request(name: str | None, wait: bool) -> list[Any]:
        swept.append((name, wait))
        return []

    desk = desk_of(app, request_sweep=request)
    registries = Registries(app, desk)
    desk.handover = Handover(app, desk, registries)
    try:
        yield Scene(folder, app, desk, clock, far, swept, registries)
    finally:
        await app.close()
