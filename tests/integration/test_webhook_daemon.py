"""Real daemons, killed while a receiver hangs; and one sweep without a daemon."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.host import Host, until
from tests.integration.team import Team

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")


@pytest.fixture
def team() -> Iterator[Team]:
    made = Team()
    yield made
    made.close()


@pytest.fixture
def host(tmp_path: Path, team: Team) -> Iterator[Host]:
    made = Host(tmp_path / "home", extra={"NO_PROXY": "127.0.0.1"})
    (made.home / "url").write_text(team.url)
    made.configure(f"""
        [clusters.here]
        kind = "local"
        slurm = false
        [sinks.news]
        kind = "file"
        path = "{made.state}/news.jsonl"
        [sinks.team]
        kind = "webhook"
        url_file = "{made.home}/url"
        timeout = "60s"
    """)
    yield made
    made.close()


def test_a_failed_run_reaches_the_team_whatever_happens_in_between(host: Host, team: Team) -> None:
    team.hanging.set()
    daemon = host.daemon()
    assert host.ctl("run", "--", "sh", "-c", "exit 3").returncode == 3
    [event] = until(lambda: list(team.came), "the receiver is asked")
    ref = event["job"]["ref"]
    # The receiver hangs, and nothing waits for it.
    assert host.ctl("sweep", "--wait").returncode == 0
    assert [n["key"] for n in host.news(ref)] == [event["key"]]
    assert len(team.came) == 1
    daemon.signal(signal.SIGKILL)
    daemon.process.wait()

    team.hanging.clear()
    daemon = host.daemon()
    until(lambda: list(team.taken), "the receiver takes it")
    assert host.ctl("run", "--", "sh", "-c", "exit 4").returncode == 4
    until(lambda: len(team.taken) == 2, "and the next")
    assert [n["job"]["ref"] == ref for n in team.taken] == [True, False]
    assert team.taken[0] == event == host.news(ref)[0]
    [standing] = [s for s in host.status()["sinks"] if s["name"] == "team"]
    assert (standing["undelivered"], standing["given_up"]) == (0, 0)
    assert daemon.stop() == 0
    assert team.url.rpartition(":")[2] not in daemon.said


def test_one_sweep_without_a_daemon_delivers_too(host: Host, team: Team) -> None:
    daemon = host.daemon()
    team.hanging.set()
    assert host.ctl("run", "--", "sh", "-c", "exit 3").returncode == 3
    until(lambda: list(team.came), "the receiver is asked")
    daemon.signal(signal.SIGKILL)
    daemon.process.wait()
    team.hanging.clear()
    done = host.jobmond("sweep")
    assert done.returncode == 0, done.stderr
    assert [n["after"] for n in team.taken] == ["FAILED"]
    assert [s["undelivered"] for s in host.report()["sinks"]] == [0, 0, 0]


def test_check_names_what_is_wrong_with_a_receiver(host: Host) -> None:
    (host.home / "url").write_text("hunter2")
    done = host.jobmond("check")
    assert done.returncode == 1
    assert f"FAIL  sink team: {host.home}/url: expected one line that begins" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr
