"""The host fails under a real daemon: one clear message, nothing lost, and it goes on by itself."""

import contextlib
import glob
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.integration.host import Host, RunningDaemon, is_root, pid_of, until
from tests.integration.team import Team
from tests.needs import need

# A sweep only when asked for, or because the one before was not stored.
QUIET = """
poll_interval = "1h"
backoff_min = "1s"
backoff_max = "2s"
[clusters.here]
kind = "local"
slurm = false
"""
TRACEBACK = 'Traceback (most recent call last):\n  File "t.py", line 1\nValueError: bad shape\n'
MOST_BYTES = 400 * 2**20  # of memory
LOCKED_S = 60.0
ANY_NUMBER = "on_demand_per_hour = 1000\non_demand_burst = 1000\n"  # of sweeps


@dataclass
class Disk:
    """A small file system of its own."""

    path: Path

    def fill(self) -> None:
        """Until not one byte more fits."""
        with (self.path / "ballast").open("ab", buffering=0) as ballast:
            for size in (65536, 1):
                with contextlib.suppress(OSError):
                    while True:
                        ballast.write(b"x" * size)

    def free(self) -> None:
        (self.path / "ballast").unlink()

    def mode(self, words: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{words}", str(self.path)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[..., Disk]]:
    need(is_root(), "only root can mount a small disk")
    mounted: list[Path] = []

    def made(name: str, size: str = "2m") -> Disk:
        path = tmp_path / name
        path.mkdir(mode=0o700)
        words = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(path)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        need(done.returncode == 0, f"nothing can be mounted here: {done.stderr.strip()}")
        mounted.append(path)
        return Disk(path)

    yield made
    for path in mounted:
        subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.fixture
def make(tmp_path: Path, disk: Callable[..., Disk]) -> Iterator[Callable[..., Host]]:
    hosts: list[Host] = []

    def made(config: str = QUIET, **extra: str) -> Host:
        hosts.append(Host(tmp_path / f"home-{len(hosts)}", extra=extra))
        hosts[-1].configure(config)
        return hosts[-1]

    yield made
    for one in hosts:
        one.close()  # before the disks go


def doomed(host: Host, name: str = "log") -> "tuple[subprocess.Popen[str], str]":
    """A tracked process that runs, and fails with a traceback when its input ends."""
    log = host.home / name
    program = (
        "import os, sys; out = open(sys.argv[1], 'a'); print('step 1', file=out, flush=True); "
        "sys.stdin.read(); out.write(sys.argv[2]); out.flush(); os._exit(1)"
    )
    words = [sys.executable, "-c", program, str(log), TRACEBACK]
    process = host.spawn(*words, stdin=subprocess.PIPE)
    until(lambda: log.exists() and log.read_text(), "the process has begun")
    added = host.ctl("add", pid_of(process), "--log", str(log))
    assert added.returncode == 0, added.stderr
    ref = f"here/{pid_of(process)}"
    host.until_state(ref, "RUNNING")
    return process, ref


def let_fail(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=60)


def one_line(done: "subprocess.CompletedProcess[str]", code: int) -> str:
    assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
    return done.stderr.strip()


def failures(host: Host, ref: str) -> list[dict[str, object]]:
    return [n for n in host.news(ref) if n["after"] == "FAILED"]


def whole(database: Path) -> bool:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def told_once(daemon: RunningDaemon, words: str) -> bool:
    lines = [line for line in daemon.said.splitlines() if words in line and "level=error" in line]
    return len(lines) == 1


@pytest.fixture
def team() -> Iterator[Team]:
    made = Team()
    yield made
    made.close()


def receivers(folder: Path, team: Team) -> str:
    """A file, and two receivers at one place."""
    text = f'[sinks.news]\nkind = "file"\npath = "{folder}/news.jsonl"\n'
    for name in ("team", "ops"):
        url = folder / f"url-{name}"
        url.write_text(f"{team.url}/{name}\n")
        text += f'[sinks.{name}]\nkind = "webhook"\nurl_file = "{url}"\ntimeout = "60s"\n'
    return text


def told_in(folder: Path, ref: str) -> list[dict[str, object]]:
    news = folder / "news.jsonl"
    lines = news.read_text().splitlines() if news.exists() else []
    told = [json.loads(line) for line in lines]
    return [n for n in told if n["job"] and n["job"]["ref"] == ref and n["after"] == "FAILED"]


# no room


def test_a_full_disk_loses_nothing(make: Callable[..., Host], disk: Callable[..., Disk]) -> None:
    small = disk("state")
    host = make(STATE_DIRECTORY=str(small.path))
    daemon = host.daemon()
    process, ref = doomed(host)
    small.fill()
    let_fail(process)

    words = "disk full: nothing was written to"
    assert words in one_line(host.ctl("sweep", "--wait"), 1)
    assert host.job(ref)["state"] == "RUNNING"  # it still answers, and knows no better
    assert words in one_line(host.ctl("label", ref, "+x"), 1)
    one_line(host.ctl("sweep", "--wait"), 1)
    assert told_once(daemon, words), daemon.said
    assert not (small.path / "news.jsonl").exists()

    small.free()
    until(lambda: daemon.says("works again"), "it goes on by itself")
    news = small.path / "news.jsonl"
    until(lambda: news.exists() and ref in news.read_text(), "the failure is told")
    assert host.ctl("sweep", "--wait").returncode == 0
    job = host.job(ref)
    assert (job["state"], job["tracked"]) == ("FAILED", False)
    lines = [json.loads(line) for line in news.read_text().splitlines()]
    [told] = [n for n in lines if n["job"] and n["job"]["ref"] == ref and n["after"] == "FAILED"]
    assert "ValueError: bad shape" in Path(told["agent_log"]).read_text()
    report = json.loads((small.path / "report.json").read_text())
    assert [j["state"] for j in report["jobs"] if j["ref"] == ref] == ["FAILED"]
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.said
    assert whole(small.path / "jobmond.db")
    assert [p.name for p in small.path.iterdir() if "tmp" in p.name or ".report" in p.name] == []


def test_sinks_without_room_get_everything_later(
    make: Callable[..., Host], disk: Callable[..., Disk]
) -> None:
    small, entries = disk("news"), disk("entries")
    news = small.path / "news.jsonl"
    host = make(
        f'agent_logs = "{entries.path}/agent_logs"\n{QUIET}'
        f'[sinks.news]\nkind = "file"\npath = "{news}"\n'
    )
    daemon = host.daemon()
    process, ref = doomed(host)
    small.fill()
    entries.mode("ro")
    let_fail(process)
    assert host.ctl("sweep", "--wait").returncode == 0
    assert host.job(ref)["state"] == "FAILED"  # a sink holds up nothing
    until(lambda: daemon.says("the disk is full"), "the full one is said")
    until(lambda: daemon.says("Read-only file system"), "and so is the one that is read-only")
    before = news.read_text() if news.exists() else ""
    assert "FAILED" not in before

    small.free()
    entries.mode("rw")
    until(lambda: news.exists() and "FAILED" in news.read_text(), "the news is written")
    until(lambda: list(entries.path.glob("agent_logs/*/*-log*.md")) or entry(entries), "the entry")
    text = news.read_text()
    assert text.startswith(before)
    lines = [json.loads(line) for line in text.splitlines()]
    [told] = [n for n in lines if n["job"] and n["after"] == "FAILED"]
    until(lambda: Path(told["agent_log"]).exists(), "the entry it names is there")
    host.ctl("sweep", "--wait")
    assert news.read_text() == text
    for words in ("the disk is full", "Read-only file system"):
        lines = [line for line in daemon.said.splitlines() if words in line]
        assert [line.partition("event=")[2][:10] for line in lines] == [
            '"delivery ',
            '"delivery ',
        ], lines
        assert ["works again" in line for line in lines] == [False, True]
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.said


def entry(entries: Disk) -> list[Path]:
    return [p for p in entries.path.glob("agent_logs/*/*.md") if p.name != "INDEX.md"]


# not to be written


def without_override(host: Host) -> RunningDaemon:
    """A daemon of root's to whom file modes apply, as to everybody else."""
    need("setpriv", "setpriv is missing (Debian: util-linux)")
    return host.daemon(
        under=("setpriv", "--bounding-set", "-dac_override,-dac_read_search"),
    )


def test_a_state_folder_that_cannot_be_written_recovers(make: Callable[..., Host]) -> None:
    host = make()
    daemon = without_override(host)
    process, ref = doomed(host)
    host.state.chmod(0o500)
    let_fail(process)
    assert host.ctl("sweep", "--wait").returncode == 0  # the database itself is open
    assert host.job(ref)["state"] == "FAILED"
    until(lambda: daemon.says("report not written"), "the report is missed")
    host.ctl("sweep", "--wait")
    assert told_once(daemon, "report.json cannot be written: Permission denied")
    assert [j["state"] for j in host.report()["jobs"]] == ["RUNNING"]  # the one before, whole

    host.state.chmod(0o700)
    until(lambda: daemon.says("report written again"), "the report")
    assert [j["state"] for j in host.report()["jobs"]] == ["FAILED"]
    until(lambda: failures(host, ref), "the news")
    [told] = failures(host, ref)
    until(lambda: Path(str(told["agent_log"])).exists(), "the entry")
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.said
    assert whole(host.state / "jobmond.db")


def test_a_read_only_disk_is_one_line(make: Callable[..., Host], disk: Callable[..., Disk]) -> None:
    small = disk("state")
    host = make(STATE_DIRECTORY=str(small.path))
    small.mode("ro")
    line = one_line(host.jobmond("run"), 1)
    assert str(small.path) in line
    assert "Read-only file system" in line
    small.mode("rw")
    assert host.daemon().stop() == 0


# locked


def test_a_database_that_is_locked_for_a_minute_is_waited_for(
    make: Callable[..., Host], team: Team, tmp_path: Path
) -> None:
    host = make(f"{ANY_NUMBER}{QUIET}{receivers(tmp_path, team)}", NO_PROXY="127.0.0.1")
    daemon = host.daemon()
    process, ref = doomed(host)
    with contextlib.closing(sqlite3.connect(host.state / "jobmond.db")) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        began_s = time.monotonic()
        let_fail(process)
        words = "database is locked by another process"
        while time.monotonic() - began_s < LOCKED_S:  # each waits for the lock for a while
            assert words in one_line(host.ctl("sweep", "--wait", "--cluster", "here"), 1)
            assert words in one_line(host.ctl("label", ref, "+x"), 1)
            assert host.job(ref)["state"] == "RUNNING"
        assert told_once(daemon, words), daemon.said
        # One that starts meanwhile is refused because of us, not because of the lock.
        assert "another jobmond holds the database" in one_line(host.jobmond("run"), 1)
        other.execute("ROLLBACK")
    until(lambda: daemon.says("works again"), "it goes on by itself")
    until(lambda: told_in(tmp_path, ref), "the failure is told")
    until(lambda: len(team.asked) == 2 * len(team.taken) > 0, "and so are the receivers")
    host.ctl("sweep", "--wait")
    assert len(told_in(tmp_path, ref)) == 1
    assert [n["after"] for n in team.taken].count("FAILED") == 1
    assert len(set(team.asked)) == len(team.asked)
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.said
    assert whole(host.state / "jobmond.db")


def test_what_a_receiver_took_while_the_database_was_locked_is_not_sent_again(
    make: Callable[..., Host], team: Team, tmp_path: Path
) -> None:
    host = make(QUIET + receivers(tmp_path, team), NO_PROXY="127.0.0.1")
    daemon = host.daemon()
    process, ref = doomed(host)
    before = len(team.asked)
    team.gate.clear()
    let_fail(process)
    assert host.ctl("sweep", "--wait").returncode == 0
    until(lambda: len(team.asked) == before + 2, "both receivers are asked")
    with contextlib.closing(sqlite3.connect(host.state / "jobmond.db")) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        team.gate.set()
        words = "database is locked by another process"
        until(lambda: daemon.says(words), "nothing can be noted")
        # Rounds begin every few seconds; a person who asks waits as long as two of them.
        for _ in range(4):
            one_line(host.ctl("label", ref, "+x"), 1)
        assert told_once(daemon, words), daemon.said
        other.execute("ROLLBACK")
    until(lambda: daemon.says("works again"), "it goes on by itself")
    until(
        lambda: not [s for s in host.status()["sinks"] if s["undelivered"]],
        "everything is noted",
    )
    assert len(team.asked) == before + 2
    assert daemon.stop() == 0


# damaged


def _nonsense_inside(database: Path) -> None:
    with database.open("r+b") as file:
        file.seek(4096 * 2)
        file.write(b"\xa5" * 4096 * 6)


def _nonsense_at_the_head(database: Path) -> None:
    with database.open("r+b") as file:
        file.write(b"not a database at all")


def _cut_in_half(database: Path) -> None:
    os.truncate(database, database.stat().st_size // 2)


def _cut_to_nothing(database: Path) -> None:
    os.truncate(database, 0)


@pytest.fixture
def swept(tmp_path: Path) -> Iterator[Host]:
    """A home with a database that has been used."""
    host = Host(tmp_path / "home")
    host.configure(QUIET)
    host.ctl("run", "--", "sh", "-c", "exit 3")
    done = host.jobmond("sweep")
    assert done.returncode == 0, done.stderr
    yield host
    host.close()


@pytest.mark.parametrize("damage", [_cut_in_half, _cut_to_nothing])
def test_a_database_that_is_cut_short_under_a_daemon(
    make: Callable[..., Host], damage: Callable[[Path], None]
) -> None:
    host = make()
    daemon = host.daemon()
    process, ref = doomed(host)
    database = host.state / "jobmond.db"
    copy = _copied(host)
    report = host.report()
    host.status()  # it looks at the file whenever it uses it
    damage(database)
    let_fail(process)
    words = f"the database {database} was cut short while in use: stop jobmond, put the right file"
    for ask in (("sweep", "--wait"), ("label", ref, "+x"), ("status",)):
        assert words in one_line(host.ctl(*ask), 1)
    until(lambda: told_once(daemon, words), "it is said")
    for _ in range(3):
        one_line(host.ctl("sweep", "--wait", "--cluster", "here"), 1)
    assert told_once(daemon, words), daemon.said
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.said
    assert host.report() == report  # what was known stands
    assert host.ctl("status", "--json").returncode == 3
    assert str(database) in one_line(host.jobmond("run"), 1)
    assert host.news(ref)[-1:] == [] or host.news(ref)[-1]["after"] != "FAILED"

    database.with_name("jobmond.db-wal").unlink(missing_ok=True)
    database.write_bytes(copy)
    after = host.daemon()
    until(lambda: failures(host, ref), "what happened meanwhile is told")
    assert host.job(ref)["state"] == "FAILED"
    assert after.stop() == 0
    assert whole(database)


@pytest.mark.parametrize(
    ("damage", "words"),
    [(_nonsense_inside, "is damaged"), (_nonsense_at_the_head, "is not a database")],
)
def test_a_database_that_is_written_over_under_a_daemon(
    make: Callable[..., Host], damage: Callable[[Path], None], words: str
) -> None:
    """Found where it is read again, at the latest at the next start; never silently mended."""
    host = make()
    daemon = host.daemon()
    process, ref = doomed(host)
    database = host.state / "jobmond.db"
    copy = _copied(host)  # after which the daemon reads the file anew
    damage(database)
    let_fail(process)
    for _ in range(3):
        line = one_line(host.ctl("sweep", "--wait", "--cluster", "here"), 1)
        assert words in line
        assert str(database) in line
    assert words in one_line(host.ctl("label", ref, "+x"), 1)
    until(lambda: told_once(daemon, words), "it is said")
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.said
    assert words in one_line(host.jobmond("run"), 1)
    assert failures(host, ref) == []

    database.with_name("jobmond.db-wal").unlink(missing_ok=True)
    database.write_bytes(copy)
    after = host.daemon()
    until(lambda: failures(host, ref), "what happened meanwhile is told")
    assert after.stop() == 0


def _copied(host: Host) -> bytes:
    """The database with all that was committed, in one file."""
    database = host.state / "jobmond.db"
    with contextlib.closing(sqlite3.connect(database)) as other:
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    return database.read_bytes()


def test_a_damaged_database_is_one_line_and_left_as_it_is(swept: Host) -> None:
    database = swept.state / "jobmond.db"
    whole_one = database.read_bytes()
    for damage, words in (
        (_nonsense_inside, "is damaged"),
        (_nonsense_at_the_head, "is not a database"),
        (_cut_in_half, "is damaged"),
        (_cut_to_nothing, "is empty and was not"),
    ):
        database.write_bytes(whole_one)
        damage(database)
        before = _hash(database)
        line = one_line(swept.jobmond("run"), 1)
        assert words in line, damage
        assert str(database) in line
        checked = swept.jobmond("check", "--offline")
        assert checked.returncode == 1
        assert words in next(x for x in checked.stdout.splitlines() if x.startswith("FAIL"))
        assert _hash(database) == before, damage
        # What the last sweep saw can still be read.
        assert swept.ctl("status", "--json").returncode == 3

    database.write_bytes(whole_one)  # somebody restored a copy
    swept.daemon()
    assert [j["state"] for j in swept.status()["jobs"]] == ["FAILED"]
    assert len([n for n in swept.news() if n["after"] == "FAILED"]) == 1


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# the clock


def test_a_clock_that_is_set_moves_no_job(make: Callable[..., Host], tmp_path: Path) -> None:
    [library] = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1") or [None]
    need(library is not None, "libfaketime is missing (Debian: faketime)")
    offset = tmp_path / "offset"
    offset.write_text("+0\n")
    host = make(
        QUIET.replace('"1h"', '"15m"'),
        LD_PRELOAD=str(library),
        FAKETIME_TIMESTAMP_FILE=str(offset),
        FAKETIME_NO_CACHE="1",
        FAKETIME_DONT_FAKE_MONOTONIC="1",
        NO_FAKE_STAT="1",
    )
    daemon = host.daemon()
    process, ref = doomed(host)
    told = host.news()

    for hours in (1, 0, 24):  # forward, back, and forward by a day
        offset.write_text(f"{hours * 3600:+d}\n")

        def on_the_grid(hours: int = hours) -> bool:
            """The next sweep is within the interval, as the daemon's clock now is."""
            at = datetime.fromisoformat(host.status()["daemon"]["next_sweep_at"])
            ahead = at - (datetime.now(UTC) + timedelta(hours=hours))
            return timedelta(minutes=-1) < ahead < timedelta(minutes=17)

        until(on_the_grid, f"ticks again after {hours} h")
    until(
        lambda: (
            datetime.fromisoformat(host.status()["daemon"]["last_sweep_at"])
            > datetime.now(UTC) + timedelta(hours=23)
        ),
        "a tick that was jumped over is made up for",
    )
    assert host.job(ref)["state"] == "RUNNING"
    assert host.news() == told  # nothing has been still for a day
    assert 1 <= daemon.says("the clock of this host was set") <= 3

    let_fail(process)
    assert host.ctl("sweep", "--wait").returncode == 0
    assert host.job(ref)["state"] == "FAILED"
    assert len(failures(host, ref)) == 1
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.said


# more than anybody reads


def test_a_line_of_a_gigabyte_is_not_read(make: Callable[..., Host]) -> None:
    host = make()
    daemon = host.daemon()
    process, ref = doomed(host)
    os.truncate(host.home / "log", 2**30)  # one line, most of it a hole
    assert host.ctl("sweep", "--wait").returncode == 0
    job = host.job(ref)
    assert (job["state"], job["log"]["bytes"]) == ("RUNNING", 2**30)
    shown = host.ctl("logs", ref, "-n", "5")
    assert shown.returncode == 0, shown.stderr
    assert len(shown.stdout) < 2**21
    let_fail(process)  # its last words are behind the hole
    assert host.ctl("sweep", "--wait").returncode == 0
    assert host.job(ref)["state"] == "FAILED"
    assert _most_bytes(daemon) < MOST_BYTES
    assert daemon.stop() == 0


def _most_bytes(daemon: RunningDaemon) -> int:
    """The most memory it ever had."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024
