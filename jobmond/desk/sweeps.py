"""Sweeps that people ask for: within the budget, and never where they would do harm."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobmond.desk.aim import ClusterInfo, cluster_named
from jobmond.desk.answers import sweep_row, with_unasked
from jobmond.desk.budget import SweepBudget
from jobmond.desk.look import Overview, overview
from jobmond.desk.shelf import Call, Shelf
from jobmond.errors import JobmondError
from jobmond.model.job import ClusterHealth
from jobmond.model.state import ClusterStatus
from jobmond.ports import Clock

RequestSweep = Callable[[str | None, bool], Awaitable[Sequence[Mapping[str, Any]]]]


@dataclass(kw_only=True, slots=True)
class SweepAsks:
    """Passes requests for sweeps on, as far as the budget goes."""

    call: Call
    store: Shelf
    clock: Clock
    clusters: Callable[[], Sequence[ClusterInfo]]
    request_sweep: RequestSweep
    last_answer: Callable[[str], Mapping[str, Any] | None]
    budget: SweepBudget

    async def by_name(self, name: str, *, wait: bool) -> list[dict[str, Any]]:
        """A person names the cluster: it is asked even where a login was needed before.

        Raises:
            ConfigError: unknown cluster.
        """
        cluster = cluster_named(name, self.clusters())
        return await self._answered([cluster], {name} if self._allowed(cluster) else set(), wait)

    async def all(self, *, wait: bool) -> list[dict[str, Any]]:
        """Every cluster that can be asked without a person's help; the others' last answer."""
        clusters = self.clusters()
        healths = {h.name: h for h in (await self._overview()).healths}
        asked = {c.name for c in clusters if _willing(healths.get(c.name)) and self._allowed(c)}
        return await self._answered(clusters, asked, wait)

    async def after_adding(self, names: Iterable[str]) -> None:
        """Ask for sweeps of clusters that got jobs; waits for none and never fails.

        A cluster that needs a person, or is backed off, is left alone: its next sweep comes.
        """
        now = self.clock.now()
        healths = {h.name: h for h in (await self._overview()).healths}
        wanted = set(names)
        for cluster in self.clusters():
            health = healths.get(cluster.name)
            if cluster.name not in wanted or not _willing(health) or _backed_off(health, now):
                continue
            if self._allowed(cluster):
                with contextlib.suppress(JobmondError):
                    await self.request_sweep(cluster.name, False)

    def _allowed(self, cluster: ClusterInfo) -> bool:
        # A sweep of one that is switched off contacts nobody, and sees whether it still is.
        return not cluster.active or self.budget.take(cluster.name, self.clock.monotonic())

    async def _answered(
        self, clusters: Sequence[ClusterInfo], asked: set[str], wait: bool
    ) -> list[dict[str, Any]]:
        # A person who goes away, or a daemon that stops, must not cancel a sweep in hand.
        fresh = await asyncio.gather(
            *(asyncio.shield(self.request_sweep(name, wait)) for name in sorted(asked))
        )
        rows = {row["name"]: dict(row) for answer in fresh for row in answer}
        missing = [c for c in clusters if c.name not in rows]
        if missing:
            rows |= {row["name"]: row for row in await self._last(missing)}
        return [rows[c.name] for c in clusters]

    async def _last(self, clusters: Sequence[ClusterInfo]) -> list[dict[str, Any]]:
        now = self.clock.now()
        seen = await self._overview()
        times = await self.call(self.store.swept_at)
        rows = []
        for health in with_unasked(seen.healths, clusters, now):
            jobs = sum(1 for job in seen.jobs if job.tracked and job.cluster == health.name)
            row = sweep_row(health, jobs=jobs, swept_at=times.get(health.name), now=now)
            rows.append({**row, **(self.last_answer(health.name) or {})})
        return rows

    async def _overview(self) -> Overview:
        now = self.clock.now()
        return await self.call(overview, self.store, now, now)


def _willing(health: ClusterHealth | None) -> bool:
    return health is None or health.status != ClusterStatus.NEEDS_LOGIN


def _backed_off(health: ClusterHealth | None, now: datetime) -> bool:
    return health is not None and health.retry_at is not None and health.retry_at > now
