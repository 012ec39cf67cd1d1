"""A Kubernetes cluster watched by the whole of jobmond, from its configuration to the report."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from jobmond.app import App, open_app
from jobmond.daemon.check import checks
from jobmond.daemon.counter import desk_of
from jobmond.desk.requests import AddRequest
from jobmond.errors import ConfigError
from jobmond.settings import load
from tests import kube
from tests.doubles_desk import ME
from tests.doubles_store import FixedClock
from tests.unit.builders import NOW

ACTIVE = {"startTime": "2026-11-29T11:00:00Z", "active": 1, "ready": 1}
FAILED = {
    "startTime": "2026-11-29T11:00:00Z",
    "failed": 1,
    "conditions": [kube.condition("Failed", "True", "BackoffLimitExceeded", "limit reached")],
}
TRACE = (
    b"2026-11-29T11:00:01.000000001Z step 1\n"
    b"2026-11-29T11:20:01.000000002Z Traceback (most recent call last):\n"
    b'2026-11-29T11:20:01.000000003Z   File "t.py", line 1, in <module>\n'
    b"2026-11-29T11:20:01.000000004Z ValueError: sk-oldsecret0123456789abcdef\n"
)


@pytest.fixture(autouse=True)
def straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the proxy that this environment may have."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@dataclass
class Scene:
    server: kube.Server
    app: App
    clock: FixedClock
    folder: Path
    settings: Any

    @property
    def state(self) -> kube.ApiState:
        return self.server.state

    async def add(self, *ids: str) -> list[dict[str, Any]]:
        return [(await desk_of(self.app).add(AddRequest((native,)), ME))[0] for native in ids]

    async def sweep(self, minutes: int = 15, *, asked: bool = True) -> None:
        self.clock.move(minutes * 60)
        await self.app.sweep("k8s", asked=asked)

    async def status(self) -> dict[str, Any]:
        return await desk_of(self.app).status(ME)

    async def job(self, native: str = "ml/train") -> dict[str, Any]:
        return next(j for j in (await self.status())["jobs"] if j["ref"] == f"k8s/{native}")

    async def cluster(self) -> dict[str, Any]:
        return next(c for c in (await self.status())["clusters"] if c["name"] == "k8s")


@asynccontextmanager
async def scene(folder: Path, config: str = "") -> AsyncIterator[Scene]:
    clock = FixedClock(NOW)
    async with kube.api_server() as server:
        credentials = kube.kubeconfig(folder, server.url, namespace="ml")
        path = folder / "config.toml"
        path.write_text(
            f"""
            database.url = "sqlite:///{folder}/db"
            agent_logs = "{folder}/agent_logs"
            [clusters.k8s]
            kind = "kubernetes"
            kubeconfig = "{credentials}"
            request_timeout = "1s"
            {config}
            [sinks.news]
            kind = "file"
            path = "{folder}/news.jsonl"
            """
        )
        loaded = load(path, {"HOME": str(folder)})
        assert loaded.warnings == ()
        app = await open_app(loaded.settings, folder, clock)
        try:
            yield Scene(server, app, clock, folder, loaded)
        finally:
            await app.close()


async def test_a_job_from_add_to_its_explained_end(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.state.put("jobs", kube.job(status=ACTIVE))
        s.state.put("pods", kube.pod(status=kube.RUNNING))
        s.state.logs["train-x", "train", False] = TRACE[:45]
        (row,) = await s.add("ml/train")
        assert row["ref"] == "k8s/ml/train"
        assert row["guessed"] == "'ml/train' taken as k8s/ml/train: cluster k8s, kind kubernetes"
        await s.sweep()
        job = await s.job()
        assert (job["kind"], job["state"], job["native_state"]) == (
            "kubernetes",
            "RUNNING",
            "Running",
        )
        assert (job["log"]["status"], job["log"]["path"]) == ("read", "train-x/train")
        s.state.clear()
        s.state.put("jobs", kube.job(status=FAILED))
        s.state.put("pods", kube.pod(status=kube.terminated(1)))
        s.state.logs["train-x", "train", False] = TRACE
        await s.sweep()
        job = await s.job()
        assert (job["state"], job["exit_code"]) == ("FAILED", 1)
        assert job["reason"] == "BackoffLimitExceeded"
        assert job["diagnosis"]["cause"] == "python-exception"
        (entry,) = (tmp_path / "agent_logs").rglob("k8s-*.md")
        assert "sk-oldsecret" not in entry.read_text()
        assert "Traceback" in entry.read_text()
        news = [json.loads(x) for x in (tmp_path / "news.jsonl").read_text().splitlines()]
        assert [(n["before"], n["after"]) for n in news] == [("RUNNING", "FAILED")]


def hf(step: int, loss: float) -> bytes:
    at = f"2026-11-29T12:{step // 60:02d}:{step % 60:02d}.000000000Z "
    record = {"loss": loss, "grad_norm": 0.5, "learning_rate": 1e-05, "epoch": step / 100}
    bar = f"{step}%|x| {step}/100 [00:{step % 60:02d}<01:00,  1.00s/it]\r"
    return (at + bar + repr(record) + "\n").encode()


async def test_a_training_is_followed_through_the_log_of_its_pod(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.state.put("jobs", kube.job(status=ACTIVE))
        s.state.put("pods", kube.pod(status=kube.RUNNING))
        key = ("train-x", "train", False)
        s.state.logs[key] = b"".join(hf(n, 2.0 - n / 100) for n in range(1, 21))
        await s.add("ml/train")
        await s.sweep()
        first = await s.job()
        assert (first["step"], first["max_step"], first["metrics"]["loss"]) == (20, 100, 1.8)
        s.state.logs[key] += b"".join(hf(n, 2.0 - n / 100) for n in range(21, 41))
        await s.sweep()
        second = await s.job()
        assert (second["step"], second["metrics"]["loss"]) == (40, 1.6)
        since = [r.query.get("sinceTime") for r in s.server.requests if r.path.endswith("/log")]
        assert since[-1] == "2026-11-29T12:00:20Z"


async def test_what_nobody_registered_is_listed_and_can_be_tracked(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.state.put("jobs", kube.job(status=ACTIVE), kube.job("other", ACTIVE))
        s.state.put("pods", kube.pod(status=kube.RUNNING), kube.pod("x", kube.RUNNING, of="other"))
        await s.add("ml/train")
        await s.sweep()
        desk = desk_of(s.app)
        found = [row["ref"] for row in await desk.discover(ME)]
        assert found == ["k8s/ml/other"]
        (row,) = await desk.track_found(found, ME)
        assert row["error"] is None
        await s.sweep()
        assert (await s.job("ml/other"))["state"] == "RUNNING"
        assert await desk.discover(ME) == []


@pytest.mark.parametrize("word", ["train", "ML/train", "ml/", "ml/../secrets", "ml/a b", "-h"])
async def test_an_id_that_is_none_is_one_line(tmp_path: Path, word: str) -> None:
    async with scene(tmp_path) as s:
        with pytest.raises(ConfigError, match="write namespace/name, like ml/train"):
            await s.add(f"k8s/{word}")


async def test_check_says_how_it_stands(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.state.put("jobs", kube.job(status=ACTIVE))
        env = {"HOME": str(tmp_path)}

        async def line() -> Any:
            lines = await checks(s.settings, env, offline=False)
            return next(one for one in lines if one.what == "cluster k8s")

        good = await line()
        assert (good.fine, good.said) == (True, "answers, 1 jobs of its users seen")
        s.state.clear()
        s.state.namespaces.clear()
        bad = await line()
        assert (bad.fine, bad.said) == (False, "namespace ml does not exist")
        s.server.token = "another"
        refused = await line()
        assert not refused.fine
        assert "refuses the credentials (401) (try: kubectl --kubeconfig" in refused.said
        quiet = await checks(s.settings, env, offline=True)
        assert any(one.said == "not contacted (--offline)" for one in quiet)


async def test_a_selector_of_ours_that_is_none_is_an_error_of_the_cluster(tmp_path: Path) -> None:
    async with scene(tmp_path, 'selector = "=="') as s:
        s.state.put("jobs", kube.job(status=ACTIVE))
        s.state.put("pods", kube.pod(status=kube.RUNNING))
        await s.add("ml/train")
        await s.sweep()
        cluster = await s.cluster()
        assert cluster["status"] == "unreachable"
        assert "400: unable to parse" in cluster["error"]


async def test_refused_credentials_are_a_persons_turn_and_asked_again_within_the_hour(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as s:
        s.state.put("jobs", kube.job(status=ACTIVE))
        s.state.put("pods", kube.pod(status=kube.RUNNING))
        await s.add("ml/train")
        await s.sweep()
        s.server.token = "fresh"
        await s.sweep()
        assert (await s.cluster())["status"] == "needs-login"
        asked = len(s.server.requests)
        await s.sweep(asked=False)
        assert len(s.server.requests) == asked
        assert ((await s.job())["state"], (await s.job())["stale"]) == ("RUNNING", True)
        kube.kubeconfig(tmp_path, s.server.url, user={"token": "fresh"}, namespace="ml")
        await s.sweep(asked=False)
        assert (await s.cluster())["status"] == "ok"
        assert (await s.job())["stale"] is False


async def test_a_log_that_may_not_be_read_is_said_to_be_that(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        s.state.put("jobs", kube.job(status=ACTIVE))
        s.state.put("pods", kube.pod(status=kube.RUNNING))
        said = 'pods "train-x" is forbidden: User "me" cannot get resource "pods/log"'
        s.state.fixed["/log"] = (403, kube.status_body(403, "Forbidden", said))
        await s.add("ml/train")
        await s.sweep()
        job, cluster = await s.job(), await s.cluster()
        assert (job["state"], job["log"]["status"]) == ("RUNNING", "unavailable")
        assert job["log"]["error"].startswith("permission: ")
        assert cluster["status"] == "ok"


async def test_a_reload_keeps_the_connection_of_a_cluster_that_is_reached_the_same_way(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as s:
        s.state.put("jobs", kube.job(status=ACTIVE))
        await s.sweep()
        before = s.app.clusters["k8s"].transports[0]
        await s.app.replace(await s.app.prepared(s.settings.settings))
        assert s.app.clusters["k8s"].transports[0] is before
        await s.sweep()
        assert before.logins == 1


async def test_events_that_are_refused_hide_nothing_else(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        wedged = {"startTime": "2026-11-29T11:00:00Z", "ready": 0}
        s.state.put("jobs", kube.job(status=wedged))
        s.state.fixed["/events"] = (403, kube.status_body(403, "Forbidden", "events: no"))
        await s.add("ml/train")
        for state, signals in (("RUNNING", 0), ("RUNNING", 1), ("LOST", 0)):
            await s.sweep()
            job = await s.job()
            raised = [x["rule"] for x in job["signals"]]
            assert (job["state"], raised) == (state, ["silent-wedge"] * signals)
        news = [json.loads(x) for x in (tmp_path / "news.jsonl").read_text().splitlines()]
        assert [n["type"] for n in news] == ["signal", "transition"]
        assert (await s.cluster())["status"] == "ok"


async def test_the_server_is_asked_one_thing_after_another(tmp_path: Path) -> None:
    async with scene(tmp_path, 'namespaces = ["ml", "other"]') as s:
        s.state.namespaces.add("other")
        s.state.put("jobs", *[kube.job(f"j{n}", ACTIVE) for n in range(30)])
        s.state.put("pods", *[kube.pod(f"p{n}", kube.RUNNING, of=f"j{n}") for n in range(30)])
        await s.add(*[f"ml/j{n}" for n in range(30)])

        async def slow(request: web.Request) -> None:
            return None

        s.server.fault = slow
        await s.sweep()
        asked = [r.path for r in s.server.requests if not r.path.endswith("/log")]
        assert asked == [
            "/apis/batch/v1/namespaces/ml/jobs",
            "/api/v1/namespaces/ml/pods",
            "/apis/batch/v1/namespaces/other/jobs",
            "/api/v1/namespaces/other/pods",
            "/api/v1/namespaces/other",
        ]
        assert s.server.most_at_once == 1
