"""From sweeps to a receiver that does everything receivers do: all of it arrives, in order."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobmond.desk.requests import AddRequest
from jobmond.model.state import State
from tests.doubles_desk import ME
from tests.doubles_store import FixedClock
from tests.receiver import (
    CLOSE,
    HANG,
    MID_BODY,
    RESET,
    RESET_TAKEN,
    Receiver,
    Reply,
    Request,
    status,
)
from tests.registry_scene import Far, Scene, living
from tests.unit.builders import NOW, seen

LONG_S = 60.0
JOBS = ("1", "2", "3")
FAULTS = (
    status(202), status(400), status(429, Retry_After="30"), status(500), HANG, RESET, RESET_TAKEN,
    CLOSE, MID_BODY, status(503, Retry_After="60"), status(408),
)  # fmt: skip


@dataclass
class Moody:
    """Fails in every way there is, each a few times, and remembers whom it refused."""

    chance: random.Random
    faults: list[Reply] = field(default_factory=lambda: [*FAULTS * 2])
    refused: list[str] = field(default_factory=list)
    hung: int = 0

    def __call__(self, request: Request) -> Reply:
        if not self.faults or self.chance.random() < 0.4:
            return status(200)
        fault = self.faults.pop()
        if b" 400 " in fault.raw:
            self.refused.append(request.key)
        self.hung += fault is HANG
        return fault


@pytest.fixture(autouse=True)
def straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the proxy that this environment may have."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def receiver_file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "url"
    path.write_text("")
    path.chmod(0o600)
    yield path


def told(folder: Path) -> list[dict[str, Any]]:
    """What the file has, which is the truth here."""
    news = folder / "news.jsonl"
    lines = news.read_text().splitlines() if news.exists() else []
    return [json.loads(line) for line in lines]


async def sweep(scene: Scene, step: int, *, last: bool) -> None:
    """One sweep that finds every job in another state than the one before: each is an event."""
    state = State.FAILED if last else (State.PENDING, State.RUNNING)[step % 2]
    await scene.sweep(**{f"j{job}": seen(state) for job in JOBS})


@pytest.mark.parametrize("seed", range(3))
async def test_all_that_was_not_refused_arrives_in_order(
    tmp_path: Path, receiver_file: Path, seed: int
) -> None:
    chance = random.Random(seed)
    moody = Moody(chance)
    chance.shuffle(moody.faults)
    clock, far = FixedClock(NOW), Far()
    hook = {f"sinks.team.{name}": value for name, value in (
        ("kind", '"webhook"'), ("url_file", f'"{receiver_file}"'), ("timeout", '"1s"'),
    )}  # fmt: skip
    receiver = Receiver(script=moody)
    await receiver.up()
    receiver_file.write_text(receiver.url)
    down_at = chance.randrange(2, 5)
    step, undelivered = 0, -1
    while undelivered or step < 12:
        # Every few sweeps the daemon is started anew.
        async with living(tmp_path, far=far, clock=clock, **hook) as scene:
            if step == 0:
                await scene.desk.add(AddRequest(tuple(f"leonardo/{job}" for job in JOBS)), ME)
            for _ in range(3):
                if step == down_at:
                    await receiver.down()
                if step == down_at + 3:
                    await receiver.up()
                await sweep(scene, step, last=not moody.faults)
                step += 1
            await scene.app.couriers.idle(timeout_s=LONG_S)
            [team] = [s for s in (await scene.desk.status(ME))["sinks"] if s["name"] == "team"]
            undelivered = team["undelivered"] + len(moody.faults)
            clock.move(timedelta(hours=1).total_seconds())
        assert step < 600
    await receiver.down()

    assert moody.hung == 2
    assert len(moody.refused) == team["given_up"] == 2
    all_told = [n["key"] for n in told(tmp_path)]
    assert len(all_told) == len(set(all_told))
    assert set(receiver.taken) == set(all_told) - set(moody.refused)
    for job in JOBS:
        mine = [
            n["key"] for n in told(tmp_path) if (n["job"] or {}).get("ref") == f"leonardo/{job}"
        ]
        assert len(mine) >= 6
        arrived = [key for key in receiver.taken if key in mine]
        assert arrived == [key for key in mine if key in receiver.taken]
