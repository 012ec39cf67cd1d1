"""The composition root: configuration in, working parts out."""

import asyncio
import json
import os
import shlex
import socket
import tempfile
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import structlog

from jobmond import __version__, registry
from jobmond.analysis.classify import classified
from jobmond.analysis.settle import Classify, Found
from jobmond.analysis.visible import readable, visible
from jobmond.backends._files import FileReader
from jobmond.errors import StoreError, TransportError
from jobmond.model.job import Choices, Classified
from jobmond.model.observation import Facts
from jobmond.model.state import Kind
from jobmond.ports import Backend, Clock, Rule, Transport
from jobmond.reports.document import status_document, with_unused
from jobmond.settings import Settings
from jobmond.settings.clusters import LocalCluster, SlurmCluster
from jobmond.store import Store, StoreLock
from jobmond.store.engine import database_file
from jobmond.store.filesystem import network_file_system
from jobmond.store.launched import Keep, forget
from jobmond.store.writer import Writer
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.conclude import AGENT_LOG, Terms
from jobmond.sweep.couriers import Couriers
from jobmond.sweep.deliver import Post, all_rounds
from jobmond.sweep.outlets import Outlets, outlets
from jobmond.sweep.sweep import Result, Sweeper

journal = structlog.get_logger("jobmond.app")

SLURM_PROBE_S = 10.0
_NOT_FOUND = 127  # what a shell says about a program that is not there


@dataclass(slots=True)
class Parts:
    """What a configuration is made into; a reload makes new ones."""

    settings: Settings
    clusters: dict[str, Cluster]
    outlets: Outlets
    classify: Classify
    sweeper: Sweeper


@dataclass(slots=True)
class App:
    """A store and the parts that work on it. `state` is the directory for files of our own."""

    store: Store
    writer: Writer
    clock: Clock
    state: Path
    lock: StoreLock
    parts: Parts
    next_sweep_at: Callable[[], datetime | None] = lambda: None
    on_commit: Callable[[], object] = lambda: None
    last_sweep_at: datetime | None = None
    found: dict[str, tuple[datetime, tuple[Found, ...]]] = field(default_factory=dict)
    couriers: Couriers = field(default_factory=Couriers)
    _delivering: asyncio.Lock = field(default_factory=asyncio.Lock)
    _reporting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        return self.parts.clusters

    async def sweep(self, name: str, *, asked: bool = False) -> Result:
        """Sweep one cluster, deliver what it concluded, write the report."""
        result = await self.parts.sweeper.sweep(self.clusters[name], asked=asked)
        if result.contacted:
            self.last_sweep_at = result.at
            self.found[name] = (result.at, result.found)
        self.on_commit()
        await self.deliver()
        await self.report()
        return result

    async def deliver(self) -> None:
        """One round over all near sinks; rounds follow each other. Far sinks begin theirs."""
        settings = self.parts.settings
        post = Post(
            self.store,
            self.writer.call,
            self.clock,
            backoff=settings.backoff_min,
            backoff_max=settings.backoff_max,
        )
        self.couriers.wake(post, self.parts.outlets.far)
        async with self._delivering:
            await all_rounds(post, self.parts.outlets.near)

    async def report(self) -> None:
        """Write `report.json`, which `status` prints when no daemon answers."""
        async with self._reporting:
            now = self.clock.now()
            recent_since = now - self.parts.settings.recent
            jobs = await self.writer.call(self.store.jobs, recent_since=recent_since)
            health = await self.writer.call(self.store.clusters, now)
            standings = await self.writer.call(self.store.standings)
            sinks = with_unused(standings, self.sink_names())
            daemon = self.daemon_info()
            await asyncio.to_thread(
                _write_report,
                self.state / "report.json",
                lambda: status_document(jobs, health, sinks=sinks, daemon=daemon, now=now),
            )

    def daemon_info(self) -> dict[str, Any]:
        """The `daemon` object of the status document."""
        return {
            "running": True,
            "host": socket.gethostname(),
            "version": __version__,
            "last_sweep_at": self.last_sweep_at,
            "next_sweep_at": self.next_sweep_at(),
        }

    def sink_names(self) -> tuple[str, ...]:
        """What news and entries go to, in the order of the configuration."""
        return (*self.parts.settings.sinks, AGENT_LOG)

    async def watched(self) -> list[str]:
        """The clusters that a tick has to sweep: with tracked jobs, discovering, or switched off.

        Empty where there is nothing to watch anywhere.
        """
        tracked = await self.writer.call(self.store.watched_clusters)
        return [n for n, cluster in self.clusters.items() if cluster.discovers or n in tracked]

    @property
    def runs(self) -> Path:
        """The folder in which `jobmonctl run` of this user leaves records and logs."""
        return self.state / "runs"

    def runs_since(self) -> datetime:
        """How far back the end of a run that nobody announced is news; never so far that the
        store may have known and forgotten it."""
        return self.clock.now() - self._runs_keep().longest

    def _runs_keep(self) -> Keep:
        history = self.parts.settings.history_keep
        return Keep() if history is None else Keep(longest=min(Keep().longest, history))

    async def expire(self) -> None:
        """Drop what is older than the configuration keeps."""
        settings = self.parts.settings
        now = self.clock.now()
        keep = self._runs_keep()
        jobs = await self.writer.call(self.store.jobs, recent_since=now - keep.shortest)
        wanted = {(job.native_id, job.birth) for job in jobs if job.birth is not None}
        await asyncio.to_thread(forget, self.runs, wanted, keep=keep, now=now)
        await self.writer.call(
            self.store.expire,
            now,
            history_keep=settings.history_keep,
            events_keep=settings.events_keep,
            outbox_keep=settings.outbox_keep,
            audit_keep=settings.audit_keep,
        )

    async def prepared(self, settings: Settings) -> Parts:
        """The parts of another configuration; `ConfigError` where they cannot be made."""
        return await build(settings, self.store, self.writer, self.clock, self.state)

    async def replace(self, parts: Parts) -> None:
        """Work with other parts from the next sweep on; no sweep may be in hand."""
        await self.couriers.stop()
        old, self.parts = self.parts, parts
        self.couriers.resume()
        for cluster in old.clusters.values():
            await cluster.close()
        await old.outlets.close()

    async def close(self) -> None:
        await self.couriers.stop()
        await self.parts.outlets.close()
        for cluster in self.clusters.values():
            await cluster.close()
        await self.writer.call(self.store.close)
        self.writer.close()
        self.lock.release()


async def open_app(settings: Settings, default_state: Path, clock: Clock) -> App:
    """Take the database, migrate it, and build what the configuration describes.

    Our other files are beside the database, or in `default_state` where that is no file here.

    Raises:
        Refused: another process holds the database.
        StoreError: it cannot be used.
        ConfigError: something in the configuration cannot be built.
    """
    database = database_file(settings.database.url)
    state = database.parent if database else default_state
    lock = StoreLock(database or default_state / "jobmond.db")
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.take()
    except OSError as error:
        raise StoreError(f"{state} cannot be made: {error.strerror}") from error
    writer = Writer()
    try:
        remote = database is not None and network_file_system(database.resolve().parent) is not None
        store = await writer.call(Store.open, settings.database.url, exclusive=remote)
        parts = await build(settings, store, writer, clock, state)
    except BaseException:
        writer.close()
        lock.release()
        raise
    return App(store, writer, clock, state, lock, parts)


def _write_report(path: Path, document: Callable[[], Mapping[str, Any]]) -> None:
    """Replace `path` whole or not at all; mode 0600."""
    text = json.dumps(document(), ensure_ascii=False, allow_nan=False)
    handle, name = tempfile.mkstemp(prefix=".report.", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    Path(name).replace(path)


async def build(
    settings: Settings, store: Store, writer: Writer, clock: Clock, state: Path
) -> Parts:
    """The parts that `settings` describe."""
    rules = settings.classify_rules

    def classify(choices: Choices, facts: Facts, native_id: str) -> Classified:
        return classified(choices, facts, native_id, rules)

    made = outlets_of(settings, clock)
    terms = Terms(
        rules=_rules(settings.rules),
        sinks=tuple(settings.sinks),
        agent_logs=str(settings.agent_logs),
        post_mortem_sweeps=settings.post_mortem_sweeps,
    )
    sweeper = Sweeper(
        store,
        writer.call,
        clock,
        classify,
        terms,
        unknown_for=settings.lost_after,
        correct_for=settings.correction_window,
    )
    jobs = await writer.call(store.jobs, recent_since=clock.now())
    watched = frozenset(j.cluster for j in jobs if j.tracked and j.kind is Kind.SLURM)
    clusters = await clusters_of(settings, state, watched)
    return Parts(settings, clusters, made, classify, sweeper)


def outlets_of(settings: Settings, clock: Clock) -> Outlets:
    """The configured sinks, and where entries go."""
    tables = [(name, table.kind, table.options) for name, table in settings.sinks.items()]
    entries = (AGENT_LOG, "agent-log", {"root": settings.agent_logs})
    return outlets([*tables, entries], clock=clock)


def _rules(tables: Mapping[str, Mapping[str, Any]]) -> tuple[Rule, ...]:
    return tuple(registry.rules[name](**tables.get(name, {})) for name in registry.rules)


async def clusters_of(settings: Settings, state: Path, watched: Set[str]) -> dict[str, Cluster]:
    """One runtime a configured cluster of a kind that has a backend.

    `watched` are the clusters with tracked SLURM jobs.
    """
    built = {}
    for name, table in settings.clusters.items():
        if isinstance(table, SlurmCluster):
            transport = _transport(table, state)
            kinds: dict[Kind, Backend] = {Kind.SLURM: _slurm(transport, table, settings)}
            built[name] = _cluster(name, table, settings, transport, kinds)
        elif isinstance(table, LocalCluster):
            here = registry.transports["local"]()
            kinds = {Kind.LOCAL: registry.backends["local"](here, runs=state / "runs")}
            # Jobs that are watched there already are not dropped because a program fails today.
            if (
                table.slurm is True
                or (table.slurm == "auto" and name in watched)
                or (
                    table.slurm == "auto"
                    and table.active
                    and await slurm_here(here, name, table.bin_dir)
                )
            ):
                kinds[Kind.SLURM] = _slurm(here, table, settings)
            built[name] = _cluster(name, table, settings, here, kinds)
    return built


async def slurm_here(here: Transport, cluster: str, bin_dir: str | None = None) -> bool:
    """Whether there is a `squeue` that finds its configuration; asks no controller."""
    path = f"PATH={shlex.quote(bin_dir)}:$PATH\n" if bin_dir else ""
    ask = f"{path}command -v squeue >/dev/null || exit {_NOT_FOUND}\nsqueue --version"
    try:
        answer = await here.run(ask.encode(), timeout_s=SLURM_PROBE_S, max_bytes=65536)
    except TransportError:
        return True  # no answer is not a no: sweeps will say what is wrong
    if answer.exit_code not in (0, _NOT_FOUND):
        said = visible(readable(answer.stderr).strip().rpartition("\n")[2])
        journal.warning(
            "squeue is installed and SLURM is not set up: only processes are watched",
            cluster=cluster,
            squeue=said,
            remedy="set SLURM up, then reload; or set slurm = true",
        )
    return answer.exit_code == 0


def _cluster(
    name: str,
    table: SlurmCluster | LocalCluster,
    settings: Settings,
    transport: Transport,
    kinds: Mapping[Kind, Backend],
) -> Cluster:
    backoff_max = settings.backoff_max
    if isinstance(table, LocalCluster):
        # Processes must not wait for a SLURM that is in trouble.
        backoff_max = min(backoff_max, settings.poll_interval)
    return Cluster(
        name=name,
        kind=table.kind,
        backends=kinds,
        logs=FileReader(transport),
        transports=(transport,),
        active=table.active,
        discover=table.discover,
        notes=table.notes,
        budget_s=table.sweep_budget.total_seconds(),
        tail_bytes=table.log_tail_bytes,
        backoff=min(settings.backoff_min, backoff_max),
        backoff_max=backoff_max,
    )


def _transport(table: SlurmCluster, state: Path) -> Transport:
    if table.transport == "local":
        return cast(Transport, registry.transports["local"]())
    options: dict[str, Any] = {
        "hosts": table.host,
        "user": table.user,
        "port": table.port,
        "identity_file": table.identity_file,
        "known_hosts_file": table.known_hosts_file,
        "ssh_config_file": table.ssh_config_file,
        "proxy_jump": table.proxy_jump,
        "channels": table.max_channels,
        "keepalive_interval_s": table.keepalive.total_seconds(),
    }
    timeout_s = table.connect_timeout.total_seconds()
    if table.transport == "openssh":
        options |= {
            "control_path": table.control_path,
            "control_folder": state,
            "check_timeout_s": timeout_s,
        }
    else:
        options["connect_timeout_s"] = timeout_s
    return cast(Transport, registry.transports[table.transport](**options))


def _slurm(transport: Transport, table: SlurmCluster | LocalCluster, settings: Settings) -> Backend:
    made = registry.backends["slurm"](
        transport,
        users=table.users,
        grace_s=settings.grace.total_seconds(),
        unknown_after_s=settings.lost_after.total_seconds(),
        max_scontrol=table.max_scontrol,
        max_bytes=table.max_answer_bytes,
        bin_dir=table.bin_dir,
        discover=table.discover,
        offload=asyncio.to_thread,
    )
    return cast(Backend, made)
