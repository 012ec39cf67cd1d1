"""An iris controller watched by the whole of jobmond, over real HTTP, sweep after sweep."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobmond.app import App, open_app
from jobmond.daemon.check import checks
from jobmond.daemon.counter import Counter, desk_of
from jobmond.desk.requests import AddRequest
from jobmond.model.state import Kind
from jobmond.settings import load
from tests.controller import Controller, error
from tests.doubles_desk import ME
from tests.doubles_store import FixedClock
from tests.receiver import (
    CLOSE,
    HANG,
    MID_BODY,
    MID_CHUNK,
    NO_HTTP,
    RESET,
    Receiver,
    Reply,
    Request,
    status,
)
from tests.unit.builders import NOW

TRAIN = "alice/train"


@pytest.fixture(autouse=True)
def straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the proxy that this environment may have."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@dataclass
class Scene:
    """A controller behind a server, and jobmond beside it. `fault` is what the server does."""

    far: Controller
    server: Receiver
    app: App
    clock: FixedClock
    folder: Path
    fault: Reply | None = None

    async def add(self, *ids: str) -> None:
        for native in ids:
            (row,) = await desk_of(self.app).add(AddRequest((native,)), ME)
            assert row["ref"].startswith("iris/"), row

    async def sweep(self, minutes: int = 15) -> None:
        self.clock.move(minutes * 60)
        await self.app.sweep("iris", asked=True)

    async def job(self, native: str = TRAIN) -> dict[str, Any]:
        document = await desk_of(self.app).status(ME)
        return next(job for job in document["jobs"] if job["ref"] == f"iris/{native}")

    async def cluster(self) -> dict[str, Any]:
        (one,) = (await desk_of(self.app).status(ME))["clusters"]
        return one

    @property
    def news(self) -> list[tuple[str, str | None, str | None]]:
        path = self.folder / "news.jsonl"
        lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
        return [(n["type"], n["before"], n["after"]) for n in lines]


@asynccontextmanager
async def scene(
    folder: Path, *, config: str = "", clock: FixedClock | None = None
) -> AsyncIterator[Scene]:
    far, clock = Controller(), clock or FixedClock(NOW)
    server = Receiver()

    def script(request: Request) -> Reply:
        made = found.fault
        if made is not None:
            return made
        far.headers = request.headers
        answer = far.answer(request.target, request.body)
        return status(answer.status, answer.body, **dict(answer.headers))

    server.script = script
    async with server:
        path = folder / "config.toml"
        path.write_text(
            f"""
            database.url = "sqlite:///{folder}/db"
            agent_logs = "{folder}/agent_logs"
            [clusters.iris]
            kind = "iris"
            url = "http://127.0.0.1:{server.port}"
            users = ["alice"]
            call_timeout = "1s"
            {config}
            [sinks.news]
            kind = "file"
            path = "{folder}/news.jsonl"
            """
        )
        loaded = load(path, {"HOME": str(folder)})
        assert loaded.warnings == ()
        app = await open_app(loaded.settings, folder, clock)
        found = Scene(far, server, app, clock, folder)
        try:
            yield found
        finally:
            await app.close()


async def test_a_job_from_its_start_to_its_failure(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.far.submit(TRAIN, s.clock.now(), "pending", pendingReason="no worker is free")
        await s.add(f"/{TRAIN}")
        await s.sweep()
        job = await s.job()
        assert (job["state"], job["native_state"], job["reason"]) == (
            "PENDING",
            "pending",
            "no worker is free",
        )
        s.far.submit(TRAIN, NOW)
        s.far.say(TRAIN, s.clock.now(), "loading weights")
        await s.sweep()
        job = await s.job()
        assert (job["state"], job["kind"], job["user"]) == ("RUNNING", "iris", "alice")
        assert (job["log"]["status"], job["log"]["bytes"]) == ("read", 16)
        assert job["log"]["path"] == f"iris:/{TRAIN}@{int(NOW.timestamp() * 1000)}"
        trace = ("Traceback (most recent call last):", '  File "t.py", line 1', "KeyError: 'loss'")
        s.far.say(TRAIN, s.clock.now(), *trace)
        s.far.end(TRAIN, "failed", s.clock.now(), exit_code=1, why="Exit code: 1")
        await s.sweep()
        job = await s.job()
        assert (job["state"], job["exit_code"], job["tracked"]) == ("FAILED", 1, False)
        assert job["diagnosis"]["cause"] == "python-exception"
        assert "KeyError: 'loss'" in job["diagnosis"]["summary"]
        assert s.news == [
            ("transition", "PENDING", "RUNNING"),
            ("transition", "RUNNING", "FAILED"),
        ]
        assert (tmp_path / "agent_logs").is_dir()


async def test_a_job_that_found_no_place(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.far.submit(TRAIN, NOW, "pending")
        await s.add(TRAIN)
        await s.sweep()
        why = "Scheduling timeout exceeded (Duration(3.000s))"
        s.far.end(TRAIN, "unschedulable", s.clock.now(), why=why)
        await s.sweep()
        job = await s.job()
        assert (job["state"], job["native_state"], job["reason"]) == (
            "FAILED",
            "unschedulable",
            why,
        )
        assert job["diagnosis"]["cause"] == "unschedulable"


FAULTS = {
    "hang": HANG,
    "reset": RESET,
    "closed": CLOSE,
    "cut": MID_BODY,
    "cut in a chunk": MID_CHUNK,
    "no http": NO_HTTP,
    "500": status(500),
    "502 html": status(502, b"<html>Bad Gateway</html>", Content_Type="text/html"),
    "503 empty": status(503, b""),
    "429": status(429, b"{}", Retry_After="60"),
    "404 html": status(404, b"<html>", Content_Type="text/html"),
    "200 html": status(200, b"<html>Sign in</html>", Content_Type="text/html"),
    "200 empty": status(200, b""),
    "json cut": status(200, b'{"states": {"/alice/tra', Content_Type="application/json"),
    "redirect": status(302, b"", Location="https://accounts.example/"),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_an_outage_of_sweeps_moves_no_job_and_is_told_once(tmp_path: Path, name: str) -> None:
    async with scene(tmp_path) as s:
        s.far.submit(TRAIN, NOW)
        s.far.say(TRAIN, NOW, "step 1")
        await s.add(TRAIN)
        await s.sweep()
        s.fault = FAULTS[name]
        s.far.end(TRAIN, "failed", s.clock.now(), exit_code=1)
        for _ in range(2 if name == "hang" else 10):
            await s.sweep()
            job = await s.job()
            assert (job["state"], job["stale"], job["tracked"]) == ("RUNNING", True, True)
            assert job["log"]["status"] == "read"
        assert (await s.cluster())["status"] == "unreachable"
        assert s.news == [("cluster", "ok", "unreachable")]
        s.fault = None
        await s.sweep()
        assert (await s.job())["state"] == "FAILED"
        assert s.news[1:] == [("cluster", "unreachable", "ok"), ("transition", "RUNNING", "FAILED")]


@pytest.mark.parametrize("code", [401, 403])
async def test_who_is_refused_is_asked_for_a_login_and_not_tried_again(
    tmp_path: Path, code: int
) -> None:
    header = tmp_path / "header"
    header.write_text("Bearer sk-oldsecret0123456789abcdef")
    async with scene(tmp_path, config=f'auth_header_file = "{header}"') as s:
        s.far.submit(TRAIN, NOW)
        await s.add(TRAIN)
        await s.sweep()
        assert s.far.headers["authorization"] == "Bearer sk-oldsecret0123456789abcdef"
        s.fault = status(code, b'{"code": "unauthenticated", "message": "expired"}')
        await s.sweep()
        cluster = await s.cluster()
        assert cluster["status"] == "needs-login"
        assert cluster["remedy"] == f"write a header that is accepted into {header}"
        asked = len(s.server.requests)
        for _ in range(5):
            s.clock.move(900)
            await s.app.sweep("iris")
        assert len(s.server.requests) == asked
        assert (await s.job())["state"] == "RUNNING"
        s.fault = None
        header.write_text("Bearer fresh")
        s.clock.move(900)
        await s.app.sweep("iris")
        assert (await s.cluster())["status"] == "ok"
        assert s.far.headers["authorization"] == "Bearer fresh"
        for path in tmp_path.rglob("*"):
            if path.is_file() and path != header:
                assert b"sk-oldsecret" not in path.read_bytes(), path


async def test_a_log_service_that_is_down_is_no_silence(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.far.submit(TRAIN, NOW)
        s.far.say(TRAIN, NOW, "step 1")
        await s.add(TRAIN)
        await s.sweep()
        s.far.broken = lambda m, _: error(503, "unavailable", "no") if m == "FetchLogs" else None
        await s.sweep()
        job = await s.job()
        assert (job["state"], job["log"]["status"]) == ("RUNNING", "unavailable")
        assert job["log"]["bytes"] == 7
        assert (await s.cluster())["status"] == "ok"


async def test_training_is_read_from_the_log_as_it_grows(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.far.submit(TRAIN, NOW)
        s.far.say(
            TRAIN, NOW, "{'loss': 2.5, 'grad_norm': 0.5, 'epoch': 0.01}", " 10/100 [00:10<01:30]"
        )
        await s.add(TRAIN)
        await s.sweep()
        s.far.say(TRAIN, s.clock.now(), "{'loss': 2.25, 'grad_norm': 0.75, 'epoch': 0.02}")
        await s.sweep()
        job = await s.job()
        assert (job["metrics"]["loss"], job["metrics"]["grad_norm"]) == (2.25, 0.75)
        looks = [q for m, q in s.far.asked if m == "FetchLogs" and "cursor" in q]
        assert [q["cursor"] for q in looks] == ["0", "2"]
        s.far.asked.clear()
        await s.sweep()
        assert s.far.count("FetchLogs") == 1  # nothing came: its end says so


async def test_submitted_again_under_the_same_name(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.far.submit(TRAIN, NOW)
        await s.add(TRAIN)
        await s.sweep()
        s.far.submit(TRAIN, s.clock.now())
        await s.sweep()
        job = await s.job()
        assert (job["state"], job["life"], job["tracked"]) == ("RUNNING", 2, True)
        assert s.news == [("restart", "LOST", "RUNNING")]
        await s.sweep()
        assert len(s.news) == 1


async def test_gone_is_told_once_and_corrected_when_it_was_wrong(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.far.submit(TRAIN, NOW)
        await s.add(TRAIN)
        await s.sweep()
        kept = s.far.jobs.pop(f"/{TRAIN}")
        await s.sweep()
        job = await s.job()
        assert (job["state"], job["reason"], job["native_state"]) == (
            "LOST",
            "record-gone",
            "record-gone",
        )
        await s.sweep()
        s.far.jobs[f"/{TRAIN}"] = kept
        await s.sweep()
        assert (await s.job())["state"] == "RUNNING"
        assert s.news == [("transition", "RUNNING", "LOST"), ("transition", "LOST", "RUNNING")]


async def test_running_without_a_task_for_three_sweeps(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.far.submit(TRAIN, NOW)
        await s.add(TRAIN)
        await s.sweep()
        s.far.submit(TRAIN, NOW, taskStateCounts={})
        s.far.tasks.clear()
        for _ in range(2):
            await s.sweep()
            assert (await s.job())["state"] == "RUNNING"
        await s.sweep()
        job = await s.job()
        assert (job["state"], job["reason"]) == ("LOST", "no-pods")
        assert s.news == [("transition", "RUNNING", "LOST")]


async def test_what_the_users_submit_is_found(tmp_path: Path) -> None:
    async with scene(tmp_path, config="discover = true") as s:
        s.far.submit("alice/rl__grid_a", NOW)
        await s.sweep()
        s.far.submit("alice/eval-mmlu", s.clock.now())
        s.far.end("alice/eval-mmlu", "failed", s.clock.now(), exit_code=9)
        await s.sweep()
        first, second = await s.job("alice/rl__grid_a"), await s.job("alice/eval-mmlu")
        assert (first["bucket"], first["state"]) == ("rl", "RUNNING")
        assert (second["bucket"], second["state"], second["exit_code"]) == ("eval", "FAILED", 9)


async def test_an_entry_of_a_registry_file_may_name_the_controllers_host(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        (info,) = Counter(s.app).clusters()
        assert (info.name, info.kinds, info.hosts) == ("iris", (Kind.IRIS,), ("127.0.0.1",))


async def test_discover_lists_what_nobody_tracks(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.far.submit(TRAIN, NOW)
        s.far.submit("alice/other", NOW)
        await s.add(TRAIN)
        await s.sweep()
        rows = await desk_of(s.app).discover(ME)
        assert [row["ref"] for row in rows] == ["iris/alice/other"]


async def test_check_says_how_the_controller_answers(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.far.submit(TRAIN, NOW)
        loaded = load(tmp_path / "config.toml", {"HOME": str(tmp_path)})
        lines = {line.what: line for line in await checks(loaded, {}, offline=False)}
        assert lines["cluster iris"].fine
        assert lines["cluster iris"].said == "answers, 1 jobs of its users seen"
        s.fault = status(401, b"{}")
        lines = {line.what: line for line in await checks(loaded, {}, offline=False)}
        assert not lines["cluster iris"].fine
        assert "401" in lines["cluster iris"].said
        assert "set auth_header_file or auth_command of clusters.iris" in lines["cluster iris"].said


async def test_check_says_who_can_read_the_header(tmp_path: Path) -> None:
    header = tmp_path / "header"
    header.write_text("Bearer x")
    header.chmod(0o644)
    async with scene(tmp_path, config=f'auth_header_file = "{header}"'):
        loaded = load(tmp_path / "config.toml", {"HOME": str(tmp_path)})
        lines = {line.what: line for line in await checks(loaded, {}, offline=False)}
        assert not lines["header of iris"].fine
        assert f"chmod o-rwx {header}" in lines["header of iris"].said
