"""The running parts with receivers that are slow, dead or busy: nothing waits for them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from jobmond.app import App, open_app
from jobmond.daemon.check import checks
from jobmond.daemon.counter import desk_of
from jobmond.desk.peer import Peer
from jobmond.reports.schema import schema
from jobmond.reports.status import status_text
from jobmond.reports.view import View
from jobmond.settings import load
from tests.doubles_desk import ME
from tests.doubles_store import FixedClock
from tests.integration.test_webhook import NOW, event
from tests.receiver import HANG, Receiver, status

LONG_S = 60.0
NAMES = ("dead", "slow", "team")


@pytest.fixture(autouse=True)
def straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the proxy that this environment may have."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def config(folder: Path, **receivers: str) -> Path:
    """Three receivers beside a file."""
    text = [
        'clusters.local = {kind = "local", slurm = false}',
        f'database.url = "sqlite:///{folder}/db"',
        f'[sinks.news]\nkind = "file"\npath = "{folder}/news.jsonl"',
    ]
    for name, url in receivers.items():
        (folder / name).write_text(url)
        (folder / name).chmod(0o600)
        text.append(f'[sinks.{name}]\nkind = "webhook"\nurl_file = "{name}"\ntimeout = "20s"')
    path = folder / "config.toml"
    path.write_text("\n".join(text))
    return path


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[App]:
    loaded = load(path, {"HOME": str(path.parent)})
    app = await open_app(loaded.settings, path.parent, FixedClock(NOW))
    try:
        yield app
    finally:
        await app.close()


async def owe(app: App, *numbers: int) -> None:
    events = [event(n) for n in numbers]
    owed = [
        type(e)(0, e.key, sink, e.body, created_at=NOW, due_at=NOW)
        for sink in app.parts.settings.sinks
        for e in events
    ]
    await app.writer.call(app.store.publish, (), owed)


async def document(app: App, peer: Peer = ME) -> dict[str, Any]:
    found = await desk_of(app).status(peer)
    jsonschema.validate(found, schema("status"))
    return found


async def test_sweeps_and_other_sinks_wait_for_nobody(tmp_path: Path) -> None:
    dead = Receiver()
    await dead.up()
    await dead.down()
    async with Receiver([HANG]) as slow, Receiver() as team:
        path = config(tmp_path, dead=dead.url, slow=slow.url, team=team.url)
        async with running(path) as app:
            await owe(app, 1, 2)
            result = await app.sweep("local")
            assert result.status == "ok"
            lines = (tmp_path / "news.jsonl").read_text().splitlines()
            assert [json.loads(line)["key"] for line in lines] == ["lab/1@100#1", "lab/1@100#2"]
            await slow.arrived.wait()
            while len(team.taken) < 2:
                await team.arrived.wait()
                team.arrived.clear()
            assert (await app.sweep("local")).status == "ok"
            assert len(slow.requests) == 1  # it still hangs, and nothing waited for it
            # Closing waits a moment for what is in hand, and cuts it off.
        assert list(team.taken) == ["lab/1@100#1", "lab/1@100#2"]
        assert slow.taken == {}
        async with running(path) as app:
            await app.deliver()
            await app.couriers.idle(timeout_s=LONG_S)
            waiting = {s["name"]: s["undelivered"] for s in (await document(app))["sinks"]}
        assert waiting == {"news": 0, "dead": 2, "slow": 0, "team": 0, "agent_log": 0}
        assert list(slow.taken) == ["lab/1@100#1", "lab/1@100#2"]


async def test_status_says_what_waits_and_what_was_lost(tmp_path: Path) -> None:
    async with (
        Receiver([status(400), status(503, Retry_After="600")]) as team,
        running(config(tmp_path, team=team.url)) as app,
    ):
        await owe(app, 1, 2, 3)
        await app.deliver()
        await app.couriers.idle(timeout_s=LONG_S)
        found = await document(app)
        await app.report()
    assert found["sinks"][1] == {
        "name": "team",
        "configured": True,
        "undelivered": 2,
        "retry_at": "2026-11-29T12:10:00Z",
        "given_up": 1,
        "given_up_at": "2026-11-29T12:00:00Z",
        "last_error": "the receiver answered 503 Service Unavailable",
    }
    assert (
        "sink team: 2 undelivered; 1 given up, the last just now:"
        " the receiver answered 503 Service Unavailable"
    ) in status_text(found, View(NOW))
    stored = json.loads((tmp_path / "report.json").read_text())
    assert stored["sinks"] == found["sinks"]


async def test_a_reload_keeps_what_is_owed_and_the_order(tmp_path: Path) -> None:
    async with Receiver([HANG]) as old, Receiver() as new:
        path = config(tmp_path, team=old.url)
        async with running(path) as app:
            await owe(app, 1, 2)
            await app.deliver()
            await old.arrived.wait()
            (tmp_path / "team").write_text(new.url)
            loaded = load(path, {"HOME": str(tmp_path)})
            await app.replace(await app.prepared(loaded.settings))
            await app.deliver()
            await app.couriers.idle(timeout_s=LONG_S)
    assert (len(old.requests), old.taken) == (1, {})
    assert list(new.taken) == ["lab/1@100#1", "lab/1@100#2"]


async def test_a_sink_that_is_not_configured_any_more_is_named(tmp_path: Path) -> None:
    async with running(config(tmp_path, team="http://127.0.0.1:9/")) as app:
        await owe(app, 1)
    async with running(config(tmp_path)) as app:
        await app.deliver()
        found = await document(app)
    assert [(s["name"], s["configured"], s["undelivered"]) for s in found["sinks"]] == [
        ("news", True, 0),
        ("agent_log", True, 0),
        ("team", False, 1),
    ]
    said = "sink team: 1 undelivered, this sink is not configured any more"
    assert said in status_text(found, View(NOW))


async def test_check_reads_the_files_and_sends_nothing(tmp_path: Path) -> None:
    async with Receiver() as good:
        path = config(tmp_path, good=good.url, open=good.url, empty="")
        (tmp_path / "open").chmod(0o644)
        loaded = load(path, {"HOME": str(tmp_path)})
        lines = {
            line.what: line for line in await checks(loaded, {"HOME": str(tmp_path)}, offline=True)
        }
    assert lines["sink good"].fine
    assert lines["sink good"].said == "webhook, nothing was sent"
    assert not lines["sink open"].fine
    assert lines["sink open"].said == (
        f"{tmp_path}/open can be read by everybody: chmod o-rwx {tmp_path}/open"
    )
    assert not lines["sink empty"].fine
    assert lines["sink empty"].said == (
        f"{tmp_path}/empty: expected one line that begins with https://"
    )
    assert good.requests == []


def test_three_receivers_are_what_the_file_says(tmp_path: Path) -> None:
    path = config(tmp_path, **dict.fromkeys(NAMES, "http://127.0.0.1:9/"))
    settings = load(path, {"HOME": str(tmp_path)}).settings
    assert [name for name, sink in settings.sinks.items() if sink.kind == "webhook"] == list(NAMES)
