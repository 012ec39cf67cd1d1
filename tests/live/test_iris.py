"""A real iris controller, watched by the whole of jobmond."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobmond.app import App, open_app
from jobmond.clock import SystemClock
from jobmond.daemon.counter import desk_of
from jobmond.desk.requests import AddRequest, LogRequest
from jobmond.settings import load
from tests.doubles_desk import ME
from tests.live.iris_lab import IrisLab, NotHere, environment

pytestmark = pytest.mark.timeout(600)

FOREVER = "import time; print('started', flush=True); time.sleep(600)"


@pytest.fixture(scope="module")
def iris(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IrisLab]:
    """One controller for all tests here; outside what must not be skipped anywhere, for not every
    machine has a Python that is new enough, or the packages."""
    assert pytestconfig.cache is not None
    try:
        python = environment(Path(pytestconfig.cache.mkdir("iris")))
        lab = IrisLab(python, tmp_path_factory.mktemp("iris"))
        lab.start()
    except NotHere as why:
        pytest.skip(f"no real iris controller: {why}")
    try:
        yield lab
    finally:
        lab.stop()


class Watch:
    """jobmond beside the controller."""

    def __init__(self, app: App, folder: Path) -> None:
        self.app, self.folder = app, folder

    async def add(self, *jobs: str) -> None:
        for job in jobs:
            (row,) = await desk_of(self.app).add(AddRequest((f"/{job}",)), ME)
            assert row["ref"] == f"pond/{job}"

    async def sweep(self) -> None:
        await self.app.sweep("pond", asked=True)

    async def jobs(self) -> dict[str, dict[str, Any]]:
        document = await desk_of(self.app).status(ME)
        return {job["native_id"]: job for job in document["jobs"] if "@" not in job["ref"]}

    async def cluster(self) -> str:
        (one,) = (await desk_of(self.app).status(ME))["clusters"]
        return str(one["status"])

    def news(self, job: str) -> list[tuple[str, str | None, str | None]]:
        path = self.folder / "news.jsonl"
        lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
        mine = [n for n in lines if n["job"] and n["job"]["ref"] == f"pond/{job}"]
        return [(n["type"], n["before"], n["after"]) for n in mine]


@pytest.fixture
async def watch(
    iris: IrisLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Watch]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    path = tmp_path / "config.toml"
    path.write_text(
        f"""
        grace = 0
        database.url = "sqlite:///{tmp_path}/db"
        agent_logs = "{tmp_path}/agent_logs"
        [clusters.pond]
        kind = "iris"
        url = "{iris.url}"
        users = ["alice"]
        [sinks.news]
        kind = "file"
        path = "{tmp_path}/news.jsonl"
        """
    )
    app = await open_app(load(path, {"HOME": str(tmp_path)}).settings, tmp_path, SystemClock())
    try:
        yield Watch(app, tmp_path)
    finally:
        await app.close()


async def test_ends_of_every_kind(iris: IrisLab, watch: Watch) -> None:
    iris.submit("alice/ok", "print('fine')")
    iris.submit("alice/bad", "print('step 1'); raise KeyError('loss')")
    iris.submit("alice/killed", FOREVER)
    iris.submit(
        "alice/crowded",
        FOREVER,
        replicas=5,
        resources={"cpuMillicores": 7000, "memoryBytes": str(2**30)},
        schedulingTimeout={"milliseconds": "3000"},
    )
    await watch.add("alice/ok", "alice/bad", "alice/killed", "alice/crowded")
    iris.until("alice/killed", "running")
    await watch.sweep()
    assert (await watch.jobs())["alice/killed"]["state"] == "RUNNING"
    iris.kill("alice/killed")
    for job in ("ok", "bad", "killed", "crowded"):
        iris.until(f"alice/{job}", "succeeded", "failed", "killed", "unschedulable")
    await watch.sweep()
    jobs = await watch.jobs()
    ends = {
        name: (job["state"], job["native_state"], job["exit_code"]) for name, job in jobs.items()
    }
    assert ends == {
        "alice/ok": ("COMPLETED", "succeeded", 0),
        "alice/bad": ("FAILED", "failed", 1),
        "alice/killed": ("CANCELLED", "killed", None),
        "alice/crowded": ("FAILED", "unschedulable", None),
    }
    assert not any(job["tracked"] for job in jobs.values())
    assert jobs["alice/bad"]["diagnosis"]["cause"] == "python-exception"
    assert "KeyError: 'loss'" in jobs["alice/bad"]["diagnosis"]["summary"]
    assert jobs["alice/crowded"]["diagnosis"]["cause"] == "unschedulable"
    assert jobs["alice/killed"]["reason"] == "Terminated by user"
    assert watch.news("alice/killed") == [("transition", "RUNNING", "CANCELLED")]


async def test_a_job_that_can_never_fit_leaves_no_record(iris: IrisLab, watch: Watch) -> None:
    said = iris.submit("alice/huge", "print(1)", resources={"cpuMillicores": 9_000_000})
    assert said["code"] == "failed_precondition"
    await watch.add("alice/huge")
    await watch.sweep()
    assert (await watch.jobs())["alice/huge"]["state"] == "LOST"


async def test_a_log_that_grows_and_the_same_name_again(iris: IrisLab, watch: Watch) -> None:
    iris.submit("alice/again", "print('of the first life')")
    iris.until("alice/again", "succeeded")
    iris.submit("alice/again", FOREVER)
    iris.until("alice/again", "running")
    await watch.add("alice/again")
    await watch.sweep()
    assert (await watch.jobs())["alice/again"]["life"] == 1
    iris.kill("alice/again")
    iris.until("alice/again", "killed")
    iris.submit("alice/again", "import time; print('second life', flush=True); time.sleep(600)")
    iris.until("alice/again", "running")
    await watch.sweep()
    job = (await watch.jobs())["alice/again"]
    assert (job["state"], job["life"], job["tracked"]) == ("RUNNING", 2, True)
    assert watch.news("alice/again") == [("restart", "LOST", "RUNNING")]
    for _ in range(100):
        log = await desk_of(watch.app).log(LogRequest("alice/again", n=10), ME)
        if log["text"]:
            break
        await watch.sweep()
    assert log["text"] == "second life\n"
    iris.kill("alice/again")


async def test_the_controller_is_restarted(iris: IrisLab, watch: Watch) -> None:
    iris.submit("alice/stays", FOREVER)
    iris.submit("alice/ended", "print('x')")
    iris.until("alice/stays", "running")
    iris.until("alice/ended", "succeeded")
    await watch.add("alice/stays", "alice/ended")
    await watch.sweep()
    birth = (await watch.jobs())["alice/stays"]["submitted_at"]
    iris.restart()
    await watch.sweep()
    jobs = await watch.jobs()
    assert (jobs["alice/stays"]["state"], jobs["alice/stays"]["submitted_at"]) == ("RUNNING", birth)
    assert watch.news("alice/stays") == []
    # Its workers went with it: some seconds later it sees that.
    iris.until("alice/stays", "worker_failed")
    await watch.sweep()
    job = (await watch.jobs())["alice/stays"]
    assert (job["state"], job["native_state"]) == ("NODE_FAIL", "worker_failed")
    assert job["diagnosis"]["cause"] == "node-failure"


async def test_down_and_then_back_without_its_records(iris: IrisLab, watch: Watch) -> None:
    iris.submit("alice/lost", FOREVER)
    iris.until("alice/lost", "running")
    await watch.add("alice/lost")
    await watch.sweep()
    iris.stop()
    for _ in range(10):
        await watch.sweep()
        job = (await watch.jobs())["alice/lost"]
        assert (job["state"], job["stale"]) == ("RUNNING", True)
    assert await watch.cluster() == "unreachable"
    iris.start()
    await watch.sweep()
    job = (await watch.jobs())["alice/lost"]
    assert (job["state"], job["reason"], job["tracked"]) == ("LOST", "record-gone", False)
    assert watch.news("alice/lost") == [("transition", "RUNNING", "LOST")]
