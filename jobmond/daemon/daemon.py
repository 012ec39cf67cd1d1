"""The daemon: sweeps at start, on the grid and on request; serves people; ends cleanly."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

import structlog

from jobmond.app import App
from jobmond.daemon.bell import Bell
from jobmond.daemon.notify import Systemd, status_line
from jobmond.daemon.requests import Lanes
from jobmond.daemon.trouble import Again
from jobmond.errors import JobmondError, StoreError
from jobmond.settings import Settings
from jobmond.sweep.sweep import Result

journal = structlog.get_logger("jobmond.daemon")

EXPIRE_EVERY = timedelta(hours=6)
_LAST_WORDS_S = 120.0  # what the end may take beyond a sweep: its commit and deliveries
NOTICE_S = 5.0  # how long a file system that does not answer holds up a sweep


class Server(Protocol):
    """What answers people while the daemon runs."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


async def _nothing() -> None:
    """Where nobody leaves anything to be picked up."""


class Daemon:
    """One run of the daemon, from start to SIGTERM.

    `reload` reads the configuration again and raises what is wrong with it. `pick_up` tracks what
    was left to be found, `notice` what other programs wrote by now, before a sweep; `idle` is
    called at a start with nothing to watch, `refit` with settings that are about to be taken,
    which it may refuse.
    """

    def __init__(
        self,
        app: App,
        *,
        reload: Callable[[], Settings],
        seed: str,
        systemd: Systemd = Systemd(),  # noqa: B008 - a frozen value
    ) -> None:
        self.app = app
        self._systemd = systemd
        self._troubles = app.couriers.troubles
        self._reload = reload
        self._stop = asyncio.Event()
        self._background: set[asyncio.Task[Any]] = set()
        self._expired_at: datetime | None = None
        self._report_owed = False
        self._reading = asyncio.Lock()
        self._wrong: str | None = None
        self.idle: Callable[[], object] = lambda: None
        self.refit: Callable[[Settings], object] = lambda settings: None
        self.pick_up: Callable[[], Coroutine[Any, Any, None]] = _nothing
        self.notice: Callable[[], Coroutine[Any, Any, None]] = _nothing
        self.lanes = Lanes(self._sweep)
        settings = app.parts.settings
        self._again, self._chores_again = Again(*_pauses(settings)), Again(*_pauses(settings))
        self._chores: Mapping[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "idle": self._idle_or_not,
            "look": partial(self._look, "again"),
            "rest": self._rest,
            "report": self._report,
            "expire": self.app.expire,
        }
        self.bell = Bell(
            app.clock,
            ring=self._rung,
            watch=self._watch,
            interval=settings.poll_interval,
            jitter=settings.jitter,
            seed=seed,
        )

    async def run(self, server: Server, *, before_end: Callable[[], None]) -> None:
        """Serve and sweep until told to stop; then let the sweep in hand finish.

        `before_end` is called when stopping begins: nobody may ask for another sweep from then on.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        await server.start()
        self._systemd.ready()
        alive = asyncio.create_task(self._systemd.keep_alive())
        self.bell.start()
        try:
            await self._begin()
            await self._stop.wait()
            budgets = [cluster.budget_s for cluster in self.app.clusters.values()]
            self._systemd.stopping(within_s=max(budgets, default=0.0) + _LAST_WORDS_S)
            journal.info("stopping", waits_for="the sweep in hand")
        finally:
            before_end()
            self.bell.stop()
            await self.lanes.finish()
            await self.app.errands.stop()
            while self._background:  # one may have begun another
                await asyncio.gather(*self._background, return_exceptions=True)
            await server.stop()
            alive.cancel()

    async def _begin(self) -> None:
        # What a crash left in the outbox; what was left to be found; the report with both. A
        # database that is locked or full for a while is told, and no reason to give up.
        for what, work, patience_s in (
            ("deliver", self.app.deliver, None),
            ("pick up", self.pick_up, NOTICE_S),
            ("report", partial(self._chore, "report"), None),
            ("idle", partial(self._chore, "idle"), None),
        ):
            await asyncio.wait([self._spawn(work(), what)], timeout=patience_s)
        self._rung("start")

    async def _idle_or_not(self) -> None:
        if not await self.app.watched():
            self.idle()

    def stop(self) -> None:
        """Ask the daemon to end."""
        self._stop.set()

    @property
    def problems(self) -> list[str]:
        """What is wrong with the configuration as it is now, where it is not what is used."""
        return [] if self._wrong is None else [f"configuration not taken: {self._wrong}"]

    def wake(self) -> None:
        """There is something to watch: tick from now on."""
        self.bell.wake()

    def changed(self) -> None:
        """A person changed what is tracked or how it is called: write the report anew, once for
        all changes that came meanwhile, and fall asleep where nothing is left to watch."""
        if not self._report_owed:
            self._report_owed = True
            self._spawn(self._chore("report"), "report")

    async def _report(self) -> None:
        self._report_owed = False  # what changes from here on is not in this report
        if not await self.app.watched():
            self.bell.sleep()
        await self.app.report()

    async def request(self, name: str | None, wait: bool) -> Sequence[Mapping[str, Any]]:
        """A sweep of one cluster (asked by name) or of all; rows of the interface."""
        await self._noticed()
        if wait:  # a change of the configuration first waits for the sweeps in hand
            await self._refresh()
        known = self.app.clusters
        names = list(known) if name is None else [name] if name in known else []
        tasks = [self.lanes.request(n, asked=name is not None) for n in names]
        for task in tasks:
            self._keep(task)
        if wait:
            done = await asyncio.gather(*tasks, return_exceptions=True)
            for failed in (r for r in done if isinstance(r, JobmondError)):
                raise failed  # an earlier answer would hide that this sweep is not stored
            results = [
                r if isinstance(r, Result) else self.lanes.last(n)
                for n, r in zip(names, done, strict=True)
            ]
        else:
            results = [self.lanes.last(n) for n in names]
        now = self.app.clock.now()
        return [row(r, now) for r in results if r is not None]

    def last_answer(self, name: str) -> Mapping[str, Any] | None:
        """What the last sweep of a cluster said, with its age now."""
        result = self.lanes.last(name)
        return row(result, self.app.clock.now()) if result is not None else None

    async def _sweep(self, name: str, asked: bool) -> Result:
        try:
            result = await self.app.sweep(name, asked=asked)
        except StoreError:
            self._again.failed(name, at_s=self.app.clock.monotonic())
            raise
        self._again.worked(name)
        self._spawn(self._chore("rest"), "rest")
        return result

    async def _noticed(self) -> None:
        """What other programs left until now, as far as it can be had in a moment."""
        await asyncio.wait([self._spawn(self.notice(), "notice")], timeout=NOTICE_S)

    def _rung(self, why: str) -> None:
        self._spawn(self._chore("look", partial(self._look, why)), "look")

    async def _chore(
        self, what: str, work: Callable[[], Coroutine[Any, Any, None]] | None = None
    ) -> None:
        """Work that nobody asks for again: where the database did not take it, it is done again
        soon, or what it failed of would never be over."""
        try:
            await (work or self._chores[what])()
        except StoreError:
            self._chores_again.failed(what, at_s=self.app.clock.monotonic())
            raise
        self._chores_again.worked(what)

    async def _look(self, why: str) -> None:
        """Sweep everything there is to watch; fall asleep where there is nothing."""
        if why == "tick":
            await self._refresh()
        await self._noticed()
        names = await self.app.watched()
        if self._stop.is_set():  # meanwhile
            return
        if not names:
            self.bell.sleep()
            return
        self.bell.wake()
        journal.debug("sweep", why=why, clusters=names)
        for name in names:
            self._keep(self.lanes.request(name))

    async def _rest(self) -> None:
        """After a sweep: fall asleep where nothing is left to watch."""
        if not await self.app.watched():
            self.bell.sleep()
            await self.app.report()

    def _watch(self) -> None:
        """Every few seconds: what is due by now, and old rows once in a while."""
        self._once(self.app.deliver, "deliver")
        self._once(self.pick_up, "pick up")
        self._once(self.app.remind, "remind")
        if self.app.report_owed:
            self._once(self.app.report, "report")
        for name in self._again.due(self.app.clock.monotonic()):
            self._keep(self.lanes.request(name))
        now = self.app.clock.now()
        if self._expired_at is None or abs(now - self._expired_at) > EXPIRE_EVERY:
            self._expired_at = now
            self._spawn(self._chore("expire"), "expire")
        for what in self._chores_again.due(self.app.clock.monotonic()):
            self._once(partial(self._chore, what), what)
        self._tell_systemd()

    def _tell_systemd(self) -> None:
        results = [r for name in self.app.clusters if (r := self.lanes.last(name)) is not None]
        line = status_line(results, next_at=self.bell.next_at, trouble=self._troubles.newest)
        self._systemd.status(line)

    def _hang_up(self) -> None:
        self._spawn(self._told_to_reload(), "reload")

    async def _told_to_reload(self) -> None:
        self._wrong = None  # whoever asks gets an answer
        self._systemd.reloading(monotonic_s=self.app.clock.monotonic())
        try:
            if await self._refresh(anyway=True):
                self._rung("reload")
        finally:
            self._systemd.ready()

    async def _refresh(self, *, anyway: bool = False) -> bool:
        """Read the configuration again and work with it where it changed, or `anyway`.

        A bad edit is told once, and the last good configuration stays.
        """
        async with self._reading:
            try:
                settings = await asyncio.to_thread(self._reload)
                if settings == self.app.parts.settings and not anyway:
                    self._wrong = None
                    return False
                parts = await self.app.prepared(settings)
                self.refit(settings)
            except JobmondError as wrong:
                if str(wrong) != self._wrong:
                    said = "configuration not taken, the last good one stays"
                    journal.error(said, error=str(wrong))
                self._wrong = str(wrong)
                return False
            await self.lanes.settle()
            await self.app.replace(parts)
            self._wrong = None
        self.bell.set_grid(settings.poll_interval, settings.jitter)
        for again in (self._again, self._chores_again):  # what waits goes on waiting
            again.first, again.longest = _pauses(settings)
        journal.info("configuration read again")
        return True

    def _spawn(self, work: Coroutine[Any, Any, None], what: str) -> "asyncio.Task[None]":
        task = asyncio.create_task(work, name=what)
        self._keep(task)
        return task

    def _once(self, work: Callable[[], Coroutine[Any, Any, None]], what: str) -> None:
        """Begin it unless it is still in hand from before, as it is while a disk hangs."""
        if all(task.get_name() != what for task in self._background):
            self._spawn(work(), what)

    def _keep(self, task: "asyncio.Task[Any]") -> None:
        """Hold a task until it ends and say what went wrong in it."""
        if task in self._background:
            return
        self._background.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._background.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._troubles.worked(task.get_name())
        else:
            self._troubles.failed(task.get_name(), error)
        self._tell_systemd()


def _pauses(settings: Settings) -> tuple[timedelta, timedelta]:
    """The first and the longest pause before work that the database did not take."""
    return settings.backoff_min, min(settings.backoff_max, settings.poll_interval)


def row(result: Result, now: datetime) -> dict[str, Any]:
    """One cluster's line in the answer to a request for a sweep."""
    return {
        "name": result.cluster,
        "status": result.status,
        "jobs": result.jobs,
        "changes": result.changes,
        "error": result.error,
        "remedy": result.remedy,
        "age_s": max(0, int((now - result.at).total_seconds())),
    }
