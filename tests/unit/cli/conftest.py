"""A daemon's double on a real Unix socket, and jobmonctl run against it."""

import json
import socketserver
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from jobmond.cli.main import program
from jobmond.cli.session import Session

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@dataclass
class FakeDaemon:
    """Replays answers: for each `METHOD /path` a list used up one by one, the last one for good.

    An answer is a JSON value, a pair (HTTP status, JSON value), raw bytes, or a function of
    (query, body) that gives one of these.
    """

    socket: Path
    answers: dict[str, list[Any]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    version: str | None = None

    def on(self, route: str, *answers: Any) -> None:
        self.answers[route] = list(answers)

    def bodies(self, route: str) -> list[Any]:
        return [body for asked, _, body in self.asked if asked == route]

    def queries(self, route: str) -> list[dict[str, str]]:
        return [query for asked, query, _ in self.asked if asked == route]

    def answer(self, method: str, target: str, body: Any) -> tuple[int, bytes]:
        path, _, query_text = target.partition("?")
        query = dict(urllib.parse.parse_qsl(query_text))
        route = f"{method} {path}"
        self.asked.append((route, query, body))
        queue = self.answers.get(route)
        if not queue:
            return 404, json.dumps({"error": f"no route {route}", "exit_code": 1}).encode()
        found = queue.pop(0) if len(queue) > 1 else queue[0]
        if callable(found):
            found = found(query, body)
        status, value = found if isinstance(found, tuple) else (200, found)
        return status, value if isinstance(value, bytes) else json.dumps(value).encode()


def _handler(fake: FakeDaemon) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, content = fake.answer(self.command, self.path, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            if fake.version is not None:
                self.send_header("Jobmond-Version", fake.version)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = _reply

        def log_message(self, *_: Any) -> None:
            pass

        def address_string(self) -> str:
            return "unix"

    return Handler


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeDaemon]:
    daemon = FakeDaemon(tmp_path / "socket")
    server = socketserver.ThreadingUnixStreamServer(str(daemon.socket), _handler(daemon))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield daemon
    server.shutdown()
    server.server_close()


@dataclass
class FakeTime:
    """Time that passes only by pausing."""

    passed_s: float = 0.0
    pauses: list[float] = field(default_factory=list)
    on_pause: Callable[[], None] = lambda: None

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.passed_s += seconds
        self.on_pause()

    def monotonic(self) -> float:
        return self.passed_s

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.passed_s)


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


Ctl = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing of this machine is found."""
    return {"HOME": str(tmp_path), "STATE_DIRECTORY": str(tmp_path / "state")}


@pytest.fixture
def ctl(tmp_path: Path, time: FakeTime, home: dict[str, str]) -> Ctl:
    """Run `jobmonctl WORDS` against the double's socket."""

    def run(*words: str, stdin: str | None = None, **changes: Any) -> Result:
        session = Session(
            env=home,
            socket=str(tmp_path / "socket"),
            tz=timezone(timedelta(hours=1)),
            now=time.now,
            monotonic=time.monotonic,
            pause=time.pause,
        )
        return CliRunner().invoke(program, list(words), input=stdin, obj=session, **changes)

    return run


@pytest.fixture
def job() -> Callable[..., dict[str, Any]]:
    def make(ref: str = "leonardo/4711", **changes: Any) -> dict[str, Any]:
        cluster, _, native = ref.partition("/")
        return {
            "ref": ref, "cluster": cluster, "native_id": native, "kind": "slurm",
            "bucket": "other", "type": "batch", "name": "tokenise", "run": "tokenise",
            "user": "alice", "owner": None, "labels": [], "tracked": True, "stale": False,
            "state": "RUNNING", "native_state": "RUNNING", "reason": None, "exit_code": None,
            "signal": None, "submitted_at": "2026-11-29T09:00:00Z",
            "started_at": "2026-11-29T10:00:00Z", "ended_at": None,
            "seen_at": "2026-11-29T11:55:00Z", "elapsed_s": 7200, "time_limit_s": None,
            "start_estimate_at": None, "eta_s": None, "nodes": None, "phase": "bring-up",
            "life": 1, "step": None, "max_step": None, "metrics": {}, "trend": None,
            "note": "tokenise", "successor": None, "tasks": None, "signals": [],
            "diagnosis": None,
            "log": {"path": None, "status": "none", "bytes": None, "error": None},
            **changes,
        }  # fmt: skip

    return make


@pytest.fixture
def document(job: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def make(*jobs: dict[str, Any], **changes: Any) -> dict[str, Any]:
        return {
            "schema": 1,
            "generated_at": "2026-11-29T11:57:00Z",
            "daemon": {
                "running": True, "host": "login7", "version": "0.1.0",
                "last_sweep_at": "2026-11-29T11:57:00Z",
                "next_sweep_at": "2026-11-29T12:12:00Z",
            },
            "clusters": [],
            "summary": {"line": "1 running", "tracked": 1, "by_state": {"RUNNING": 1}},
            "jobs": list(jobs) or [job()],
            **changes,
        }  # fmt: skip

    return make
