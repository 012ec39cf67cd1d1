"""Runs that nobody announced reach the desk once."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from jobmond.cli.record import Record, write
from jobmond.daemon.pickup import Pickup, start_of
from jobmond.model.state import Bucket, Kind
from jobmond.store.launched import launched
from tests.doubles_desk import BARE_LOCAL, LEONARDO, Scene
from tests.doubles_store import NOW, job

BOOT = "0b9c6a3e-2f2e-4c55-9e0a-5b1b3f1f6c11"
RECORD = Record(
    pid=4711,
    birth=f"{BOOT}:99",
    name="sh",
    command=("sh", "-c", "train --api-key hunter2hunter2"),
    log="/state/runs/4711-99.log",
    workdir="/w",
    user="alice",
    started_at="2026-11-29T11:00:00Z",
    description="two lines\nof text",
    labels=("smoke",),
    bucket="sft",
    run="grid",
)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir(mode=0o700)
    return folder


def pickup(scene: Scene, runs: Path) -> Pickup:
    return Pickup(scene.desk(), runs, lambda: NOW - timedelta(days=7))


async def test_what_was_asked_for_is_not_lost(runs: Path) -> None:
    scene = Scene(clusters=[LEONARDO, BARE_LOCAL])
    write(runs, RECORD.ended(3 << 8, NOW))
    await pickup(scene, runs).look()
    [kept] = scene.store.rows
    assert (kept.ref, kept.kind, kept.birth) == ("local/pid-4711", Kind.LOCAL, f"{BOOT}:99")
    assert kept.choices.description == "two lines\nof text"
    assert kept.choices.bucket is Bucket.SFT
    assert kept.choices.log_path == "/state/runs/4711-99.log"
    assert (kept.labels, kept.run) == ({"smoke"}, "grid")
    assert kept.facts.command is not None
    assert "hunter2" not in kept.facts.command
    assert scene.sweeps == [("local", False)]
    assert scene.woken == 1


async def test_many_are_one_sweep_and_none_is_taken_twice(runs: Path) -> None:
    scene = Scene(clusters=[BARE_LOCAL])
    for n in range(20):
        write(runs, replace(RECORD, pid=100 + n, birth=f"{BOOT}:{n}"))
    picking = pickup(scene, runs)
    await picking.look()
    await picking.look()
    await pickup(scene, runs).look()
    assert len(scene.store.rows) == 20
    assert scene.sweeps == [("local", False)]


async def test_one_that_a_person_stopped_tracking_stays_so(runs: Path) -> None:
    scene = Scene(clusters=[BARE_LOCAL])
    scene.store.rows = [job("local/pid-4711", kind=Kind.LOCAL, birth=f"{BOOT}:99", tracked=False)]
    before = list(scene.store.rows)
    write(runs, RECORD)
    await pickup(scene, runs).look()
    assert scene.store.rows == before
    assert scene.sweeps == []


async def test_one_whose_number_is_still_taken_is_tried_again(runs: Path) -> None:
    scene = Scene(clusters=[BARE_LOCAL])
    scene.store.rows = [job("local/pid-4711", kind=Kind.LOCAL, birth=f"{BOOT}:7")]
    write(runs, RECORD)
    picking = pickup(scene, runs)
    await picking.look()
    assert len(scene.store.rows) == 1
    scene.store.untrack(scene.store.rows[0].id, by="x", now=NOW)
    await picking.look()
    assert [row.birth for row in scene.store.rows] == [f"{BOOT}:7", f"{BOOT}:99"]


async def test_without_a_cluster_for_processes_nothing_is_taken(runs: Path) -> None:
    scene = Scene(clusters=[LEONARDO])
    write(runs, RECORD)
    await pickup(scene, runs).look()
    assert scene.store.rows == []


async def test_no_folder_is_nothing_to_pick_up(tmp_path: Path) -> None:
    scene = Scene(clusters=[BARE_LOCAL])
    await pickup(scene, tmp_path / "none").look()
    assert scene.sweeps == []


@pytest.mark.parametrize(
    "odd",
    [
        {"labels": ("--flag",)},
        {"bucket": "nonsense"},
        {"name": "x" * 300},
        {"command": ("\udcff",)},
        {"command": ("x" * 100_000,)},
        {"workdir": "relative"},
        {"started_at": "yesterday"},
    ],
)
def test_whatever_else_is_odd_the_process_is_tracked(runs: Path, odd: dict[str, object]) -> None:
    write(runs, replace(RECORD, **odd))  # type: ignore[arg-type] # what a damaged record holds
    [one] = launched(runs)
    start = start_of(one)
    assert start is not None
    assert (start.pid, start.start_ticks, start.boot_id) == (4711, 99, BOOT)


def test_an_impossible_process_is_left_out(runs: Path) -> None:
    write(runs, replace(RECORD, pid=2**40))
    [one] = launched(runs)
    assert start_of(one) is None
