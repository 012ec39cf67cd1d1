from pathlib import Path
from typing import Any

import pytest

from jobmond.daemon import check
from jobmond.daemon.check import Line, checks, sinks, storage
from jobmond.model.observation import Poll
from jobmond.model.state import Kind
from jobmond.settings import Loaded, Settings
from jobmond.store.store import Store
from jobmond.sweep.cluster import Cluster


class Source:
    """A source that gives one answer."""

    discovers = False

    def __init__(self, answer: Poll) -> None:
        self.answer = answer
        self.polls = 0

    async def poll(self, asks: object, **limits: object) -> Poll:
        self.polls += 1
        return self.answer


def _settings(tmp_path: Path, **tables: Any) -> Settings:
    url = f"sqlite:///{tmp_path}/state/jobmond.db"
    return Settings(database={"url": url}, agent_logs=tmp_path / "entries", **tables)


def _by_name(lines: Any) -> dict[str, Line]:
    return {line.what: line for line in lines}


async def _checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: Poll, *, offline: bool = False
) -> tuple[dict[str, Line], Source]:
    """Checks of one cluster that answers and of two that are not asked."""
    source: Any = Source(answer)
    logs: Any = object()
    cluster = Cluster("leonardo", "slurm", {Kind.SLURM: source}, logs, ())

    async def built(self: object, tables: object) -> dict[str, Cluster]:
        return {"leonardo": cluster}

    monkeypatch.setattr(check.Builder, "all", built)
    settings = _settings(
        tmp_path,
        clusters={
            "leonardo": {"kind": "slurm", "host": "h"},
            "off": {"kind": "slurm", "host": "h", "active": False},
            "k8s": {"kind": "kubernetes"},
        },
        sinks={"journal": {"kind": "journal"}},
    )
    lines = await checks(Loaded(settings, None, ()), {}, offline=offline)
    return _by_name(lines), source


async def test_everything_has_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines, source = await _checked(monkeypatch, tmp_path, Poll({}))
    assert list(lines) == [
        "configuration",
        "database",
        "database file",
        "state folder",
        "agent_logs",
        "sink journal",
        "cluster leonardo",
        "cluster off",
        "cluster k8s",
    ]
    assert [line.what for line in lines.values() if not line.fine] == ["cluster k8s"]
    assert lines["cluster leonardo"].said == "answers, 0 jobs of its users seen"
    assert lines["cluster off"].said == "inactive"
    assert source.polls == 1
    assert list(tmp_path.iterdir()) == []


async def test_offline_contacts_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines, source = await _checked(monkeypatch, tmp_path, Poll({}), offline=True)
    assert source.polls == 0
    assert lines["cluster leonardo"] == Line("cluster leonardo", True, "not contacted (--offline)")


async def test_trouble_names_what_helps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trouble = Poll({}, trouble="h: permission denied", needs_login=True, remedy="ssh h")
    lines, _ = await _checked(monkeypatch, tmp_path, trouble)
    said = "h: permission denied (try: ssh h)"
    assert lines["cluster leonardo"] == Line("cluster leonardo", False, said)


def test_a_database_in_use_is_looked_at_all_the_same(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    (tmp_path / "state").mkdir()
    store = Store.open(settings.database.url)
    try:
        lines = _by_name(storage(settings, tmp_path / "state"))
    finally:
        store.close()
    assert lines["database"].fine
    assert lines["database file"].said.endswith("only its owner can read it")


def test_a_database_that_cannot_be_used_fails(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/jobmond.db").write_text("no database at all, only text " * 50)
    line = _by_name(storage(_settings(tmp_path), tmp_path / "state"))["database"]
    assert not line.fine
    assert "is not a database" in line.said


def test_a_database_that_others_can_read_fails(tmp_path: Path) -> None:
    database = tmp_path / "state/jobmond.db"
    database.parent.mkdir()
    database.touch()
    database.chmod(0o640)
    line = _by_name(storage(_settings(tmp_path), database.parent))["database file"]
    assert line == Line(
        "database file", False, f"{database} is open to others: chmod 600 {database}"
    )


def test_a_network_file_system_is_said_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "network_file_system", lambda path: "nfs4")
    line = _by_name(storage(_settings(tmp_path), tmp_path))["file system of the database"]
    assert line.fine
    assert line.said.startswith("nfs4, a network file system: one process at a time")


def test_a_folder_that_is_not_ours_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a/b/news.jsonl"
    settings = Settings(sinks={"news": {"kind": "file", "path": path}})
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write everywhere
    said = f"{path.parent} cannot be written by this user"
    assert list(sinks(settings)) == [Line("sink news", False, said)]


def test_a_sink_that_cannot_be_written_fails(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    places = {"new": "new/news.jsonl", "bad": "folder", "worse": "file/news.jsonl", "old": "file"}
    settings = Settings(
        sinks={name: {"kind": "file", "path": tmp_path / p} for name, p in places.items()}
    )
    assert [(line.what, line.fine) for line in sinks(settings)] == [
        ("sink new", True),
        ("sink bad", False),
        ("sink worse", False),
        ("sink old", True),
    ]


def test_registry_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text('[{"id": "1"}]')
    (tmp_path / "cut.json").write_text('[{"id": "1"')
    (tmp_path / "odd.json").write_text('[{"id": "1"}, {}]')
    settings = _settings(tmp_path, registry_files=[f"{tmp_path}/*.json", f"{tmp_path}/none"])
    lines = _by_name(check.registry_files(settings))
    said = {Path(name.removeprefix("registry file ")).name: one for name, one in lines.items()}
    assert {name: one.fine for name, one in said.items()} == {
        "good.json": True, "cut.json": False, "odd.json": False,
    }  # fmt: skip
    assert said["good.json"].said == "1 entries"
    assert said["cut.json"].said.startswith("not JSON: line 1")
    assert said["odd.json"].said == "entry 2: it has no id"


@pytest.mark.parametrize(
    ("version", "fine", "said"),
    [
        ("nemo_evaluator_launcher: 0.2.6", True, "nel-of-this-test"),
        ("nel, version 0.4.0", False, "another program"),
    ],
)
async def test_the_nel_that_is_configured_is_looked_at(
    tmp_path: Path, version: str, fine: bool, said: str
) -> None:
    program = tmp_path / "nel-of-this-test"
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    program.chmod(0o755)
    settings = _settings(
        tmp_path, nel={"command": [str(program)]}, clusters={"here": {"kind": "local"}}
    )
    lines = _by_name(await checks(Loaded(settings, None, ()), {}, offline=True))
    assert lines["nel"].fine is fine
    assert said in lines["nel"].said


async def test_without_a_nel_nothing_is_said_of_it(tmp_path: Path) -> None:
    settings = _settings(tmp_path, clusters={"here": {"kind": "local"}})
    lines = _by_name(await checks(Loaded(settings, None, ()), {}, offline=True))
    assert "nel" not in lines
