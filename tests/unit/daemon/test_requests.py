"""Many requests are one sweep, and none overlaps another."""

import asyncio

import pytest

from jobmond.daemon.requests import Lanes
from jobmond.sweep.sweep import Result
from tests.unit.builders import NOW


class Slow:
    """Sweeps that end when the test says so."""

    def __init__(self):
        self.gate = asyncio.Event()
        self.at_once = 0
        self.most_at_once = 0
        self.done = []

    async def sweep(self, cluster, asked):
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.gate.wait()
        self.at_once -= 1
        self.done.append((cluster, asked))
        return Result(cluster, NOW, "ok", len(self.done), 0)


async def started(slow, count):
    while slow.at_once < count:
        await asyncio.sleep(0)


async def test_twenty_at_once_are_one():
    slow = Slow()
    lanes = Lanes(slow.sweep)
    tasks = {lanes.request("a") for _ in range(20)}
    slow.gate.set()
    results = await asyncio.gather(*tasks)
    assert (len(tasks), len(slow.done), results[0].jobs) == (1, 1, 1)


async def test_five_during_one_are_exactly_one_more_that_starts_afterwards():
    slow = Slow()
    lanes = Lanes(slow.sweep)
    first = lanes.request("a")
    await started(slow, 1)
    later = {lanes.request("a") for _ in range(5)}
    assert first not in later
    slow.gate.set()
    await asyncio.gather(first, *later)
    assert len(slow.done) == 2
    assert slow.most_at_once == 1
    assert lanes.last("a").jobs == 2


async def test_clusters_do_not_wait_for_each_other():
    slow = Slow()
    lanes = Lanes(slow.sweep)
    lanes.request("a")
    lanes.request("b")
    await started(slow, 2)
    slow.gate.set()
    await lanes.settle()
    assert sorted(slow.done) == [("a", False), ("b", False)]


async def test_one_asked_by_a_person_among_many_overrides_for_all():
    slow = Slow()
    lanes = Lanes(slow.sweep)
    lanes.request("a")
    lanes.request("a", asked=True)
    slow.gate.set()
    await lanes.settle()
    assert slow.done == [("a", True)]


async def test_a_sweep_that_fails_does_not_block_the_next():
    calls = []

    async def broken(cluster, asked):
        calls.append(cluster)
        if len(calls) == 1:
            raise OSError("disk full")
        return Result(cluster, NOW, "ok", 0, 0)

    lanes = Lanes(broken)
    first = lanes.request("a")
    with pytest.raises(OSError, match="disk full"):
        await first
    assert (await lanes.request("a")).status == "ok"


async def test_settle_waits_for_the_one_in_hand_and_the_one_waiting():
    slow = Slow()
    lanes = Lanes(slow.sweep)
    lanes.request("a")
    await started(slow, 1)
    lanes.request("a")
    settling = asyncio.create_task(lanes.settle())
    slow.gate.set()
    await settling
    assert len(slow.done) == 2


async def test_at_the_end_only_the_one_in_hand_is_waited_for():
    slow = Slow()
    lanes = Lanes(slow.sweep)
    first = lanes.request("a")
    await started(slow, 1)
    second = lanes.request("a")
    ending = asyncio.create_task(lanes.finish())
    await asyncio.sleep(0)
    assert not ending.done()
    slow.gate.set()
    await ending
    assert first.result().jobs == 1
    assert second.cancelled()
    assert slow.done == [("a", False)]


async def test_one_that_was_asked_for_in_the_last_moment_never_begins():
    slow = Slow()
    lanes = Lanes(slow.sweep)
    only = lanes.request("a")
    await lanes.finish()
    assert only.cancelled()
    assert slow.at_once == 0
