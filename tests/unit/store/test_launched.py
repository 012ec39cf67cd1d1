"""Records of launched processes: whose are taken, and which are forgotten when."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobmond.cli.record import Record, birth_of, write
from jobmond.store.launched import Keep, forget, launched, recent

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
BOOT = "0b9c6a3e-2f2e-4c55-9e0a-5b1b3f1f6c11"
KEEP = Keep(longest=timedelta(days=7), shortest=timedelta(days=1), most=3)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir(mode=0o700)
    return folder


def ran(runs: Path, pid: int, *, days: float, ended: bool = True, birth: str = "") -> Path:
    """A process last heard of `days` ago, with a log."""
    at = NOW - timedelta(days=days)
    birth = birth or f"{BOOT}:{pid}"
    log = runs / f"{pid}-{birth.rpartition(':')[2]}.log"
    log.write_text("said\n")
    record = Record(pid, birth, "sh", ("sh",), str(log), "/w", "alice", "2026-11-01T00:00:00Z")
    path = write(runs, record.ended(3 << 8, at) if ended else record)
    for file in (path, log):
        os.utime(file, (at.timestamp(), at.timestamp()))
    return path


def left(runs: Path) -> list[str]:
    return sorted(path.name for path in runs.iterdir())


def test_what_jobmonctl_run_writes_is_what_is_read(runs: Path) -> None:
    ran(runs, 4712, days=1)
    ran(runs, 4711, days=2, ended=False)
    first, second = launched(runs)
    assert (first.native_id, first.birth, first.ended_at) == ("pid-4711", f"{BOOT}:4711", None)
    assert second.identity == ("pid-4712", f"{BOOT}:4712")
    assert second.ended_at == NOW - timedelta(days=1)
    assert second.log == runs / "4712-4712.log"
    assert second.body["exit_code"] == 3


def test_no_folder_is_no_record(tmp_path: Path) -> None:
    assert launched(tmp_path / "none") == ()
    assert forget(tmp_path / "none", set(), keep=KEEP, now=NOW) == 0


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_record_that_others_can_write_is_passed_over(runs: Path, mode: int) -> None:
    ran(runs, 4711, days=0).chmod(mode)
    assert launched(runs) == ()


def test_a_folder_that_others_can_write_holds_no_records(runs: Path) -> None:
    ran(runs, 4711, days=0)
    runs.chmod(0o777)
    assert launched(runs) == ()


def test_a_link_is_passed_over(runs: Path, tmp_path: Path) -> None:
    path = ran(runs, 4711, days=0)
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    assert launched(runs) == ()


def test_a_record_under_another_name_is_passed_over(runs: Path) -> None:
    path = ran(runs, 4711, days=0)
    path.rename(runs / f"pid-4712-{BOOT}:4711.json")
    assert launched(runs) == ()


@given(raw=st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_any_bytes_are_no_record(runs: Path, raw: bytes) -> None:
    (runs / f"pid-7-{BOOT}:7.json").write_bytes(raw)
    assert launched(runs) == ()


@pytest.mark.parametrize(
    "body", ["[]", "null", '{"pid": 7}', '{"pid": 7, "birth": "x", "ended_at": "2026-11-29"}']
)
def test_json_that_is_no_record(runs: Path, body: str) -> None:
    (runs / f"pid-7-{BOOT}:7.json").write_text(body)
    assert launched(runs) == ()


def test_an_end_too_long_ago_is_not_recent_and_a_living_process_always_is(runs: Path) -> None:
    ran(runs, 4711, days=8)
    ran(runs, 4712, days=8, ended=False)
    ran(runs, 4713, days=6)
    ran(runs, os.getpid(), days=300, ended=False, birth=birth_of(os.getpid()))
    found = recent(runs, NOW - timedelta(days=7))
    assert [one.pid for one in found] == [os.getpid(), 4713]


def test_what_ended_long_ago_goes_with_its_log(runs: Path) -> None:
    ran(runs, 4711, days=7.1)
    ran(runs, 4712, days=6.9)
    assert forget(runs, set(), keep=KEEP, now=NOW) == 1
    assert left(runs) == ["4712-4712.log", f"pid-4712-{BOOT}:4712.json"]


def test_a_record_left_open_by_a_process_that_is_gone_goes_too(runs: Path) -> None:
    ran(runs, 4711, days=8, ended=False)
    assert forget(runs, set(), keep=KEEP, now=NOW) == 1
    assert left(runs) == []


def test_a_process_that_lives_is_never_forgotten(runs: Path) -> None:
    ran(runs, os.getpid(), days=300, ended=False, birth=birth_of(os.getpid()))
    assert forget(runs, set(), keep=KEEP, now=NOW) == 0
    assert len(left(runs)) == 2


def test_what_is_wanted_stays(runs: Path) -> None:
    ran(runs, 4711, days=30)
    assert forget(runs, {("pid-4711", f"{BOOT}:4711")}, keep=KEEP, now=NOW) == 0
    assert len(left(runs)) == 2


def test_beyond_the_newest_few_a_day_is_enough(runs: Path) -> None:
    for pid, days in ((1, 3), (2, 2), (3, 0.9), (4, 0.5), (5, 0.4)):
        ran(runs, pid, days=days)
    assert forget(runs, set(), keep=KEEP, now=NOW) == 2
    assert [one.pid for one in launched(runs)] == [3, 4, 5]
    ran(runs, 6, days=0.1)
    assert forget(runs, set(), keep=KEEP, now=NOW) == 0  # the fourth is not a day old


def test_a_log_that_is_still_written_to_keeps_its_record(runs: Path) -> None:
    ran(runs, 4711, days=8)
    at = (NOW - timedelta(hours=2)).timestamp()
    os.utime(runs / "4711-4711.log", (at, at))
    assert forget(runs, set(), keep=KEEP, now=NOW) == 0
    assert len(left(runs)) == 2


def test_a_log_elsewhere_is_not_ours_to_remove(runs: Path, tmp_path: Path) -> None:
    path = ran(runs, 4711, days=8)
    mine = tmp_path / "thesis.log"
    mine.write_text("x")
    os.utime(mine, (0, 0))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"log": str(mine)}))
    os.utime(path, (0, 0))
    assert forget(runs, set(), keep=KEEP, now=NOW) == 1
    assert mine.exists()


def test_leftovers_without_a_record_go_when_old_and_strange_files_never(runs: Path) -> None:
    old = (NOW - timedelta(days=8)).timestamp()
    for name in ("4711-99.log", "pid-4711-x.json.12.tmp", "notes.txt"):
        (runs / name).write_text("x")
        os.utime(runs / name, (old, old))
    (runs / "4712-99.log").write_text("x")
    os.utime(runs / "4712-99.log", (NOW.timestamp(), NOW.timestamp()))
    forget(runs, set(), keep=KEEP, now=NOW)
    assert left(runs) == ["4712-99.log", "notes.txt"]
