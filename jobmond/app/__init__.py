"""The composition root: configuration in, working parts out."""

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from jobmond import __version__, registry
from jobmond.analysis.classify import classified
from jobmond.analysis.followed import Tools
from jobmond.analysis.judge import STEPPED
from jobmond.analysis.settle import Classify, Found
from jobmond.app.clusters import Builder
from jobmond.app.ops_files import OpsFiles
from jobmond.app.owed import Reminders, errands, errands_of
from jobmond.desk.forgotten import as_left, forgotten
from jobmond.errors import StoreError
from jobmond.model.job import Choices, Classified
from jobmond.model.observation import Facts
from jobmond.model.state import Bucket, Kind
from jobmond.ports import Clock, Rule, Sink
from jobmond.reports.document import status_document, with_unused
from jobmond.settings import Settings
from jobmond.settings.clusters import AnyCluster
from jobmond.store import Store, StoreLock
from jobmond.store.engine import database_file
from jobmond.store.filesystem import network_file_system
from jobmond.store.launched import Keep, forget
from jobmond.store.registries import sink_name
from jobmond.store.reportfile import write_report
from jobmond.store.standing import check_not_emptied
from jobmond.store.writer import Writer
from jobmond.sweep.act import Actor
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.conclude import AGENT_LOG, Terms
from jobmond.sweep.couriers import Couriers
from jobmond.sweep.deliver import Post, Unstored, all_rounds
from jobmond.sweep.errands import Errands
from jobmond.sweep.outlets import Outlets, outlets
from jobmond.sweep.sweep import Result, Sweeper
from jobmond.sweep.write_back import StoredWords, WriteBacks

journal = structlog.get_logger("jobmond.app")


@dataclass(slots=True)
class Parts:
    """What a configuration is made into; a reload makes new ones.

    `tables` are the clusters' settings as their ops files have them.
    """

    settings: Settings
    tables: dict[str, AnyCluster]
    clusters: dict[str, Cluster]
    outlets: Outlets
    classify: Classify
    sweeper: Sweeper


@dataclass(slots=True)
class App:
    """A store and the parts that work on it. `state` is the directory for files of our own.

    `registry_files` are the paths watched at the last look. `problems` says what is wrong with
    what other people and programs write, one line each.
    """

    store: Store
    writer: Writer
    clock: Clock
    state: Path
    lock: StoreLock
    parts: Parts
    next_sweep_at: Callable[[], datetime | None] = lambda: None
    on_commit: Callable[[], object] = lambda: None
    problems: Callable[[], Iterable[str]] = lambda: ()
    last_sweep_at: datetime | None = None
    found: dict[str, tuple[datetime, tuple[Found, ...]]] = field(default_factory=dict)
    registry_files: Set[str] = frozenset()
    ops: OpsFiles = field(default_factory=OpsFiles)
    couriers: Couriers = field(default_factory=Couriers)
    reminders: Reminders = field(init=False)
    errands: Errands = field(init=False)
    report_owed: str | None = None  # why the last report is not on disk
    _backs: WriteBacks | None = None
    _unstored: Unstored = field(default_factory=Unstored)
    _delivering: asyncio.Lock = field(default_factory=asyncio.Lock)
    _reporting: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.reminders = Reminders(self.store, self.writer, self.clock)
        troubles = self.couriers.troubles
        self.errands = errands(self.store, self.writer, self.clock, troubles)

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        return self.parts.clusters

    async def sweep(self, name: str, *, asked: bool = False) -> Result:
        """Sweep one cluster, deliver what it concluded, write the report."""
        await self._fit(name)
        result = await self.parts.sweeper.sweep(self.clusters[name], asked=asked)
        if result.contacted:
            self.last_sweep_at = result.at
            self.found[name] = (result.at, result.found)
        self.on_commit()
        await self.deliver()
        if result.contacted:
            patience = self.parts.settings.policy.cancel_again_after
            actor = Actor(self.store, self.writer.call, self.clock, patience)
            await actor.act(self.clusters[name], result.waiting)
        self.errands.wake(errands_of(self.parts.settings.followups))
        await self.report()
        return result

    async def remind(self) -> None:
        """Tell what is owed, once in `remind_every`."""
        if await self.reminders.look(self.parts.settings):
            await self.deliver()

    async def _fit(self, name: str) -> None:
        """Read the cluster's ops file again, and ask the cluster as it says from now on."""
        parts = self.parts
        given = parts.settings.clusters[name]
        if given.ops_file is None:
            return
        table = await asyncio.to_thread(self.ops.table, name, given)
        if table == parts.tables[name]:
            return
        old = parts.clusters[name]
        watched = await _asking_slurm(self.store, self.writer, self.clock)
        builder = Builder(parts.settings, self.state, watched, {name: old})
        new = await builder.one(name, table)
        if new is None:
            return
        parts.tables[name], parts.clusters[name] = table, new
        await _close_others([old], [new])
        journal.info("ops file taken", cluster=name, active=table.active, notes=table.notes)

    async def deliver(self) -> None:
        """One round over all near sinks; rounds follow each other. Far sinks begin theirs."""
        settings = self.parts.settings
        post = Post(
            self.store,
            self.writer.call,
            self.clock,
            backoff=settings.backoff_min,
            backoff_max=settings.backoff_max,
            unstored=self._unstored,
        )
        self.couriers.wake(post, self.parts.outlets.far)
        async with self._delivering:
            near = self.parts.outlets.near | await self._write_backs()
            await all_rounds(post, near)

    async def _write_backs(self) -> dict[str, Sink]:
        if not self.registry_files:
            return {}
        waiting = await self.writer.call(self.store.outbox_sinks)
        if self._backs is None:
            words = StoredWords(self.store.registries, self.writer.call, self.clock)
            self._backs = WriteBacks(words)
        return self._backs.of(waiting, self.registry_files)

    async def report(self) -> None:
        """Write `report.json`, for when no daemon answers; one that cannot be written is told once
        and owed, for what was swept stands without it."""
        async with self._reporting:
            now = self.clock.now()
            recent_since = now - self.parts.settings.recent
            jobs = await self.writer.call(self.store.jobs, recent_since=recent_since)
            known = await self.writer.call(self.store.clusters, now)
            health = [h for h in known if h.name in self.clusters]
            health += forgotten(jobs, known, self.clusters, now)
            standings = await self.writer.call(self.store.standings)
            sinks = with_unused(standings, self.sink_names())
            left = as_left(jobs, self.clusters)
            daemon = self.daemon_info()
            path = self.state / "report.json"
            try:
                await asyncio.to_thread(
                    write_report,
                    path,
                    lambda: status_document(left, health, sinks=sinks, daemon=daemon, now=now),
                )
            except OSError as error:
                self._report_failed(f"{path} cannot be written: {error.strerror or error}")
                return
            if self.report_owed is not None:
                journal.info("report written again", was=self.report_owed)
            self.report_owed = None

    def _report_failed(self, why: str) -> None:
        if why != self.report_owed:
            journal.error("report not written, the one before stays", error=why)
        self.report_owed = why

    def daemon_info(self) -> dict[str, Any]:
        """The `daemon` object of the status document."""
        return {
            "running": True,
            "host": socket.gethostname(),
            "version": __version__,
            "last_sweep_at": self.last_sweep_at,
            "next_sweep_at": self.next_sweep_at(),
            "problems": [*self.problems(), *self.ops.problems.values()],
        }

    def sink_names(self) -> tuple[str, ...]:
        """What news and entries go to, in the order of the configuration."""
        return (*self.parts.settings.sinks, AGENT_LOG, *map(sink_name, sorted(self.registry_files)))

    async def watched(self) -> list[str]:
        """The clusters that a tick has to sweep: with tracked jobs, discovering, or switched off.

        Empty where there is nothing to watch anywhere.
        """
        tracked = await self.writer.call(self.store.watched_clusters)
        return [n for n, one in self.clusters.items() if n in tracked or self._may_find(n, one)]

    def _may_find(self, name: str, cluster: Cluster) -> bool:
        """Whether a sweep can find jobs there, or that the cluster was switched on again."""
        return cluster.discovers or (
            cluster.discover and self.parts.tables[name].ops_file is not None
        )

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
            readings_keep=settings.readings_keep,
            audit_keep=settings.audit_keep,
        )

    async def prepared(self, settings: Settings) -> Parts:
        """The parts of another configuration; `ConfigError` where they cannot be made."""
        return await build(
            settings,
            self.store,
            self.writer,
            self.clock,
            self.state,
            ops=self.ops,
            kept=self.clusters,
        )

    async def replace(self, parts: Parts) -> None:
        """Work with other parts from the next sweep on; no sweep may be in hand."""
        await self.couriers.stop()
        old, self.parts = self.parts, parts
        self.couriers.resume()
        await _close_others(old.clusters.values(), parts.clusters.values())
        await old.outlets.close()

    async def close(self) -> None:
        await self.errands.stop()
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
        if database is not None:
            check_not_emptied(database)
        remote = database is not None and network_file_system(database.resolve().parent) is not None
        store = await writer.call(Store.open, settings.database.url, exclusive=remote)
        ops = OpsFiles()
        parts = await build(settings, store, writer, clock, state, ops=ops)
    except BaseException:
        writer.close()
        lock.release()
        raise
    return App(store, writer, clock, state, lock, parts, ops=ops)


async def build(
    settings: Settings,
    store: Store,
    writer: Writer,
    clock: Clock,
    state: Path,
    *,
    ops: OpsFiles,
    kept: Mapping[str, Cluster] | None = None,
) -> Parts:
    """The parts that `settings` describe; those of `kept` that are reached the same way stay so."""
    rules = settings.classify_rules

    def classify(
        choices: Choices, facts: Facts, native_id: str, read_as: Bucket | None = None, /
    ) -> Classified:
        return classified(choices, facts, native_id, rules, read_as)

    made = outlets_of(settings, clock)
    rules_over = _rules(settings.rules)
    terms = Terms(
        rules=tuple(rule for rule in rules_over if rule.id not in STEPPED),
        sinks=tuple(settings.sinks),
        agent_logs=str(settings.agent_logs),
        post_mortem_sweeps=settings.post_mortem_sweeps,
        recurrence_window=settings.recurrence_window,
    )
    sweeper = Sweeper(
        store,
        writer.call,
        clock,
        classify,
        terms,
        unknown_for=settings.lost_after,
        correct_for=settings.correction_window,
        tools=Tools(
            tuple(registry.parsers[name]() for name in registry.parsers),
            tuple(rule for rule in rules_over if rule.id in STEPPED),
        ),
    )
    watched = await _asking_slurm(store, writer, clock)
    tables = await asyncio.to_thread(ops.all, settings.clusters)
    clusters = await Builder(settings, state, watched, kept or {}).all(tables)
    return Parts(settings, tables, clusters, made, classify, sweeper)


async def _asking_slurm(store: Store, writer: Writer, clock: Clock) -> frozenset[str]:
    jobs = await writer.call(store.jobs, recent_since=clock.now())
    return frozenset(j.cluster for j in jobs if j.tracked and j.kind is Kind.SLURM)


async def _close_others(old: Iterable[Cluster], new: Iterable[Cluster]) -> None:
    """Close the connections that nothing uses any more."""
    used = {id(transport) for cluster in new for transport in cluster.transports}
    for cluster in old:
        for transport in cluster.transports:
            if id(transport) not in used:
                await transport.close()


def outlets_of(settings: Settings, clock: Clock) -> Outlets:
    """The configured sinks, and where entries go."""
    tables = [(name, table.kind, table.options) for name, table in settings.sinks.items()]
    entries = (AGENT_LOG, "agent-log", {"root": settings.agent_logs})
    return outlets([*tables, entries], clock=clock)


def _rules(tables: Mapping[str, Mapping[str, Any]]) -> tuple[Rule, ...]:
    return tuple(registry.rules[name](**tables.get(name, {})) for name in registry.rules)
