"""`jobmonctl run` as a process of its own: codes, signals, output, what is written down."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import jobmond
from jobmond.cli.places import runs_directory
from jobmond.cli.record import Record, birth_of, write

PROGRAM = [sys.executable, "-m", "jobmond.cli.main"]


@pytest.fixture
def start(tmp_path):
    """Start `jobmonctl run WORDS` with its state under tmp_path."""
    running = []

    def run(*words, **changes):
        environment = {
            **os.environ,
            "STATE_DIRECTORY": str(tmp_path / "state"),
            "JOBMOND_SOCKET": str(tmp_path / "socket"),
            "PYTHONPATH": str(Path(jobmond.__file__).parents[1]),
        }
        process = subprocess.Popen(
            [*PROGRAM, "run", *words],
            stdout=changes.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            env={**environment, **changes.pop("env", {})},
            **changes,
        )
        running.append(process)
        return process

    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def record_in(tmp_path):
    (path,) = (tmp_path / "state/runs").glob("pid-*.json")
    return path, json.loads(path.read_text())


@pytest.mark.parametrize(
    ("script", "code", "exit_code", "number"),
    [("exit 0", 0, 0, None), ("exit 3", 3, 3, None), ("kill -9 $$", 137, None, 9)],
)
def test_the_code_is_the_command_s(start, tmp_path, *, script, code, exit_code, number):
    process = start("--", "sh", "-c", script)
    process.communicate()
    assert process.returncode == code
    _, record = record_in(tmp_path)
    assert (record["exit_code"], record["signal"]) == (exit_code, number)


def test_output_passes_through_and_is_kept(start, tmp_path):
    process = start("--", "sh", "-c", r"printf 'out\377\n'; printf 'err\n' >&2")
    out, err = process.communicate()
    assert out == b"out\xff\n"
    assert err.splitlines()[0] == b"err" or err.splitlines()[-1] == b"err"
    _, record = record_in(tmp_path)
    log = Path(record["log"])
    assert sorted(log.read_bytes().splitlines()) == [b"err", b"out\xff"]
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_command_however_long_leaves_a_record_that_is_read_whole(start, tmp_path):
    long = ["--description", "\u20ac" * 30_000, "--", "sh", "-c", "exit 3", "\udcff" * 100_000]
    start(*long).communicate()
    path, record = record_in(tmp_path)
    assert path.stat().st_size < 131_072
    assert record["exit_code"] == 3
    assert record["command"][0].startswith("sh -c 'exit 3' ")


def test_what_was_asked_for_is_written_down_too(start, tmp_path):
    asked = ["--label", "a", "--label", "b", "--bucket", "rl", "--run", "r", "--type", "t"]
    start(*asked, "--description", "why", "--", "true").communicate()
    _, record = record_in(tmp_path)
    assert record["labels"] == ["a", "b"]
    assert (record["bucket"], record["run"], record["type"]) == ("rl", "r", "t")
    assert record["description"] == "why"


def test_what_is_written_down(start, tmp_path):
    process = start("--name", "pretokenise", "--", "sh", "-c", "echo $$", cwd=tmp_path)
    out, _ = process.communicate()
    path, record = record_in(tmp_path)
    pid = int(out)
    assert list(record) == [
        "pid", "birth", "name", "command", "log", "workdir", "user", "started_at",
        "description", "labels", "bucket", "type", "run", "exit_code", "signal", "ended_at",
    ]  # fmt: skip
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert record["pid"] == pid
    assert record["birth"].startswith(f"{boot_id}:")
    assert record["birth"].partition(":")[2].isdigit()
    assert path.name == f"pid-{pid}-{record['birth']}.json"
    assert record["name"] == "pretokenise"
    assert record["command"] == ["sh", "-c", "echo $$"]
    assert record["workdir"] == str(tmp_path)
    assert record["started_at"].endswith("Z")
    assert record["ended_at"].endswith("Z")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_running_process_is_written_down_without_an_end(start, tmp_path):
    process = start("--", "sh", "-c", "echo up; read x", stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    # The record may still be on its way; the line that says no daemon answers comes after it.
    process.stderr.readline()
    _, record = record_in(tmp_path)
    assert (record["exit_code"], record["signal"], record["ended_at"]) == (None, None, None)
    assert record["birth"] == birth_of(record["pid"])
    process.communicate(b"\n")
    assert record_in(tmp_path)[1]["exit_code"] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_handed_on(start, tmp_path, number):
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo caught; exit 7' {name}; echo up; while :; do sleep 0.05; done"
    process = start("--", "sh", "-c", script)
    assert process.stdout.readline() == b"up\n"
    process.send_signal(number)
    out, _ = process.communicate()
    assert (out, process.returncode) == (b"caught\n", 7)
    assert record_in(tmp_path)[1]["exit_code"] == 7


def test_a_deadly_signal_is_128_plus_its_number(start, tmp_path):
    process = start("--", "sh", "-c", "echo up; exec sleep 100")
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 143
    assert record_in(tmp_path)[1]["signal"] == 15


def test_signals_of_the_child_are_as_it_expects_them(start):
    process = start("--", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    out, _ = process.communicate()
    masks = [int(line.split()[1], 16) for line in out.decode().splitlines()]
    # The C library keeps signals 32 and up for itself.
    assert [mask & 0x7FFFFFFF for mask in masks] == [0, 0]


def test_a_command_that_cannot_run(start, tmp_path):
    process = start("--", "no-such-program\x1b[2J")
    _, err = process.communicate()
    assert (process.returncode, err) == (127, b"jobmonctl: no-such-program\\x1b[2J: not found\n")
    (tmp_path / "text").write_text("")
    process = start("--", str(tmp_path / "text"))
    process.communicate()
    assert process.returncode == 126


def test_options_of_the_command_need_no_dashes(start):
    process = start("sh", "-c", "exit 5")
    process.communicate()
    assert process.returncode == 5


def test_without_a_daemon_one_line_says_so(start):
    process = start("--", "true")
    _, err = process.communicate()
    assert process.returncode == 0
    assert err.count(b"\n") == 1
    assert b"this run is written down and will be found" in err


def test_a_state_directory_that_cannot_be_made_never_stops_the_command(start, tmp_path):
    (tmp_path / "file").write_text("")
    process = start("--", "sh", "-c", "echo hi", env={"STATE_DIRECTORY": str(tmp_path / "file")})
    out, err = process.communicate()
    assert (out, process.returncode) == (b"hi\n", 0)
    assert b"nothing is written down about this run" in err


def test_a_missing_configuration_never_stops_the_command(start):
    process = start("--", "sh", "-c", "echo hi", env={"JOBMOND_CONFIG": "/nonexistent.toml"})
    out, err = process.communicate()
    assert (out, process.returncode) == (b"hi\n", 0)
    assert b"/nonexistent.toml does not exist" in err


def test_records_are_beside_the_database_where_the_daemon_looks(start, tmp_path):
    url = f"sqlite:///{tmp_path}/db/jobmond.db"
    start("--", "true", env={"JOBMOND_DATABASE__URL": url}).communicate()
    assert len(list((tmp_path / "db/runs").glob("pid-*.json"))) == 1


def test_records_are_one_s_own_where_the_database_is_somebody_else_s(tmp_path, monkeypatch):
    env = {
        "STATE_DIRECTORY": str(tmp_path / "state"),
        "JOBMOND_DATABASE__URL": f"sqlite:///{tmp_path}/db/jobmond.db",
    }
    (tmp_path / "db/runs").mkdir(parents=True)
    theirs = (tmp_path / "db/runs").stat().st_uid + 1
    monkeypatch.setattr("os.geteuid", lambda: theirs)
    with pytest.raises(PermissionError):
        runs_directory(env)
    monkeypatch.undo()
    (tmp_path / "db/runs").rmdir()
    (tmp_path / "db").rmdir()
    (tmp_path / "db").write_text("no folder")
    assert runs_directory(env) == tmp_path / "state/runs"


def test_a_terminal_that_is_gone_never_stops_the_command(start, tmp_path):
    with open("/dev/full", "wb") as full:
        process = start("--", "sh", "-c", "echo kept", stdout=full)
        process.communicate()
    assert process.returncode == 0
    assert Path(record_in(tmp_path)[1]["log"]).read_bytes() == b"kept\n"


def test_a_grandchild_that_keeps_the_output_open_does_not_hold_up_the_end(start):
    process = start("--", "sh", "-c", "sleep 30 & echo $!; exit 4")
    out, _ = process.communicate()
    os.kill(int(out), signal.SIGKILL)
    assert process.returncode == 4


def test_it_is_announced_and_so_is_its_end(fake, start, tmp_path):
    fake.on("POST /v1/local", {"ref": "local/pid-1"})
    fake.on("POST /v1/local/exit", {})
    process = start("--label", "smoke", "--bucket", "rl", "--", "sh", "-c", "exit 3; :")
    _, err = process.communicate()
    assert (process.returncode, err) == (3, b"")
    _, record = record_in(tmp_path)
    boot_id, _, ticks = record["birth"].partition(":")
    assert fake.bodies("POST /v1/local") == [
        {
            "labels": ["smoke"],
            "bucket": "rl",
            "pid": record["pid"],
            "birth": int(ticks),
            "boot_id": boot_id,
            "name": "sh",
            "command": "sh -c 'exit 3; :'",
            "log": record["log"],
            "workdir": os.getcwd(),
            "user": record["user"],
            "started_at": record["started_at"],
        }
    ]
    assert fake.bodies("POST /v1/local/exit") == [
        {"ref": "local/pid-1", "exit_code": 3, "ended_at": record["ended_at"]}
    ]


def test_a_daemon_that_refuses_never_stops_the_command(fake, start):
    fake.on("POST /v1/local", (400, {"error": "no\x1b[2J", "exit_code": 2}))
    process = start("--", "sh", "-c", "exit 3")
    _, err = process.communicate()
    assert process.returncode == 3
    assert err.startswith(b"jobmonctl: no\\x1b[2J; this run is written down")


def test_usage(start):
    process = start("--bucket", "lr", "--", "sh", "-c", "echo ran")
    out, _ = process.communicate()
    assert (process.returncode, out) == (2, b"")


RECORD = Record(7, "b:1", "n", ("true",), None, "/", "alice", "2026-11-29T12:00:00Z")


def test_a_record_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = write(tmp_path, RECORD)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path, RECORD)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["pid-7-b:1.json"]


def test_a_program_s_name_may_hold_anything(tmp_path):
    script = tmp_path / "a) S 1 (b"
    script.write_text("#!/bin/sh\nread x\n")
    script.chmod(0o755)
    with subprocess.Popen([str(script)], stdin=subprocess.PIPE) as process:
        ticks = birth_of(process.pid).rpartition(":")[2]
        assert ticks.isdigit()
        assert int(ticks) > 0


def test_a_secret_on_the_command_line_is_not_written_down(start, tmp_path):
    token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    start("--name", f"x {token}", "--", "true", "--api-key", "abcdefgh", token).communicate()
    _, record = record_in(tmp_path)
    assert record["command"] == ["true --api-key **** hf_****"]
    assert record["name"] == "x hf_****"
