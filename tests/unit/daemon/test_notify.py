"""What systemd hears on its socket."""

import asyncio
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobmond.daemon.notify import Systemd, status_line
from jobmond.sweep.sweep import Result

AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(20)
        yield listening


def heard(manager: socket.socket) -> str:
    return manager.recv(4096).decode()


def test_each_message_is_one_datagram(manager: socket.socket) -> None:
    systemd = Systemd(manager.getsockname())
    systemd.ready()
    systemd.status("2 jobs\nREADY=1")
    systemd.reloading(monotonic_s=12.5)
    systemd.stopping(within_s=240)
    assert heard(manager) == "READY=1"
    assert heard(manager) == "STATUS=2 jobs\\nREADY=1"  # no line of its own
    assert heard(manager) == "RELOADING=1\nMONOTONIC_USEC=12500000"
    assert heard(manager) == "STOPPING=1\nEXTEND_TIMEOUT_USEC=240000000"


def test_a_name_in_the_abstract_space_begins_with_an_at_sign() -> None:
    name = f"jobmond-test-{time.monotonic_ns()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        listening.settimeout(20)
        Systemd(f"@{name}").ready()
        assert heard(listening) == "READY=1"


def test_without_a_manager_nothing_is_said_and_nothing_fails(tmp_path: Path) -> None:
    Systemd().ready()
    Systemd(str(tmp_path / "gone")).ready()


def test_a_manager_that_does_not_listen_holds_up_nobody(manager: socket.socket) -> None:
    systemd = Systemd(manager.getsockname())
    for _ in range(10_000):  # far more than the kernel keeps for it
        systemd.status("x")
    assert heard(manager) == "STATUS=x"


async def test_signs_of_life_come_twice_as_often_as_needed(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", pause)
    with pytest.raises(asyncio.CancelledError):
        await Systemd(manager.getsockname(), watchdog_s=120.0).keep_alive()
    assert pauses == [60.0, 60.0, 60.0]
    assert [heard(manager) for _ in pauses] == ["WATCHDOG=1"] * 3


async def test_without_a_watchdog_there_are_none(manager: socket.socket) -> None:
    await Systemd(manager.getsockname()).keep_alive()
    manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.recv(4096)


@pytest.mark.parametrize(
    ("env", "found"),
    [
        ({}, Systemd()),
        ({"NOTIFY_SOCKET": "/run/n"}, Systemd("/run/n")),
        ({"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "120000000"}, Systemd("/run/n", 120.0)),
        (
            {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "5000000", "WATCHDOG_PID": "7"},
            Systemd("/n", 5.0),
        ),
        ({"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "5000000", "WATCHDOG_PID": "8"}, Systemd("/n")),
        ({"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "soon"}, Systemd("/n")),
        ({"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "0"}, Systemd("/n")),
        ({"NOTIFY_SOCKET": ""}, Systemd()),
    ],
)
def test_what_the_environment_asks_for(env: dict[str, str], found: Systemd) -> None:
    assert Systemd.of(env, pid=7) == found


def result(cluster: str, status: str = "ok", jobs: int = 0) -> Result:
    return Result(cluster, AT, status, jobs, 0)


@pytest.mark.parametrize(
    ("results", "next_at", "trouble", "line"),
    [
        ([], None, None, "watching 0 jobs; asleep until there is something to watch"),
        ([result("a", jobs=1)], AT, None, "watching 1 job; next sweep 12:00 UTC"),
        (
            [result("a", jobs=2), result("b", "unreachable", 1), result("c", "inactive", 4)],
            AT,
            None,
            "b unreachable; watching 7 jobs; next sweep 12:00 UTC",
        ),
        ([result("a")], AT, "disk full", "disk full; watching 0 jobs; next sweep 12:00 UTC"),
    ],
)
def test_how_things_are(
    results: list[Result], next_at: datetime | None, trouble: str | None, line: str
) -> None:
    assert status_line(results, next_at=next_at, trouble=trouble) == line
