"""Real daemons, killed while a receiver hangs; and one sweep without a daemon."""

import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.integration.host import Host, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")


class Team:
    """A receiver in a thread. While `hanging`, no request gets an answer."""

    def __init__(self) -> None:
        self.came: list[dict[str, Any]] = []
        self.taken: list[dict[str, Any]] = []
        self.hanging = threading.Event()
        self.freed = threading.Event()
        team = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                news = json.loads(self.rfile.read(int(self.headers["content-length"])))
                team.came.append(news)
                if team.hanging.is_set():
                    team.freed.wait()
                    return
                if news["key"] not in [one["key"] for one in team.taken]:
                    team.taken.append(news)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook"

    def close(self) -> None:
        self.freed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


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
