"""This host with no configuration at all, end to end: nothing here is a double but squeue."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.host import (
    NOT_SET_UP,
    PATIENCE_S,
    Host,
    fake_squeue,
    is_root,
    pid_of,
    programs_without_slurm,
    until,
)

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")

QUIET = """
[clusters.here]
kind = "local"
slurm = false
"""


@pytest.fixture(scope="session")
def without_slurm(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(programs_without_slurm(tmp_path_factory.mktemp("path") / "bin"))


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Host]]:
    hosts: list[Host] = []

    def made(path: str, name: str = "home", **extra: str) -> Host:
        hosts.append(Host(tmp_path / name, path, extra))
        return hosts[-1]

    yield made
    for one in hosts:
        one.close()


@pytest.fixture
def host(make: Callable[..., Host], without_slurm: str) -> Host:
    return make(without_slurm)


@pytest.fixture(params=["no squeue", "squeue without a configuration"])
def either(
    request: pytest.FixtureRequest, make: Callable[..., Host], without_slurm: str, tmp_path: Path
) -> Host:
    if request.param == "no squeue":
        return make(without_slurm)
    return make(f"{fake_squeue(tmp_path / 'fake', NOT_SET_UP)}:{without_slurm}")


def writer(host: Host, log: Path, last_words: str, **over: object) -> "subprocess.Popen[str]":
    """A process nobody started for us, that writes `last_words` to `log` when its input ends."""
    program = (
        "import os, sys; out = open(sys.argv[1], 'a'); print('step 1', file=out, flush=True); "
        "sys.stdin.read(); out.write(sys.argv[2]); out.flush(); os._exit(1)"
    )
    words = [sys.executable, "-c", program, str(log), last_words]
    process = host.spawn(*words, stdin=subprocess.PIPE, **over)
    until(lambda: log.exists() and log.read_text(), "the process has begun")
    return process


def let_end(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=PATIENCE_S)


def only_ref(host: Host) -> str:
    [job] = host.status()["jobs"]
    return str(job["ref"])


TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 7, in <module>
    main()
ValueError: bad shape
"""


# started by jobmonctl run


def test_a_failed_run_is_reported_with_its_code(either: Host) -> None:
    daemon = either.daemon()
    done = either.ctl("run", "--", "sh", "-c", "echo working; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "working\n", "")
    ref = only_ref(either)
    job = either.until_state(ref, "FAILED")
    assert (job["exit_code"], job["signal"], job["tracked"]) == (3, None, False)
    [told] = until(lambda: either.news(ref), "the news is in the file")
    assert (told["type"], told["after"], told["severity"]) == ("transition", "FAILED", "alarm")
    entry = Path(told["agent_log"])
    assert entry.is_relative_to(either.state / "agent_logs")
    text = entry.read_text()
    assert "exit_code: 3" in text
    assert "working" in text
    [row] = json.loads(either.ctl("history", "--json").stdout)["jobs"]
    assert (row["ref"], row["state"]) == (ref, "FAILED")
    assert either.ctl("logs", ref).stdout == "working\n"
    [cluster] = either.status()["clusters"]
    assert (cluster["name"], cluster["status"], cluster["error"]) == ("local", "ok", None)
    assert daemon.says("SLURM is not set up") == (1 if "fake" in either.path else 0)


@pytest.mark.parametrize(("number", "code"), [(9, 137), (15, 143)])
def test_a_run_that_was_killed_is_reported_with_its_signal(
    host: Host, number: int, code: int
) -> None:
    host.daemon()
    assert host.ctl("run", "--", "sh", "-c", f"kill -{number} $$").returncode == code
    job = host.until_state(only_ref(host), "FAILED")
    assert (job["exit_code"], job["signal"]) == (None, number)


def test_a_run_that_went_well(host: Host) -> None:
    host.daemon()
    assert host.ctl("run", "--", "true").returncode == 0
    job = host.until_state(only_ref(host), "COMPLETED")
    assert (job["exit_code"], job["signal"]) == (0, None)
    assert [n["severity"] for n in host.news()] == ["info"]


def test_runs_without_a_daemon_are_found_by_the_next_one(host: Host) -> None:
    asked = ["run", "--name", "early", "--label", "smoke", "--bucket", "sft", "--run", "grid"]
    done = host.ctl(*asked, "--", "sh", "-c", "exit 3")
    assert done.returncode == 3
    [line] = done.stderr.splitlines()
    assert "this run is written down and will be found" in line
    going = host.ctl_spawn("run", "--", "sh", "-c", "read line; exit 4", stdin=subprocess.PIPE)
    until(lambda: len(list((host.state / "runs").glob("*.json"))) == 2, "both are written down")

    first = host.daemon()
    ended = until(
        lambda: [j for j in host.status()["jobs"] if j["state"] == "FAILED"], "the first is found"
    )[0]
    assert (ended["exit_code"], ended["name"], ended["bucket"]) == (3, "early", "sft")
    assert (ended["labels"], ended["run"]) == (["smoke"], "grid")
    assert ended["owner"] is not None
    alive = until(
        lambda: [j for j in host.status()["jobs"] if j["state"] == "RUNNING"], "so is the second"
    )[0]
    let_end(going)
    assert going.returncode == 4
    assert host.until_state(alive["ref"], "FAILED")["exit_code"] == 4
    assert first.stop() == 0

    told = host.news()
    host.daemon()
    assert host.ctl("sweep", "--wait").returncode == 0
    assert host.news() == told  # found once


def test_a_run_that_a_person_stopped_tracking_is_not_found_again(host: Host) -> None:
    host.ctl("run", "--", "sh", "-c", "exit 3")
    going = host.ctl_spawn("run", "--", "sh", "-c", "read line", stdin=subprocess.PIPE)
    until(lambda: len(list((host.state / "runs").glob("*.json"))) == 2, "both are written down")
    daemon = host.daemon()
    alive = until(
        lambda: [j for j in host.status()["jobs"] if j["state"] == "RUNNING"], "it is found"
    )[0]["ref"]
    assert host.ctl("rm", alive).returncode == 0
    daemon.stop()
    host.daemon()
    assert [j["ref"] for j in host.status()["jobs"] if j["tracked"]] == []
    let_end(going)


# processes of somebody else's making


def test_a_named_log_that_ends_in_a_traceback_is_a_failure(host: Host, tmp_path: Path) -> None:
    host.daemon()
    log = tmp_path / "train it.log"
    process = writer(host, log, TRACEBACK)
    ref = f"local/{pid_of(process)}"
    assert host.ctl("add", pid_of(process), "--log", str(log)).returncode == 0
    host.until_state(ref, "RUNNING")
    let_end(process)
    assert host.ctl("sweep", "--wait").returncode == 0
    job = host.job(ref)
    assert (job["state"], job["exit_code"], job["signal"]) == ("FAILED", None, None)
    assert job["diagnosis"]["cause"] == "python-exception"
    [told] = [n for n in host.news(ref) if n["after"] == "FAILED"]
    assert told["before"] == "RUNNING"
    assert "ValueError: bad shape" in Path(told["agent_log"]).read_text()


def test_the_file_behind_its_output_is_its_log(host: Host, tmp_path: Path) -> None:
    host.daemon()
    log = tmp_path / "out"
    program = "import sys; print('up', flush=True); sys.stdin.read(); raise ValueError('bad shape')"
    with log.open("w") as out:
        process = host.spawn(
            sys.executable, "-c", program, stdin=subprocess.PIPE, stdout=out, stderr=out
        )
    host.ctl("add", "--kind", "local", "--id", str(process.pid))
    ref = f"local/{pid_of(process)}"
    assert host.until_state(ref, "RUNNING")["log"]["path"] == str(log)
    let_end(process)
    host.ctl("sweep", "--wait")
    job = host.job(ref)
    assert (job["state"], job["exit_code"]) == ("FAILED", None)


def test_a_log_that_proves_the_end_is_a_completion(host: Host, tmp_path: Path) -> None:
    host.daemon()
    process = writer(host, tmp_path / "log", "exit code 0\n")
    ref = f"local/{pid_of(process)}"
    host.ctl("add", pid_of(process), "--log", str(tmp_path / "log"))
    host.until_state(ref, "RUNNING")
    let_end(process)
    host.ctl("sweep", "--wait")
    assert (host.job(ref)["state"], host.job(ref)["exit_code"]) == ("COMPLETED", None)


def test_one_that_vanished_without_a_word_is_lost(host: Host, tmp_path: Path) -> None:
    host.daemon()
    process = writer(host, tmp_path / "log", "step 2\n")
    ref = f"local/{pid_of(process)}"
    host.ctl("add", pid_of(process), "--log", str(tmp_path / "log"))
    host.until_state(ref, "RUNNING")
    let_end(process)
    host.ctl("sweep", "--wait")
    job = host.job(ref)
    assert (job["state"], job["exit_code"], job["tracked"]) == ("LOST", None, False)
    assert [n["after"] for n in host.news(ref) if n["severity"] == "alarm"] == ["LOST"]


# in the background


def test_detached_it_answers_before_the_command_returns(host: Host) -> None:
    done = host.jobmond("run", "--detach")
    journal = host.state / "journal.log"
    assert (done.returncode, done.stderr) == (0, "")
    assert str(journal) in done.stdout
    assert host.ctl("run", "--", "sh", "-c", "exit 3").returncode == 3
    host.until_state(only_ref(host), "FAILED")
    assert journal.stat().st_mode & 0o777 == 0o600
    line = one_line(host.jobmond("run", "--detach"), 1)
    assert "another jobmond holds the database" in line
    holder = int(line.partition("process ")[2].partition(" ")[0])
    assert os.getsid(holder) != os.getsid(0)
    os.kill(holder, signal.SIGTERM)
    until(lambda: not host.socket.exists(), "it ends")


def test_detached_a_mistake_is_told_to_whoever_started_it(host: Host) -> None:
    host.configure("poll_intervall = '5m'\n")
    assert "nearest: poll_interval" in one_line(host.jobmond("run", "--detach"), 2)


# what a person sees at the start


def test_with_nothing_to_watch_two_lines_say_what_to_type(either: Host) -> None:
    daemon = either.daemon()
    until(lambda: daemon.says("jobmonctl"), "the first steps are shown")
    plain = [line for line in daemon.said.splitlines() if "jobmonctl" in line]
    assert len(plain) == 2
    assert plain[0].endswith("jobmonctl run -- CMD")
    assert plain[1].endswith("jobmonctl status")


def test_with_something_to_watch_nothing_is_said(host: Host) -> None:
    host.ctl("run", "--", "true")
    daemon = host.daemon()
    host.until_state(only_ref(host), "COMPLETED")
    assert "jobmonctl" not in daemon.said


def test_asleep_until_the_first_job_and_again_after_the_last(host: Host) -> None:
    host.configure(QUIET)
    host.daemon()
    assert host.status()["daemon"]["next_sweep_at"] is None
    process = host.spawn("sleep", "600")
    assert host.ctl("add", pid_of(process)).returncode == 0
    host.until_state(f"here/{pid_of(process)}", "RUNNING")
    assert host.status()["daemon"]["next_sweep_at"] is not None
    assert host.ctl("rm", pid_of(process)).returncode == 0
    until(lambda: host.status()["daemon"]["next_sweep_at"] is None, "asleep again")


def test_the_stored_report_follows_what_people_change(host: Host) -> None:
    host.daemon()
    process = host.spawn("sleep", "600")
    ref = f"local/{pid_of(process)}"
    host.ctl("add", pid_of(process))
    host.until_state(ref, "RUNNING")
    host.ctl("label", ref, "+watched")
    until(
        lambda: [j for j in host.report()["jobs"] if j["labels"] == ["watched"]],
        "the label is in the report",
    )
    host.ctl("rm", ref)
    until(lambda: not [j for j in host.report()["jobs"] if j["tracked"]], "it left the report")


# SLURM that comes and goes


def test_slurm_that_was_set_up_meanwhile_is_asked_after_a_reload(
    make: Callable[..., Host], without_slurm: str, tmp_path: Path
) -> None:
    fake = fake_squeue(tmp_path / "fake", NOT_SET_UP)
    host = make(f"{fake}:{without_slurm}")
    daemon = host.daemon()
    add = ["add", "--kind", "slurm", "--id", "4711"]
    assert host.ctl(*add).returncode == 2
    fake_squeue(fake, 'case "$1" in --version) echo slurm 24.11.5;; *) exit 1;; esac')
    daemon.signal(signal.SIGHUP)
    until(lambda: daemon.says("configuration read again"), "the reload")
    assert host.ctl(*add).returncode == 0


# stopping and reloading


def test_sigterm_finishes_the_sweep_in_hand(
    make: Callable[..., Host], without_slurm: str, tmp_path: Path
) -> None:
    begun, gate = tmp_path / "begun", tmp_path / "gate"
    script = (
        'case "$1" in --version) exit 0;; esac\n'
        f"touch '{begun}'; while [ ! -e '{gate}' ]; do sleep 0.05; done\n"
        "echo 'squeue: error: no answer' >&2; exit 1"
    )
    host = make(f"{fake_squeue(tmp_path / 'fake', script)}:{without_slurm}")
    daemon = host.daemon()
    until(begun.exists, "a sweep is in hand")
    daemon.signal(signal.SIGTERM)
    until(lambda: daemon.says("event=stopping"), "the daemon was told to stop")
    assert daemon.process.poll() is None
    assert host.news() == []
    gate.touch()
    assert daemon.process.wait(timeout=PATIENCE_S) == 0
    assert [(n["type"], n["after"]) for n in host.news()] == [("cluster", "unreachable")]
    assert not host.socket.exists()
    [cluster] = host.report()["clusters"]
    assert cluster["status"] == "unreachable"


def test_a_bad_edit_keeps_the_last_good_configuration(host: Host) -> None:
    host.configure(QUIET)
    daemon = host.daemon()
    host.configure(QUIET + "colour = 7\n")
    daemon.signal(signal.SIGHUP)
    until(lambda: daemon.says("the last good one stays"), "it is said")
    assert daemon.says("clusters.here.colour") == 1
    assert host.status()["clusters"][0]["name"] == "here"
    host.config.unlink()
    daemon.signal(signal.SIGHUP)
    until(lambda: daemon.says("is gone"), "a file that is gone is no wish for the built-in")
    host.configure('admins = ["nobody-of-this-name"]\n' + QUIET)
    daemon.signal(signal.SIGHUP)
    until(lambda: daemon.says("nobody-of-this-name"), "a user who is not there is a mistake too")
    host.configure(QUIET + 'notes = "drained on Monday"\n')
    daemon.signal(signal.SIGHUP)
    until(lambda: daemon.says("configuration read again"), "the good edit is taken")
    process = host.spawn("sleep", "600")
    host.ctl("add", pid_of(process))
    until(lambda: host.status()["clusters"][0]["notes"] == "drained on Monday", "it is in use")


def test_an_edit_is_taken_at_the_next_tick_and_a_bad_one_told_once(host: Host) -> None:
    often = 'poll_interval = "1s"\n'
    host.configure(often + QUIET)
    daemon = host.daemon()
    process = host.spawn("sleep", "600")
    host.ctl("add", pid_of(process))
    host.configure(often + QUIET + 'notes = "drained"\n')
    until(lambda: host.status()["clusters"][0]["notes"] == "drained", "the edit is in use")
    host.configure("not TOML")
    until(lambda: daemon.says("the last good one stays"), "the bad edit is told")
    swept = host.status()["daemon"]["last_sweep_at"]
    until(lambda: host.status()["daemon"]["last_sweep_at"] > swept, "sweeps go on")
    until(lambda: host.status()["daemon"]["last_sweep_at"] > swept, "and on")
    assert daemon.says("the last good one stays") == 1


# one clear line and the right exit code


def one_line(done: "subprocess.CompletedProcess[str]", code: int) -> str:
    assert done.returncode == code, (done.stdout, done.stderr)
    [line] = done.stderr.splitlines()
    return line


def test_a_second_daemon_is_refused(host: Host) -> None:
    host.daemon()
    for words in (["run"], ["run", "--socket", str(host.home / "other")], ["sweep"]):
        assert "another jobmond holds the database" in one_line(host.jobmond(*words), 1)
    elsewhere = {**host.env, "STATE_DIRECTORY": str(host.home / "elsewhere")}
    assert "running already" in one_line(host.jobmond("run", env=elsewhere), 1)
    assert host.ctl("status").returncode == 0


def test_a_database_from_the_future_is_refused(host: Host) -> None:
    assert host.jobmond("sweep").returncode == 0
    with sqlite3.connect(host.state / "jobmond.db") as connection:
        connection.execute("UPDATE jobmond_version SET version_num = '9999'")
    connection.close()
    for words in (["run"], ["sweep"]):
        line = one_line(host.jobmond(*words), 1)
        assert "newer jobmond" in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("poll_intervall = '5m'\n", "unknown key poll_intervall; nearest: poll_interval"),
        ("[clusters.here]\nkind = 'local'\ndiscovery = true\n", "nearest: discover"),
        ("[clusters.here]\nkind = 'lokal'\n", "unknown kind 'lokal'; nearest: local"),
        ("a = 1\nb = \n", "line 2"),
        (
            "[clusters.far]\nkind = 'slurm'\nhost = 'h'\nidentity_file = '/nonexistent/key'\n",
            "clusters.far.identity_file: /nonexistent/key: No such file or directory",
        ),
    ],
)
def test_a_wrong_configuration_is_refused(host: Host, text: str, said: str) -> None:
    host.configure(text)
    line = one_line(host.jobmond("run"), 2)
    assert said in line
    assert str(host.config) in line


@pytest.mark.parametrize("words", [["sweep"], ["check", "--offline"]])
def test_other_programs_refuse_it_too(host: Host, words: list[str]) -> None:
    host.configure("poll_intervall = '5m'\n")
    assert "nearest: poll_interval" in one_line(host.jobmond(*words), 2)


def test_a_configuration_that_was_named_and_is_not_there(host: Host) -> None:
    assert "/nonexistent.toml" in one_line(host.jobmond("run", "--config", "/nonexistent.toml"), 2)


def test_check_says_in_its_own_lines_that_slurm_is_not_set_up(
    make: Callable[..., Host], without_slurm: str, tmp_path: Path
) -> None:
    host = make(f"{fake_squeue(tmp_path / 'fake', NOT_SET_UP)}:{without_slurm}")
    done = host.jobmond("check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == (
        "ok    SLURM on local: squeue: fatal: Could not establish a configuration source; "
        "only processes are watched until SLURM is set up"
    )
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"ok"}


def test_a_process_that_is_not_there_is_not_added(host: Host) -> None:
    host.daemon()
    process = host.spawn("sleep", "600")
    process.kill()
    process.wait()
    line = one_line(host.ctl("add", pid_of(process)), 1)
    assert line == (
        f"jobmonctl: local/{pid_of(process)}: no process has the number {process.pid}; "
        "nothing was added"
    )
    living = host.spawn("sleep", "600")
    added = host.ctl("add", pid_of(process), pid_of(living))
    assert (added.returncode, added.stderr.count("no process has")) == (1, 1)
    assert [job["ref"] for job in host.status()["jobs"]] == [f"local/{pid_of(living)}"]


def test_an_unknown_cluster_or_job(host: Host) -> None:
    host.daemon()
    assert "locale" in one_line(host.ctl("add", "pid-1", "--cluster", "locale"), 2)
    assert "locale" in one_line(host.ctl("sweep", "--cluster", "locale"), 2)
    assert "pid-99" in one_line(host.ctl("show", "pid-99"), 1)
    assert host.ctl("status", "--nonsense").returncode == 2


@pytest.mark.skipif(not is_root(), reason="only root can make another user's socket")
def test_the_socket_of_another_user_is_not_talked_to(host: Host) -> None:
    host.socket.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(host.socket))
        listening.listen()
        os.chown(host.socket, 12345, 12345)
        line = one_line(host.ctl("events"), 3)
        assert f"{host.socket} belongs to uid 12345" in line
        done = host.ctl("status")
        assert done.returncode == 3
        assert "belongs to uid 12345" in done.stderr


# without a daemon


def test_one_sweep_claims_nothing_of_a_cluster_that_it_did_not_ask(host: Host) -> None:
    host.configure('[clusters.pond]\nkind = "iris"\nurl = "http://127.0.0.1:9"\n')
    done = host.jobmond("sweep")
    assert (done.returncode, done.stdout) == (0, "pond  not asked: nothing is tracked there\n")


def test_one_sweep_and_its_report(host: Host) -> None:
    host.ctl("run", "--", "sh", "-c", "exit 3")
    done = host.jobmond("sweep")
    assert (done.returncode, done.stdout) == (0, "local  ok  0 jobs, 1 change\n")
    [told] = host.news()
    assert told["after"] == "FAILED"
    assert Path(told["agent_log"]).exists()
    assert host.jobmond("sweep").stdout == "local  ok  0 jobs, 0 changes\n"
    assert host.news() == [told]
    shown = host.ctl("status", "--json")
    assert shown.returncode == 3
    document = json.loads(shown.stdout)
    assert document["daemon"]["running"] is False
    assert document["daemon"]["host"] == socket.gethostname()
    assert [j["state"] for j in document["jobs"]] == ["FAILED"]
    text = host.ctl("status")
    assert text.returncode == 3
    assert told["job"]["ref"] in text.stdout
    assert (host.state / "report.json").stat().st_mode & 0o777 == 0o600


def test_nothing_at_all(host: Host) -> None:
    done = host.ctl("status")
    assert done.returncode == 3
    assert "no daemon" in done.stderr  # root's own may be there and not open to us
    assert not host.state.exists()
