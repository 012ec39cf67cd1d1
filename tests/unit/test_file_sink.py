"""News appended to a file: each once, in order, whole, whatever happens in between."""

import errno
import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jobmond.errors import SinkRefusal, SinkRetry
from jobmond.model.outcome import Delivery
from jobmond.registry import sinks
from jobmond.sinks.file import FileSink

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def news(key: str, **body: Any) -> Delivery:
    return Delivery(0, key, "news", {"key": key, **body}, created_at=NOW, due_at=NOW)


def keys(path: Path) -> list[str]:
    return [json.loads(line)["key"] for line in path.read_text("ascii").splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "news.jsonl"


async def test_lines_are_appended_in_order_to_a_private_file(path: Path) -> None:
    sink = sinks["file"](path=path)
    await sink.send([news("a", title="x"), news("b", title="y")])
    await sink.send([news("c", title="z")])
    assert path.read_text() == (
        '{"key": "a", "title": "x"}\n{"key": "b", "title": "y"}\n{"key": "c", "title": "z"}\n'
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_key_is_written_once_in_one_process_and_across_restarts(path: Path) -> None:
    sink = FileSink(path=path)
    await sink.send([news("a"), news("b")])
    await sink.send([news("b"), news("c")])
    await FileSink(path=path).send([news("a"), news("b"), news("c"), news("d")])
    assert keys(path) == ["a", "b", "c", "d"]


async def test_a_key_twice_in_one_batch_is_written_once(path: Path) -> None:
    await FileSink(path=path).send([news("a"), news("a")])
    assert keys(path) == ["a"]


async def test_after_a_restart_only_the_configured_tail_is_searched(path: Path) -> None:
    await FileSink(path=path).send([news("old"), news("pad", title="x" * 500), news("new")])
    await FileSink(path=path, tail_bytes=100).send([news("old"), news("new")])
    assert keys(path) == ["old", "pad", "new", "old"]


async def test_a_torn_last_line_does_not_swallow_the_next(path: Path) -> None:
    path.write_bytes(b'{"key": "a"}\n{"key": "b", "ti')
    await FileSink(path=path).send([news("a"), news("b")])
    assert path.read_bytes() == b'{"key": "a"}\n{"key": "b", "ti\n{"key": "b"}\n'


async def test_a_last_line_that_lacks_only_its_newline_counts_and_is_ended(path: Path) -> None:
    path.write_bytes(b'{"key": "a"}')
    await FileSink(path=path).send([news("a")])
    assert path.read_bytes() == b'{"key": "a"}\n'


async def test_foreign_lines_are_left_alone(path: Path) -> None:
    path.write_bytes(b'\xff\xfe\n[1]\n{"key": 7}\nhello\n')
    await FileSink(path=path).send([news("a")])
    assert path.read_bytes() == b'\xff\xfe\n[1]\n{"key": 7}\nhello\n{"key": "a"}\n'


async def test_a_rotated_file_is_made_anew_and_nothing_is_repeated(path: Path) -> None:
    sink = FileSink(path=path)
    await sink.send([news("a")])
    path.rename(path.with_name("news.jsonl.1"))
    await sink.send([news("a"), news("b")])
    assert keys(path) == ["b"]
    path.unlink()
    await sink.send([news("c")])
    assert keys(path) == ["c"]


async def test_a_rotation_during_a_crash_repeats_nothing(path: Path) -> None:
    await FileSink(path=path).send([news("a")])
    path.rename(path.with_name("news.jsonl.1"))
    await FileSink(path=path).send([news("a"), news("b")])
    assert keys(path) == ["b"]


async def test_a_file_emptied_in_place_is_written_from_its_beginning(path: Path) -> None:
    sink = FileSink(path=path)
    await sink.send([news("a")])
    os.truncate(path, 0)
    await sink.send([news("b")])
    assert path.read_bytes() == b'{"key": "b"}\n'


class FullDisk:
    """`os.write` of a disk with room for `room` bytes more."""

    def __init__(self, room: int, error: int = errno.ENOSPC) -> None:
        self.room = room
        self.error = error
        self._write = os.write

    def __call__(self, file: int, data: bytes) -> int:
        if not self.room:
            raise OSError(self.error, os.strerror(self.error))
        wrote = self._write(file, data[: self.room])
        self.room -= wrote
        return wrote


@pytest.mark.parametrize("room", [0, 1, 20, 40])
async def test_a_full_disk_leaves_no_half_line(
    path: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FileSink(path=path)
    await sink.send([news("a")])
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", FullDisk(room))
        with pytest.raises(SinkRetry, match="the disk is full") as error:
            await sink.send([news("b", title="x" * 30), news("c")])
    assert str(path) in str(error.value)
    assert path.read_bytes() == b'{"key": "a"}\n'
    await sink.send([news("b"), news("c")])
    assert keys(path) == ["a", "b", "c"]


async def test_a_used_up_quota_is_told_as_such(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", FullDisk(0, errno.EDQUOT))
    with pytest.raises(SinkRetry, match="quota"):
        await FileSink(path=path).send([news("a")])


async def test_a_write_that_never_reached_the_disk_is_taken_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(SinkRetry, match="Input/output error"):
            await FileSink(path=path).send([news("a")])
    assert path.read_bytes() == b""


async def test_a_path_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(SinkRetry, match="is a folder"):
        await FileSink(path=tmp_path).send([news("a")])
    with pytest.raises(SinkRetry, match="folder does not exist"):
        await FileSink(path=tmp_path / "none" / "news.jsonl").send([news("a")])
    (tmp_path / "plain").write_text("")
    with pytest.raises(SinkRetry, match="Not a directory"):
        await FileSink(path=tmp_path / "plain" / "news.jsonl").send([news("a")])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_forbidden_path_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SinkRetry, match="Permission denied"):
        await FileSink(path=tmp_path / "news.jsonl").send([news("a")])


async def test_a_fifo_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SinkRetry, match="not a regular file"):
        await FileSink(path=tmp_path / "fifo").send([news("a")])


async def test_two_writers_do_not_cut_each_other(path: Path) -> None:
    import fcntl

    path.touch()
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(SinkRetry, match="another process"):
            await FileSink(path=path).send([news("a")])
    await FileSink(path=path).send([news("a")])
    assert keys(path) == ["a"]


async def test_a_line_is_plain_json_in_ascii(path: Path) -> None:
    body = {
        "title": "訓練 \x1b[31m \x7f \u2028 \udcff",
        "metrics": {"loss": float("nan"), "a": float("inf"), "b": [float("-inf")]},
    }
    await FileSink(path=path).send([news("a", **body)])
    raw = path.read_bytes()
    assert raw.count(b"\n") == 1
    assert raw.rstrip(b"\n").decode("ascii").isprintable()
    assert json.loads(raw)["metrics"] == {"loss": "nan", "a": "inf", "b": ["-inf"]}
    assert json.loads(raw)["title"] == body["title"]


async def test_secrets_are_masked_and_names_of_things_are_not(path: Path) -> None:
    token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    said = {"excerpt": [f"export HF_TOKEN={token}"]}
    await FileSink(path=path).send([news(token, diagnosis=said, agent_log=f"/x/{token}.md")])
    assert json.loads(path.read_text()) == {
        "key": token,
        "diagnosis": {"excerpt": ["export HF_TOKEN=****"]},
        "agent_log": f"/x/{token}.md",
    }


async def test_what_is_no_json_is_refused(path: Path) -> None:
    with pytest.raises(SinkRefusal, match="news a is not JSON"):
        await FileSink(path=path).send([news("a", at=NOW)])
    assert not path.exists()
