"""How many go in at once, and how few after a refusal."""

import asyncio
import contextlib

import pytest

from jobmond.transports._room import Room


class Crowd:
    """Guests who stay until they are sent."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.inside: list[int] = []
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.doors: dict[int, asyncio.Event] = {}

    async def comes(self, *guests: int) -> None:
        for guest in guests:
            self.doors[guest] = asyncio.Event()
            self.tasks[guest] = asyncio.create_task(self._stay(guest))
        await self.settle()

    async def _stay(self, guest: int) -> None:
        async with self.room.place():
            self.inside.append(guest)
            try:
                await self.doors[guest].wait()
            finally:
                self.inside.remove(guest)

    async def goes(self, guest: int) -> None:
        self.doors[guest].set()
        await self.tasks.pop(guest)
        await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
async def crowd():
    made = Crowd(Room(3))
    yield made
    for task in made.tasks.values():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_no_more_than_its_size(crowd: Crowd) -> None:
    await crowd.comes(1, 2, 3, 4, 5)
    assert crowd.inside == [1, 2, 3]
    await crowd.goes(2)
    assert crowd.inside == [1, 3, 4]


async def test_after_a_refusal_fewer(crowd: Crowd) -> None:
    await crowd.comes(1, 2, 3)
    assert crowd.room.narrow()
    await crowd.goes(3)
    await crowd.comes(4)
    assert crowd.inside == [1, 2]
    assert crowd.room.narrow()
    await crowd.goes(1)
    assert crowd.inside == [2]
    await crowd.goes(2)
    assert crowd.inside == [4]


async def test_one_who_is_alone_does_not_wait_for_others(crowd: Crowd) -> None:
    await crowd.comes(1)
    assert not crowd.room.narrow()
    await crowd.comes(2, 3)
    assert crowd.inside == [1, 2, 3]


async def test_another_connection_has_all_its_room(crowd: Crowd) -> None:
    await crowd.comes(1, 2)
    assert crowd.room.narrow()
    await crowd.comes(3)
    assert crowd.inside == [1, 2]
    crowd.room.widen()
    await crowd.settle()
    assert crowd.inside == [1, 2, 3]


async def test_who_is_cancelled_takes_no_place(crowd: Crowd) -> None:
    await crowd.comes(1, 2, 3, 4)
    crowd.tasks.pop(4).cancel()
    await crowd.settle()
    crowd.tasks.pop(1).cancel()
    await crowd.settle()
    await crowd.comes(5)
    assert crowd.inside == [2, 3, 5]
