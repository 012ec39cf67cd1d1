"""The journal writes whole lines, and a full disk under it ends nothing."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobmond.daemon.journal import Lines
from tests.needs import need


@pytest.fixture
def full() -> Iterator[int]:
    need(Path("/dev/full").exists(), "/dev/full is missing")
    descriptor = os.open("/dev/full", os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


def test_a_line_is_written_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    Lines(descriptor).info("level=info event=ready")
    Lines(descriptor, strict=True).error("lone \udc80 surrogate")
    assert path.read_text() == "level=info event=ready\nlone \\udc80 surrogate\n"
    os.close(descriptor)


def test_without_room_it_goes_on(full: int) -> None:
    Lines(full).error("said in vain")


def test_news_that_cannot_be_written_are_told_again_later(full: int) -> None:
    with pytest.raises(OSError, match="No space left"):
        Lines(full, strict=True).error("news")


def test_a_reader_that_left_ends_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    Lines(writer).warning("said in vain")
    os.close(writer)
