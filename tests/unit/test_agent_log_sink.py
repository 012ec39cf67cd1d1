"""Failure entries on disk."""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jobmond.errors import SinkRefusal, SinkRetry
from jobmond.model.outcome import Delivery
from jobmond.registry import sinks
from jobmond.sinks.agent_log import AgentLogSink

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
DAY = "2026-11-29"


def owed(path: object, text: object = "text\n") -> Delivery:
    body: dict[str, Any] = {"path": path, "text": text}
    return Delivery(0, str(path), "agent_log", body, created_at=NOW, due_at=NOW)


def an_entry(ref: str, *, birth: str = "1", name: str = "train", ended: str = "10:00") -> str:
    return (
        f'---\nref: "{ref}"\nbirth: "{birth}"\nname: "{name}"\nstate: "FAILED"\n'
        f'ended_at: "{DAY}T{ended}:00Z"\ncause: "python-exception"\n---\n\n# FAILED\n'
    )


async def test_an_entry_is_written_privately_in_the_folder_of_its_day(tmp_path: Path) -> None:
    sink = sinks["agent-log"](root=tmp_path / "agent_logs")
    await sink.send([owed(f"{DAY}/leonardo-4711-train.md", an_entry("leonardo/4711"))])
    path = tmp_path / "agent_logs" / DAY / "leonardo-4711-train.md"
    assert path.read_text() == an_entry("leonardo/4711")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(p.name for p in path.parent.iterdir()) == ["INDEX.md", path.name]


async def test_an_absolute_path_below_the_folder_is_the_same_place(tmp_path: Path) -> None:
    await AgentLogSink(root=tmp_path).send([owed(f"{tmp_path}/{DAY}/a.md")])
    assert (tmp_path / DAY / "a.md").read_text() == "text\n"


@pytest.mark.parametrize("made", ["folder", "fifo", "dangling", "unreadable"])
async def test_what_others_put_into_the_folder_holds_up_no_entry(tmp_path: Path, made: str) -> None:
    stranger = tmp_path / DAY / "notes.md"
    stranger.parent.mkdir()
    if made == "folder":
        stranger.mkdir()
    elif made == "fifo":
        os.mkfifo(stranger)
    elif made == "dangling":
        stranger.symlink_to("nowhere")
    else:
        stranger.symlink_to("/proc/self/mem")  # opens, and cannot be read from its start
    await AgentLogSink(root=tmp_path).send([owed(f"{DAY}/a.md", an_entry("c/1"))])
    index = (tmp_path / DAY / "INDEX.md").read_text()
    assert "[a.md](a.md)" in index
    assert "notes.md" not in index


async def test_an_entry_stands_where_its_index_cannot(tmp_path: Path) -> None:
    (tmp_path / DAY / "INDEX.md").mkdir(parents=True)
    await AgentLogSink(root=tmp_path).send([owed(f"{DAY}/a.md", an_entry("c/1"))])
    assert (tmp_path / DAY / "a.md").read_text() == an_entry("c/1")


async def test_writing_again_changes_nothing(tmp_path: Path) -> None:
    sink = AgentLogSink(root=tmp_path)
    entry = owed(f"{DAY}/a.md", an_entry("c/1"))
    await sink.send([entry])
    before = {p.name: p.stat().st_ino for p in (tmp_path / DAY).iterdir()}
    await sink.send([entry])
    assert {p.name: p.stat().st_ino for p in (tmp_path / DAY).iterdir()} == before


async def test_a_better_text_replaces_the_entry(tmp_path: Path) -> None:
    sink = AgentLogSink(root=tmp_path)
    await sink.send([owed(f"{DAY}/a.md", an_entry("c/1"))])
    better = an_entry("c/1") + "more\n"
    await sink.send([owed(f"{DAY}/a.md", better)])
    assert (tmp_path / DAY / "a.md").read_text() == better
    assert sorted(p.name for p in (tmp_path / DAY).iterdir()) == ["INDEX.md", "a.md"]


async def test_an_entry_about_another_incarnation_is_kept(tmp_path: Path) -> None:
    sink = AgentLogSink(root=tmp_path)
    await sink.send([owed(f"{DAY}/a.md", an_entry("c/1", birth="b:7"))])
    await sink.send([owed(f"{DAY}/a.md", an_entry("c/1", birth="b:9"))])
    assert (tmp_path / DAY / "a.md").read_text() == an_entry("c/1", birth="b:9")
    assert (tmp_path / DAY / "a@b_7.md").read_text() == an_entry("c/1", birth="b:7")


async def test_the_index_lists_the_day_from_the_entries_themselves(tmp_path: Path) -> None:
    sink = AgentLogSink(root=tmp_path)
    await sink.send(
        [
            owed(f"{DAY}/b.md", an_entry("c/2", name="x | `y` <b>", ended="11:00")),
            owed(f"{DAY}/a.md", an_entry("c/1", ended="10:00")),
        ]
    )
    (tmp_path / DAY / "note.md").write_text("somebody's own\n")
    await sink.send([owed(f"{DAY}/b.md", an_entry("c/2", name="x | `y` <b>", ended="11:00"))])
    assert (tmp_path / DAY / "INDEX.md").read_text() == (
        "# Failures of 2026-11-29\n\n"
        "| Ended (UTC) | Job | Name | State | Cause | Entry |\n"
        "|---|---|---|---|---|---|\n"
        "| 2026-11-29T10:00:00Z | c/1 | train | FAILED | python-exception | [a.md](a.md) |\n"
        "| 2026-11-29T11:00:00Z | c/2 | x \\| \\`y\\` \\<b\\> | FAILED | python-exception"
        " | [b.md](b.md) |\n"
        "| — | — | — | — | — | [note.md](note.md) |\n"
    )


@pytest.mark.parametrize(
    "path",
    [
        "../x.md",
        f"{DAY}/../x.md",
        f"{DAY}/a..b.md",
        "/etc/x.md",
        f"{DAY}/.hidden.md",
        f"{DAY}/x.txt",
        f"{DAY}/a b.md",
        f"{DAY}/a\n.md",
        f"{DAY}/INDEX.md",
        f"{DAY}/sub/a.md",
        "x.md",
        "",
        None,
        7,
    ],
)
async def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, path: object) -> None:
    with pytest.raises(SinkRefusal):
        await AgentLogSink(root=tmp_path / "logs").send([owed(path)])
    assert list(tmp_path.iterdir()) == []


async def test_a_body_without_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SinkRefusal, match="no text"):
        await AgentLogSink(root=tmp_path).send([owed(f"{DAY}/a.md", None)])


async def test_a_folder_that_cannot_be_made_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file in the way")
    with pytest.raises(SinkRetry, match="logs"):
        await AgentLogSink(root=tmp_path / "logs").send([owed(f"{DAY}/a.md")])


async def test_a_crash_before_the_rename_leaves_the_old_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = AgentLogSink(root=tmp_path)
    await sink.send([owed(f"{DAY}/a.md", "old\n")])

    def fails(file: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(SinkRetry, match="No space left"):
            await sink.send([owed(f"{DAY}/a.md", "new\n")])
    assert (tmp_path / DAY / "a.md").read_text() == "old\n"
    assert [p.name for p in (tmp_path / DAY).iterdir() if "tmp" in p.name] == []


async def test_a_link_in_the_way_of_the_draft_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / DAY).mkdir()
    target = tmp_path / "precious"
    target.write_text("keep")
    (tmp_path / DAY / f".a.md.{os.getpid()}.tmp").symlink_to(target)
    with pytest.raises(SinkRetry):
        await AgentLogSink(root=tmp_path).send([owed(f"{DAY}/a.md")])
    assert target.read_text() == "keep"
