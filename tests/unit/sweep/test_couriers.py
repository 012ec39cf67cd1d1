"""Deliveries in the background: one round a sink, and an end when told."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from jobmond.errors import SinkRefusal, SinkRetry, StoreError
from jobmond.model.outcome import Delivery
from jobmond.ports import FarSink
from jobmond.sweep.couriers import Couriers
from jobmond.sweep.deliver import Delivered, Post, all_rounds
from tests.doubles_store import FixedClock

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
LONG_S = 60.0


def owed(*names: str, sink: str = "team") -> list[Delivery]:
    return [
        Delivery(n, name, sink, {}, created_at=NOW, due_at=NOW) for n, name in enumerate(names, 1)
    ]


@dataclass
class Box:
    """An outbox in memory; a pause ends only when a test says so."""

    waiting: list[Delivery] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    paused: set[str] = field(default_factory=set)
    looked: int = 0
    locked: bool = False

    def due(self, sink: str, now: datetime, limit: int, *, aside: int = 0) -> Sequence[Delivery]:
        self.looked += 1
        return [] if sink in self.paused else [d for d in self.waiting if d.sink == sink][:limit]

    def _take(self, ids: Sequence[int]) -> list[str]:
        taken = [d.key for d in self.waiting if d.id in ids]
        self.waiting = [d for d in self.waiting if d.id not in ids]
        return taken

    def _check(self) -> None:
        if self.locked:
            raise StoreError("database is locked by another process")

    def delivered(self, ids: Sequence[int], now: datetime) -> None:
        self._check()
        self.done += self._take(ids)

    def retry_later(self, ids: Sequence[int], error: str, due_at: datetime) -> None:
        self._check()
        self.paused |= {d.sink for d in self.waiting if d.id in ids}
        self.waiting = [replace(d, last_error=error) if d.id in ids else d for d in self.waiting]

    def give_up(self, ids: Sequence[int], error: str, now: datetime) -> None:
        self._check()
        self.lost += self._take(ids)

    def shed(self, sink: str, **bounds: object) -> int:
        return 0


@dataclass
class Far:
    """A receiver that takes its time: a request is begun, and ends when released."""

    give_up_after: timedelta = timedelta(days=1)
    spool: int = 10
    began: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    got: list[list[str]] = field(default_factory=list)
    fails: Exception | None = None

    async def check(self) -> None: ...

    async def send(self, deliveries: Sequence[Delivery]) -> None:
        self.got.append([d.key for d in deliveries])
        self.began.set()
        await self.release.wait()
        if self.fails is not None:
            raise self.fails


@dataclass
class Near:
    """A sink of this host that refuses what is called `bad`."""

    got: list[list[str]] = field(default_factory=list)

    async def send(self, deliveries: Sequence[Delivery]) -> None:
        self.got.append([d.key for d in deliveries])
        if any(d.key == "bad" for d in deliveries):
            raise SinkRefusal("no")


async def call(fn, /, *args, **kw):
    return fn(*args, **kw)


def post(box: Box) -> Post:
    return Post(box, call, FixedClock(NOW))


def test_what_is_far() -> None:
    assert isinstance(Far(), FarSink)
    assert not isinstance(Near(), FarSink)


async def test_a_far_sink_is_handed_one_at_a_time() -> None:
    box, far, couriers = Box(owed("a", "b")), Far(), Couriers()
    far.release.set()
    couriers.wake(post(box), {"team": far})
    await couriers.idle(timeout_s=LONG_S)
    assert far.got == [["a"], ["b"]]
    assert box.done == ["a", "b"]


async def test_nobody_waits_and_no_other_sink_does() -> None:
    box, slow, quick = Box([*owed("a"), *owed("x", sink="quick")]), Far(), Far()
    box.waiting[1:] = [Delivery(9, "x", "quick", {}, created_at=NOW, due_at=NOW)]
    quick.release.set()
    couriers = Couriers()
    couriers.wake(post(box), {"team": slow, "quick": quick})
    await slow.began.wait()
    await quick.began.wait()
    await couriers.idle(timeout_s=0)
    assert box.done == ["x"]
    slow.release.set()
    await couriers.idle(timeout_s=LONG_S)
    assert box.done == ["x", "a"]


async def test_a_sink_has_one_round_at_a_time_that_looks_once_more() -> None:
    box, far, couriers = Box(owed("a")), Far(), Couriers()
    couriers.wake(post(box), {"team": far})
    await far.began.wait()
    for _ in range(5):
        couriers.wake(post(box), {"team": far})
    box.waiting += [Delivery(2, "b", "team", {}, created_at=NOW, due_at=NOW)]
    far.release.set()
    await couriers.idle(timeout_s=LONG_S)
    assert far.got == [["a"], ["b"]]
    assert box.looked == 4  # a, b, nothing, and once more because of the five


async def test_a_pause_ends_the_round() -> None:
    box, far, couriers = Box(owed("a", "b")), Far(fails=SinkRetry("later")), Couriers()
    far.release.set()
    couriers.wake(post(box), {"team": far})
    await couriers.idle(timeout_s=LONG_S)
    assert far.got == [["a"]]
    assert (box.done, box.lost) == ([], [])
    box.paused.clear()
    far.fails = None
    couriers.wake(post(box), {"team": far})
    await couriers.idle(timeout_s=LONG_S)
    assert box.done == ["a", "b"]


async def test_stopping_lets_the_request_in_hand_end_and_begins_no_other() -> None:
    box, far, couriers = Box(owed("a", "b")), Far(), Couriers()
    couriers.wake(post(box), {"team": far})
    await far.began.wait()
    stopping = asyncio.create_task(couriers.stop(grace_s=LONG_S))
    await asyncio.sleep(0)
    couriers.wake(post(box), {"team": far})
    far.release.set()
    await stopping
    couriers.wake(post(box), {"team": far})
    assert (far.got, box.done) == ([["a"]], ["a"])
    couriers.resume()
    couriers.wake(post(box), {"team": far})
    await couriers.idle(timeout_s=LONG_S)
    assert box.done == ["a", "b"]


async def test_a_request_that_does_not_end_is_cut_off_and_sent_again() -> None:
    box, far, couriers = Box(owed("a")), Far(), Couriers()
    couriers.wake(post(box), {"team": far})
    await far.began.wait()
    await couriers.stop(grace_s=0)
    assert (box.done, len(box.waiting)) == ([], 1)
    couriers.resume()
    far.release.set()
    couriers.wake(post(box), {"team": far})
    await couriers.idle(timeout_s=LONG_S)
    assert far.got == [["a"], ["a"]]
    assert box.done == ["a"]


async def rounds(couriers: Couriers, box: Box, sinks: dict[str, Far], count: int = 1) -> None:
    """So many rounds for every sink, and what is said about them."""
    for _ in range(count):
        couriers.wake(post(box), sinks)
        await couriers.idle(timeout_s=LONG_S)
        await asyncio.sleep(0)  # the callback that says it


async def test_what_holds_up_every_receiver_is_said_once_and_once_when_it_is_over() -> None:
    full = StoreError("the disk is full")
    sinks = {"team": Far(fails=full), "ops": Far(fails=full)}
    box, couriers = (
        Box([*owed("a"), Delivery(9, "x", "ops", {}, created_at=NOW, due_at=NOW)]),
        Couriers(),
    )
    for one in sinks.values():
        one.release.set()
    with capture_logs() as said:
        couriers.troubles.failed("deliver", full)  # other work met it first
        await rounds(couriers, box, sinks, 5)
        sinks["team"].fails = None
        couriers.troubles.worked("deliver")
        await rounds(couriers, box, sinks, 2)
        assert box.done == ["a"]
        assert [(line["event"], line["what"]) for line in said] == [("failed", "deliver")]
        sinks["ops"].fails = None
        await rounds(couriers, box, sinks, 2)
    assert box.done == ["a", "x"]
    assert [(line["event"], line["what"]) for line in said] == [
        ("failed", "deliver"),
        ("works again", "deliver to ops"),
    ]


async def test_what_nobody_foresaw_is_told_once_with_where_it_comes_from() -> None:
    error = ZeroDivisionError("1/0")
    box, far, couriers = Box(owed("a")), Far(fails=error), Couriers()
    far.release.set()
    with capture_logs() as said:
        await rounds(couriers, box, {"team": far}, 3)
        far.fails = None
        await rounds(couriers, box, {"team": far})
    assert box.done == ["a"]
    assert [line["event"] for line in said] == ["failed", "works again"]
    assert (said[0]["what"], said[0]["exc_info"]) == ("deliver to team", error)


@pytest.mark.parametrize("far", [True, False])
async def test_what_was_taken_while_the_database_could_not_note_it_is_not_sent_again(
    far: bool,
) -> None:
    box = Box(owed("a", "b", sink="team"), locked=True)
    sink: Far | Near = Far() if far else Near()
    if isinstance(sink, Far):
        sink.release.set()
    one = post(box)
    for _ in range(3):
        with pytest.raises(StoreError):
            await one.round("team", sink)
    first = ["a"] if far else ["a", "b"]
    assert sink.got == [first]
    box.locked = False
    await one.round("team", sink)
    assert box.done == ["a", "b"]
    assert [key for keys in sink.got for key in keys] == ["a", "b"]


@pytest.mark.parametrize(
    ("error", "pause_s"),
    [(SinkRetry("later", after_s=90), 90), (SinkRetry("later"), 15), (SinkRefusal("no"), 15)],
)
async def test_a_pause_that_the_database_could_not_note_is_kept_all_the_same(
    error: Exception, pause_s: int
) -> None:
    box, far, clock = Box(owed("a"), locked=True), Far(fails=error), FixedClock(NOW)
    far.release.set()
    one = Post(box, call, clock)
    with pytest.raises(StoreError):
        await one.round("team", far)
    clock.move(pause_s - 1)
    await one.round("team", far)
    assert far.got == [["a"]]
    clock.move(1)
    box.locked, far.fails = False, None
    await one.round("team", far)
    assert (far.got, box.done) == ([["a"], ["a"]], ["a"])


async def test_stopping_and_waiting_with_nothing_under_way() -> None:
    couriers = Couriers()
    await couriers.idle(timeout_s=0)
    await couriers.stop(grace_s=0)


async def test_of_a_batch_only_what_is_refused_is_given_up() -> None:
    box, near = Box(owed("a", "bad", "b", sink="news")), Near()
    assert await all_rounds(post(box), {"news": near}) == (Delivered("news", 2),)
    assert (box.done, box.lost) == (["a", "b"], ["bad"])
    assert near.got[0] == ["a", "bad", "b"]


async def test_a_reason_is_said_once_and_once_more_when_it_is_over() -> None:
    box = Box(owed("a"))
    sink = Far()
    sink.release.set()
    with capture_logs() as told:
        for reason in ("no room", "no room", "no leave", None, None):
            box.paused.clear()
            sink.fails = SinkRetry(reason) if reason else None
            await post(box).round("team", sink)
    warned = [t["error"] for t in told if t["log_level"] == "warning"]
    assert warned == ["no room", "no leave"]
    assert [t["was"] for t in told if t["event"] == "delivery works again"] == ["no leave"]
