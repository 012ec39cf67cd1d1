"""Real processes of this host, through the real local transport."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobmond.backends.local import LocalBackend
from jobmond.cli.record import me
from jobmond.model.observation import Ask, Gone, Seen, Sighting
from jobmond.model.state import State
from jobmond.registry import backends, transports
from tests.doubles import ShellTransport

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")


def now() -> datetime:
    return datetime.now(UTC)


def birth_of(pid: int) -> str:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + ":" + ticks


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs it's $(x)"
    folder.mkdir()
    return folder


@pytest.fixture
async def backend(runs: Path) -> AsyncIterator[LocalBackend]:
    transport = transports["local"]()
    yield backends["local"](transport, runs=runs)
    await transport.close()


@contextlib.contextmanager
def started(*command: str, log: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(log.open("wb")) if log else subprocess.DEVNULL
        process = stack.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out)
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


async def look(backend: LocalBackend, *asks: Ask) -> dict[str, Sighting]:
    poll = await backend.poll(asks, since=now(), now=now(), timeout_s=30)
    assert poll.trouble is None, poll.trouble
    return dict(poll.sightings)


async def first_look(backend: LocalBackend, pid: int) -> Ask:
    native = f"pid-{pid}"
    found = (await look(backend, Ask(native, None, added_at=now())))[native]
    assert isinstance(found, Seen), found
    assert found.state is State.RUNNING
    return Ask(native, found.birth, added_at=now(), state=found.state, facts=found.facts)


def write_record(runs: Path, pid: int, birth: str, **end: object) -> None:
    body = {
        "pid": pid,
        "birth": birth,
        "name": "named",
        "command": ["sleep", "60"],
        "log": None,
        "workdir": "/",
        "user": me(),
        "started_at": "2026-11-29T11:00:00Z",
        "exit_code": None,
        "signal": None,
        "ended_at": None,
    }
    path = runs / f"pid-{pid}-{birth}.json"
    draft = path.with_suffix(".1.tmp")
    draft.write_text(json.dumps(body | end))
    draft.replace(path)


async def test_a_foreign_process_from_life_to_a_death_that_its_log_proves(
    backend: LocalBackend, tmp_path: Path
) -> None:
    log = tmp_path / "the log's $(name).txt"
    program = "import sys; sys.stdin.read(); raise ValueError('bad shape')"
    with started(sys.executable, "-c", program, log=log) as process:
        ask = await first_look(backend, process.pid)
        assert ask.birth == birth_of(process.pid)
        assert ask.facts.log_path == str(log)
        assert ask.facts.err_path is None
        assert ask.facts.user == me()
        assert ask.facts.workdir == str(Path.cwd())
        assert ask.facts.command is not None
        assert "bad shape" in ask.facts.command
        assert ask.facts.started_at is not None
        assert abs((now() - ask.facts.started_at).total_seconds()) < 60
        process.communicate()
    found = (await look(backend, ask))[ask.native_id]
    assert isinstance(found, Seen), found
    assert (found.state, found.facts.exit_code) == (State.FAILED, None)
    assert found.proof == "gone; its log ends with: ValueError: bad shape"


async def test_a_process_that_is_gone_without_a_word_is_gone(
    backend: LocalBackend, tmp_path: Path
) -> None:
    with started("sleep", "60", log=tmp_path / "log") as process:
        ask = await first_look(backend, process.pid)
    found = (await look(backend, ask))[ask.native_id]
    assert isinstance(found, Gone)
    assert found.reason == "no such process, and no end is on record"


async def test_a_log_that_became_a_link_is_not_read(backend: LocalBackend, tmp_path: Path) -> None:
    log, other = tmp_path / "log", tmp_path / "other"
    with started("sleep", "60", log=log) as process:
        ask = await first_look(backend, process.pid)
    other.write_text("exit code 0\n")
    log.unlink()
    log.symlink_to(other)
    assert isinstance((await look(backend, ask))[ask.native_id], Gone)


async def test_a_stopped_process_is_suspended_and_a_zombie_has_ended(
    backend: LocalBackend,
) -> None:
    with started("sh", "-c", "read line; exit 3") as process:
        ask = await first_look(backend, process.pid)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        found = (await look(backend, ask))[ask.native_id]
        assert isinstance(found, Seen)
        assert (found.state, found.facts.suspended) == (State.RUNNING, True)
        process.send_signal(signal.SIGCONT)
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, not collected
        found = (await look(backend, ask))[ask.native_id]
        assert isinstance(found, Seen)
        assert (found.state, found.facts.exit_code) == (State.FAILED, 3)


async def test_a_process_killed_and_not_collected_tells_the_signal(
    backend: LocalBackend,
) -> None:
    with started("sleep", "60") as process:
        ask = await first_look(backend, process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        found = (await look(backend, ask))[ask.native_id]
        assert isinstance(found, Seen)
        assert (found.state, found.facts.exit_code, found.facts.signal) == (State.FAILED, None, 9)


async def test_a_record_tells_the_end_of_a_process(backend: LocalBackend, runs: Path) -> None:
    with started("sleep", "60") as process:
        birth = birth_of(process.pid)
        write_record(runs, process.pid, birth)
        ask = await first_look(backend, process.pid)
        assert ask.facts.name == "named"
    write_record(runs, process.pid, birth, exit_code=3, ended_at="2026-11-29T11:30:00Z")
    found = (await look(backend, ask))[ask.native_id]
    assert isinstance(found, Seen)
    assert (found.state, found.native, found.facts.exit_code) == (State.FAILED, "exited 3", 3)
    assert found.facts.ended_at == datetime(2026, 11, 29, 11, 30, tzinfo=UTC)


async def test_a_record_about_to_be_closed_is_waited_for(backend: LocalBackend, runs: Path) -> None:
    with started("sleep", "60") as process:
        birth = birth_of(process.pid)
        write_record(runs, process.pid, birth)
        ask = await first_look(backend, process.pid)
    looking = asyncio.create_task(look(backend, ask))
    await asyncio.to_thread(
        subprocess.run, ["sh", "-c", "sleep 0.3"], check=True
    )  # the look has begun, its record is still open
    write_record(runs, process.pid, birth, exit_code=0, ended_at="2026-11-29T11:30:00Z")
    found = (await looking)[ask.native_id]
    assert isinstance(found, Seen)
    assert found.state is State.COMPLETED


async def test_a_number_used_again_is_told_apart(backend: LocalBackend) -> None:
    with started("sleep", "60") as process:
        ask = await first_look(backend, process.pid)
        assert ask.birth is not None
        boot, _, ticks = ask.birth.partition(":")
        for other in (f"{boot}:{int(ticks) - 1}", f"00000000-0000:{ticks}"):
            earlier = replace(ask, birth=other)
            assert isinstance((await look(backend, earlier))[ask.native_id], Gone)


async def test_a_hostile_name_of_a_program_is_only_a_name(
    backend: LocalBackend, tmp_path: Path
) -> None:
    program = tmp_path / "a) S (1\n\x1b[31m"
    program.symlink_to("/bin/sleep")
    with started(str(program), "60") as process:
        ask = await first_look(backend, process.pid)
        assert ask.birth == birth_of(process.pid)
        assert ask.facts.name == "a) S (1\\n\\x1b[31m"
        assert ask.facts.command is not None
        assert ask.facts.command.isprintable()


async def test_many_are_asked_in_one_script(backend: LocalBackend) -> None:
    with started("sleep", "60") as process:
        mine = f"pid-{process.pid}"
        asks = [Ask(mine, None, added_at=now())]
        asks += [Ask(f"pid-{9_000_000 + n}", None, added_at=now()) for n in range(30)]
        found = await look(backend, *asks)
    assert len(found) == 31
    assert isinstance(found.pop(mine), Seen)
    assert {type(s) for s in found.values()} == {Gone}


async def test_a_folder_of_records_that_does_not_exist_is_no_trouble(tmp_path: Path) -> None:
    transport = transports["local"]()
    backend = backends["local"](transport, runs=tmp_path / "none")
    assert isinstance((await look(backend, Ask("pid-1", None, added_at=now())))["pid-1"], Seen)
    await transport.close()


async def test_a_user_without_a_name_goes_by_the_number(tmp_path: Path) -> None:
    """As in a container that was started with a number: `id` fails, `stat` says UNKNOWN."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in {
        "id": 'echo 12345; [ "$1" = -u ]',
        "stat": 'case "$2" in %U) echo UNKNOWN;; %u) echo 12345;; *) exec /bin/stat "$@";; esac',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    backend = LocalBackend(ShellTransport(programs), runs=tmp_path / "runs")
    log = tmp_path / "log"
    with started("sh", "-c", "read line", log=log) as process:
        ask = await first_look(backend, process.pid)
        assert ask.facts.user == "12345"
        process.communicate()
    log.write_text('Traceback (most recent call last):\n  File "t.py", line 7\nValueError: bad\n')
    found = (await look(backend, ask))[ask.native_id]
    assert isinstance(found, Seen), found
    assert found.state is State.FAILED
