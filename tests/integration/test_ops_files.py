"""Ops files in a running daemon: read again at every sweep, of their own cluster alone."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from jobmond import registry
from jobmond.app import App, open_app
from jobmond.daemon.check import checks
from jobmond.daemon.counter import desk_of
from jobmond.errors import TransientTransportError
from jobmond.model.job import Choices, Classified
from jobmond.model.state import Bucket, Kind
from jobmond.settings import load
from tests.doubles_desk import ME
from tests.doubles_store import FixedClock
from tests.unit.builders import NOW

CONFIG = """
database.url = "sqlite:///{folder}/db"
[clusters.leo]
kind = "slurm"
host = "old"
discover = true
ops_file = ".agents/ops/leo/ops.md"
[clusters.other]
kind = "slurm"
host = "other"
[clusters.here]
kind = "local"
slurm = false
[sinks.journal]
kind = "journal"
"""


class Line:
    """An ssh transport that never gets through, and remembers how it was made."""

    made: list["Line"]

    def __init__(self, **options: Any) -> None:
        self.hosts, self.options = options["hosts"], options
        self.calls = self.logins = self.closed = 0
        type(self).made.append(self)

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Any:
        self.calls += 1
        self.logins += 1
        raise TransientTransportError("connection refused")

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Line]:
    Line.made = []
    monkeypatch.setitem(registry.transports._factories, "ssh", Line)
    return Line.made


@pytest.fixture
def ops(tmp_path: Path) -> Path:
    path = tmp_path / ".agents" / "ops" / "leo" / "ops.md"
    path.parent.mkdir(parents=True)
    path.write_text("# Nothing special\n")
    (tmp_path / "config.toml").write_text(CONFIG.format(folder=tmp_path))
    return path


def loaded(folder: Path) -> Any:
    return load(folder / "config.toml", {"HOME": str(folder)})


@pytest.fixture
async def app(tmp_path: Path, ops: Path, lines: list[Line]) -> AsyncIterator[App]:
    app = await open_app(loaded(tmp_path).settings, tmp_path, FixedClock(NOW))
    yield app
    await app.close()


async def track(app: App, cluster: str = "leo") -> None:
    await app.writer.call(
        app.store.add,
        cluster,
        Kind.SLURM,
        "4711",
        choices=Choices(),
        classified=Classified(Bucket.OTHER, "other", "r", frozenset()),
        now=NOW,
    )


async def test_a_cluster_that_is_switched_off_is_not_contacted(app, ops, lines):
    await track(app)
    assert (await app.sweep("leo")).contacted
    [leo] = [line for line in lines if line.hosts == ("old",)]
    ops.write_text("---\nactive: false\nnotes: maintenance until Tuesday\n---\n")
    calls = leo.calls
    app.clock.move(3600)
    result = await app.sweep("leo", asked=True)
    assert (result.status, result.contacted, leo.calls) == ("inactive", False, calls)
    document = await desk_of(app).status(ME)
    [job] = document["jobs"]
    assert (job["stale"], job["state"]) == (True, "PENDING")
    [shown] = [c for c in document["clusters"] if c["name"] == "leo"]
    assert (shown["status"], shown["notes"]) == ("inactive", "maintenance until Tuesday")
    ops.write_text("---\nactive: false\nnotes: until Friday\n---\n")
    await app.sweep("leo")
    document = await desk_of(app).status(ME)
    assert "until Friday" in [c["notes"] for c in document["clusters"]]
    ops.write_text("---\nactive: true\n---\n")
    assert (await app.sweep("leo")).contacted
    assert leo.closed == 0  # the same connection all along
    assert [line.hosts for line in lines] == [("old",), ("other",)]


async def test_a_cluster_that_discovers_is_looked_after_while_it_is_off(app, ops):
    ops.write_text("---\nactive: false\n---\n")
    await app.sweep("leo")
    assert await app.watched() == ["leo"]


async def test_another_host_is_another_connection_for_that_cluster_only(app, ops, lines):
    old, other = lines
    await app.sweep("other", asked=True)
    ops.write_text("---\nhost: new\nuser: carol\n---\n")
    await app.sweep("leo")
    assert [(line.hosts, line.options["user"], line.closed) for line in lines] == [
        (("old",), None, 1), (("other",), None, 0), (("new",), "carol", 0),
    ]  # fmt: skip
    assert old.calls == 0
    [info] = [c for c in desk_of(app).clusters() if c.name == "leo"]
    assert info.hosts == ("new",)
    await app.sweep("leo")
    assert len(lines) == 3
    assert app.clusters["other"].transports == (other,)


@pytest.mark.parametrize(
    "bad", ["---\nactive: maybe\n---\n", "---\nactive: false\nidentity_file: /k\n---\n", None]
)
async def test_a_bad_edit_keeps_the_last_good_one_and_is_said_once(app, ops, bad):
    ops.write_text("---\nactive: false\n---\n")
    await app.sweep("leo")
    with capture_logs() as said:
        if bad is None:
            ops.unlink()
        else:
            ops.write_text(bad)
        for _ in range(3):
            assert (await app.sweep("leo")).status == "inactive"
    [error] = [line for line in said if line["log_level"] == "error"]
    assert error["event"] == "ops file not taken, its last good state stays"
    assert error["cluster"] == "leo"
    assert str(ops) in error["error"]
    ops.write_text("---\nactive: true\n---\n")
    assert (await app.sweep("leo")).status != "inactive"


async def test_a_reload_keeps_connections_that_still_lead_to_the_same_place(app, tmp_path, lines):
    old, other = lines
    config = tmp_path / "config.toml"
    config.write_text(config.read_text().replace('host = "old"', 'host = "new"'))
    parts = await app.prepared(loaded(tmp_path).settings)
    await app.replace(parts)
    assert (old.closed, other.closed) == (1, 0)
    assert app.clusters["other"].transports == (other,)
    assert app.clusters["leo"].transports[0].hosts == ("new",)


async def test_logins_are_counted_once_whatever_is_reloaded(app, tmp_path, lines):
    other = lines[1]
    other.logins = 3
    assert app.clusters["other"].new_logins() == 3
    await app.replace(await app.prepared(loaded(tmp_path).settings))
    assert app.clusters["other"].new_logins() == 0


async def test_a_daemon_that_starts_with_a_bad_ops_file_goes_by_the_configuration(
    tmp_path, ops, lines
):
    ops.write_text("---\nactive\n---\n")
    with capture_logs() as said:
        app = await open_app(loaded(tmp_path).settings, tmp_path, FixedClock(NOW))
        assert (await app.sweep("leo", asked=True)).contacted
        await app.close()
    errors = [line["event"] for line in said if line["log_level"] == "error"]
    assert errors == ["ops file not taken, the configuration alone counts"]


async def test_check_says_what_is_wrong_and_who_is_off(tmp_path, ops, lines):
    ops.write_text("---\nactive: false\n---\n")
    found = {line.what: line for line in await checks(loaded(tmp_path), {}, offline=True)}
    assert found["cluster leo"].said == "inactive"
    ops.write_text("---\nnope: 1\n---\n")
    found = {line.what: line for line in await checks(loaded(tmp_path), {}, offline=True)}
    assert not found["ops file of leo"].fine
    assert "unknown key nope" in found["ops file of leo"].said


async def test_what_a_sweep_goes_by_is_as_the_ops_file_says_now(app, ops):
    leo = app.clusters["leo"]
    assert (leo.no_kill, leo.ckpt_dirs, leo.log_dirs, leo.benign.line("NCCL heartbeat")) == (
        False, (), (), False,
    )  # fmt: skip
    ops.write_text(
        "---\nno_kill: true\nckpt_dirs: [/scratch/ckpt]\nlog_dirs: /scratch/logs\n"
        "benign: 'NCCL heartbeat$'\n---\n"
    )
    await app.sweep("leo")
    leo, other = app.clusters["leo"], app.clusters["other"]
    assert (leo.no_kill, leo.ckpt_dirs, leo.log_dirs, leo.benign.line("NCCL heartbeat")) == (
        True, ("/scratch/ckpt",), ("/scratch/logs",), True,
    )  # fmt: skip
    assert (other.no_kill, other.ckpt_dirs, other.benign.line("NCCL heartbeat")) == (
        False, (), False,
    )  # fmt: skip


async def test_no_kill_of_the_policy_counts_everywhere(tmp_path, ops, lines):
    config = tmp_path / "config.toml"
    config.write_text(config.read_text() + "[policy]\nno_kill = true\n")
    ops.write_text("---\nno_kill: false\n---\n")
    app = await open_app(loaded(tmp_path).settings, tmp_path, FixedClock(NOW))
    assert [cluster.no_kill for cluster in app.clusters.values()] == [True, True, True]
    await app.close()
