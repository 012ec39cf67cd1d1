"""Webhooks through the outbox: order, restarts, back-off, giving up, and what nobody may read."""

import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from jobmond.model.outcome import Delivery, SinkStanding
from jobmond.sinks.webhook import WebhookSink
from jobmond.store import Store
from jobmond.sweep.deliver import Delivered, Post
from jobmond.transports.http import HttpClient
from tests.doubles_store import FixedClock
from tests.integration.test_webhook import NOW, ONE_SECOND, event
from tests.receiver import (
    CLOSE,
    HANG,
    MID_BODY,
    MID_CHUNK,
    NO_HTTP,
    RESET,
    RESET_TAKEN,
    Receiver,
    Reply,
    Request,
    status,
)

HOUR_S = 3600.0
NOISE = (
    status(500), status(503, Retry_After="5"), status(429, Retry_After="60"), status(408),
    status(202), RESET, RESET_TAKEN, CLOSE, MID_BODY, MID_CHUNK, NO_HTTP,
)  # fmt: skip


@dataclass
class Life:
    """One life of the daemon's deliveries."""

    store: Store
    post: Post
    sink: WebhookSink

    async def round(self) -> Delivered:
        return await self.post.round("team", self.sink)

    def owe(self, *events: Delivery) -> None:
        self.store.publish((), events)

    @property
    def standing(self) -> SinkStanding:
        return next(iter(self.store.standings()), SinkStanding("team"))


@dataclass
class Host:
    """What outlives the daemon: a folder and the time."""

    folder: Path
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOW))

    def address(self, url: str) -> None:
        (self.folder / "url").write_text(url)

    @asynccontextmanager
    async def life(self, **options: object) -> AsyncIterator[Life]:
        store = Store.open(f"sqlite:///{self.folder / 'db'}")
        http = HttpClient()
        options = {"timeout": ONE_SECOND, **options}
        sink = WebhookSink(http, self.clock, url_file=self.folder / "url", **options)
        try:
            yield Life(store, Post(store, call, self.clock), sink)
        finally:
            await http.close()
            store.close()


async def call(fn, /, *args, **kw):
    return fn(*args, **kw)


@pytest.fixture(autouse=True)
def straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the proxy that this environment may have."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def keys(receiver: Receiver) -> list[str]:
    return list(receiver.taken)


def of_three_jobs(count: int) -> list[Delivery]:
    return [event(n, f"lab/{n % 3}") for n in range(count)]


@pytest.mark.parametrize("seed", range(3))
async def test_a_storm_loses_nothing_and_doubles_nothing(host: Host, seed: int) -> None:
    """Every fault there is, the daemon started anew again and again; two events are refused."""
    chance = random.Random(seed)
    events = of_three_jobs(24)
    doomed = {events[5].key, events[16].key}
    faults = [*NOISE * 2, HANG]
    chance.shuffle(faults)

    def script(request: Request) -> Reply:
        if faults and chance.random() < 0.6:
            return faults.pop()
        return status(400) if request.key in doomed else status(200)

    async with Receiver(script=script) as receiver:
        host.address(receiver.url)
        left = list(events)
        for _ in range(200):
            async with host.life() as life:
                coming = [left.pop(0) for _ in range(min(len(left), chance.randrange(4)))]
                life.owe(*(replace(e, created_at=host.clock.at) for e in coming))
                await life.round()
                waits = life.standing.undelivered
            if not waits and not left:
                break
            host.clock.move(HOUR_S + 1)
        assert not waits and not left
        assert len(faults) < 8
    assert set(receiver.taken) | doomed == {e.key for e in events}
    for ref in ("lab/0", "lab/1", "lab/2"):
        wanted = [e.key for e in events if e.key.startswith(ref) and e.key in receiver.taken]
        assert [k for k in keys(receiver) if k.startswith(ref)] == wanted


async def test_what_was_taken_before_a_failure_is_not_sent_again(host: Host) -> None:
    events = of_three_jobs(5)
    async with Receiver([status(200), status(200), status(503)]) as receiver:
        host.address(receiver.url)
        async with host.life() as life:
            life.owe(*events)
            assert (await life.round()).sent == 2
            assert life.standing.undelivered == 3
        host.clock.move(HOUR_S)
        async with host.life() as life:
            assert await life.round() == Delivered("team", 3)
        sent = [r.key for r in receiver.requests]
        assert sent == [events[n].key for n in (0, 1, 2, 2, 3, 4)]
        assert receiver.again == []


async def test_only_the_refused_event_is_given_up_and_that_is_said_loudly(host: Host) -> None:
    events = of_three_jobs(3)
    async with Receiver([status(200), status(400), status(200)]) as receiver:
        host.address(receiver.url)
        async with host.life() as life:
            life.owe(*events)
            with capture_logs() as said:
                assert await life.round() == Delivered("team", 2)
            assert life.standing == SinkStanding(
                "team",
                given_up=1,
                given_up_at=NOW,
                last_error="the receiver answered 400 Bad Request",
            )
    assert keys(receiver) == [events[0].key, events[2].key]
    assert said == [
        {
            "event": "delivery given up",
            "log_level": "error",
            "sink": "team",
            "key": events[1].key,
            "error": "the receiver answered 400 Bad Request",
        }
    ]


async def test_a_pause_doubles_and_survives_a_restart(host: Host) -> None:
    async with Receiver([status(500)] * 20) as receiver:
        host.address(receiver.url)
        pauses = []
        for _ in range(10):
            async with host.life() as life:
                life.owe(event(1))
                await life.round()
                retry_at = life.standing.retry_at
                assert retry_at is not None
                pauses.append((retry_at - host.clock.at).total_seconds())
                host.clock.move(pauses[-1] - 1)
            async with host.life() as life:
                assert await life.round() == Delivered("team", 0)  # not yet
            host.clock.move(1)
        assert len(receiver.requests) == 10
    assert pauses == [15, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600]


@pytest.mark.parametrize(
    ("asked", "pause_s"),
    [("7", 7), ("Sun, 29 Nov 2026 12:02:00 GMT", 120), ("999999999", 3600), ("0", 0)],
)
async def test_the_receiver_says_when(host: Host, asked: str, pause_s: int) -> None:
    async with Receiver([status(429, Retry_After=asked)]) as receiver:
        host.address(receiver.url)
        async with host.life() as life:
            life.owe(event(1))
            await life.round()
            assert life.standing.retry_at == NOW + timedelta(seconds=pause_s)
            host.clock.move(pause_s)
            assert await life.round() == Delivered("team", 1)


async def test_down_for_two_days(host: Host) -> None:
    receiver = Receiver()
    await receiver.up()
    host.address(receiver.url)
    await receiver.down()
    events = of_three_jobs(4)
    async with host.life() as life:
        life.owe(*events)
        for _ in range(48):
            assert (await life.round()).error is not None
            host.clock.move(HOUR_S)
    assert receiver.requests == []
    async with receiver, host.life() as life:
        assert await life.round() == Delivered("team", 4)
        assert keys(receiver) == [e.key for e in events]


async def test_too_old_is_given_up_said_once_and_the_rest_goes_on(host: Host) -> None:
    async with Receiver([status(500)] * 2) as receiver:
        host.address(receiver.url)
        async with host.life(give_up_after=timedelta(hours=2)) as life:
            life.owe(event(1), event(2), replace(event(3), created_at=NOW + timedelta(hours=2)))
            await life.round()
            host.clock.move(2 * HOUR_S + 1)
            with capture_logs() as said:
                await life.round()
            given_up = [line for line in said if line["log_level"] == "error"]
            assert [line["events"] for line in given_up] == [2]
            assert life.standing == SinkStanding(
                "team",
                undelivered=1,
                given_up=2,
                given_up_at=host.clock.at,
                last_error="not taken in time: the receiver answered 500 Internal Server Error",
            )
            with capture_logs() as said:
                host.clock.move(HOUR_S)
                assert await life.round() == Delivered("team", 1)
            assert said == []
        assert keys(receiver) == [event(3).key]


async def test_no_age_is_too_much_for_a_receiver_that_takes_it(host: Host) -> None:
    """A clock that leapt a month ahead, or a month without a daemon."""
    async with Receiver() as receiver:
        host.address(receiver.url)
        async with host.life(give_up_after=timedelta(hours=2)) as life:
            life.owe(event(1), event(2))
            host.clock.move(30 * 24 * HOUR_S)
            assert await life.round() == Delivered("team", 2)


async def test_of_more_than_fit_the_newest_stay(host: Host) -> None:
    async with Receiver([status(500)]) as receiver:
        host.address(receiver.url)
        async with host.life(spool=3) as life:
            events = of_three_jobs(10)
            life.owe(*events)
            with capture_logs() as said:
                await life.round()
            assert [line["events"] for line in said if line["log_level"] == "error"] == [7]
            host.clock.move(HOUR_S)
            assert await life.round() == Delivered("team", 3)
        assert keys(receiver) == [e.key for e in events[7:]]


async def test_another_sink_is_not_shed(host: Host) -> None:
    async with Receiver([status(500)]) as receiver:
        host.address(receiver.url)
        async with host.life(spool=1) as life:
            life.owe(event(1), event(2), *(replace(event(n), sink="news") for n in (1, 2, 3)))
            await life.round()
            waiting = {s.name: s.undelivered for s in life.store.standings()}
            assert waiting == {"news": 3, "team": 1}


async def test_nobody_reads_the_secrets(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in messages nor in any library's journal, at the most talkative level."""
    caplog.set_level(logging.DEBUG)
    (host.folder / "secret").write_text("whsec_aHVudGVyMmh1bnRlcjJodW50ZXIy")
    said: list[object] = []
    async with Receiver([*NOISE, status(404), status(301)]) as receiver:
        host.address(receiver.url.replace("//", "//me:hunter2@") + "/hunter2?token=hunter2")
        async with host.life(secret_file=host.folder / "secret") as life:
            life.owe(*of_three_jobs(6))
            for _ in range(16):
                with capture_logs() as lines:
                    said += [await life.round(), lines, life.store.standings()]
                host.clock.move(HOUR_S)
        host.address("http://hunter2.invalid:1/hunter2")
        async with host.life() as life:
            life.owe(event(99))
            said += [await life.round(), life.standing]
        assert receiver.requests[0].headers["authorization"] == "Basic bWU6aHVudGVyMg=="
    assert "given up" in str(said)
    everything = f"{said} {caplog.text} {host.clock}"
    for secret in ("hunter2", "aHVudGVyM", "bWU6aHVudGVyMg"):
        assert secret not in everything


async def test_a_clock_that_runs_while_a_request_hangs(host: Host) -> None:
    """The pause begins when the failure is known."""

    def script(request: Request) -> Reply:
        host.clock.move(100)
        return status(500)

    async with Receiver(script=script) as receiver:
        host.address(receiver.url)
        async with host.life() as life:
            life.owe(event(1))
            await life.round()
            assert life.standing.retry_at == NOW + timedelta(seconds=115)


async def test_an_event_that_a_receiver_breaks_at_does_not_stop_the_others(host: Host) -> None:
    events = of_three_jobs(9)
    broken = events[1].key

    def script(request: Request) -> Reply:
        return status(500 if request.key == broken else 200)

    async with Receiver(script=script) as receiver:
        host.address(receiver.url)
        async with host.life(give_up_after=timedelta(hours=12)) as life:
            life.owe(*events)
            for _ in range(5):
                await life.round()
                host.clock.move(HOUR_S)
        async with host.life(give_up_after=timedelta(hours=12)) as life:
            await life.round()  # the sixth failure
            assert (await life.round()).sent == 5
            assert keys(receiver) == [events[n].key for n in (0, 2, 3, 5, 6, 8)]
            host.clock.move(12 * HOUR_S)
            await life.round()
            assert (life.standing.given_up, life.standing.undelivered) == (1, 2)
            assert (await life.round()).sent == 2
        assert [r.key for r in receiver.requests].count(broken) == 7
        assert keys(receiver)[-2:] == [events[4].key, events[7].key]
