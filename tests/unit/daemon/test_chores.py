"""What the daemon does by itself is done again where the database did not take it."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from jobmond.daemon.daemon import Daemon
from jobmond.errors import StoreError
from jobmond.sweep.couriers import Couriers
from tests.doubles_store import FixedClock

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
LOCKED = "database is locked"


@dataclass
class App:
    """An app whose database can be locked."""

    locked: bool = False
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOW))
    couriers: Couriers = field(default_factory=Couriers)
    clusters: dict[str, Any] = field(default_factory=dict)
    report_owed: str | None = None
    did: list[str] = field(default_factory=list)
    parts: Any = field(
        default_factory=lambda: SimpleNamespace(
            settings=SimpleNamespace(
                poll_interval=timedelta(minutes=15),
                jitter=timedelta(0),
                backoff_min=timedelta(minutes=1),
                backoff_max=timedelta(hours=1),
            )
        )
    )

    def _do(self, what: str) -> None:
        if self.locked:
            raise StoreError(LOCKED)
        self.did.append(what)

    async def watched(self) -> list[str]:
        self._do("watched")
        return []

    async def report(self) -> None:
        self._do("report")

    async def expire(self) -> None:
        self._do("expire")

    async def deliver(self) -> None: ...

    async def remind(self) -> None: ...


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def daemon(app: App) -> Daemon:
    made = Daemon(app, reload=lambda: app.parts.settings, seed="x")  # type: ignore[arg-type] # a double
    made.bell.sleep = lambda: None  # type: ignore[method-assign] # there is none to wake
    return made


async def settled(daemon: Daemon) -> None:
    while daemon._background:
        await asyncio.wait(list(daemon._background))
        await asyncio.sleep(0)


async def watched_again(daemon: Daemon, app: App, seconds: float) -> None:
    app.clock.move(seconds)
    daemon._watch()
    await settled(daemon)


async def test_old_rows_and_the_report_are_seen_to_again_when_the_lock_is_gone(
    daemon: Daemon, app: App
) -> None:
    app.locked = True
    with capture_logs() as said:
        daemon.changed()
        daemon._rung("start")
        daemon._watch()
        await settled(daemon)
        await watched_again(daemon, app, 59)  # not yet
        assert [line["event"] for line in said] == ["failed"]
        app.locked = False
        await watched_again(daemon, app, 1)
    assert sorted(app.did) == ["expire", "report", "watched", "watched"]
    assert [(line["event"], line.get("was")) for line in said] == [
        ("failed", None),
        ("works again", LOCKED),
    ]
    assert daemon._troubles.newest is None
    app.did.clear()
    await watched_again(daemon, app, 3600)
    assert app.did == []


async def test_a_change_after_a_failure_is_reported_too(daemon: Daemon, app: App) -> None:
    app.locked = True
    daemon.changed()
    await settled(daemon)
    app.locked = False
    daemon.changed()
    await settled(daemon)
    assert app.did == ["watched", "report"]
