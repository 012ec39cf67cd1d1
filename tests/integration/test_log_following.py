"""What is new in real files, found by a real /bin/sh and grep."""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobmond.analysis.segments import SEGMENT_BYTES, Cutter
from jobmond.backends._files import FileReader, following, prints
from jobmond.model.metrics import Segment
from jobmond.model.observation import Follow, LogAsk, LogNews, LogTail, Read, Unavailable
from jobmond.ports import Answer
from tests.doubles import ShellTransport

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
NEEDLES = (b"loss", b"Step ", b"it's")


class NoNumbers(ShellTransport):
    """A far side whose grep cannot number lines."""

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        lame = b'grep() { [ "$1" != -abF ] && command grep "$@"; }\n' + script
        return await super().run(lame, timeout_s=timeout_s, max_bytes=max_bytes)


async def look(
    path: Path,
    place: object = None,
    *,
    needles: tuple[bytes, ...] = NEEDLES,
    most: int = 1 << 30,
    transport: ShellTransport | None = None,
    **options: int,
) -> LogNews:
    found = await tail(path, Follow(place, needles, most), transport, **options)  # type: ignore[arg-type] # whatever a test says it is
    assert found.news is not None
    return found.news


async def tail(
    path: Path, follow: Follow, transport: ShellTransport | None = None, **options: int
) -> LogTail:
    reader = FileReader(transport or ShellTransport(), **options)
    ask = LogAsk("7", str(path), None, 10, follow)
    reading = (await reader.read_tails([ask], now=NOW, timeout_s=60))["7"]
    assert isinstance(reading, Read), reading
    return reading.value


def wanted(content: bytes, needles: Sequence[bytes] = NEEDLES) -> list[Segment]:
    """What reading the whole file at once gives."""
    cutter = Cutter()
    found = [s for s in cutter.feed(content) if any(n in s.raw for n in needles)]
    left = cutter.open()
    return [*found, left] if any(n in left.raw for n in needles) else found


async def test_lines_with_a_needle_and_where_they_are(tmp_path):
    path = tmp_path / "a.out"
    path.write_bytes(b"hello\nloss 1\r\rbar 1/2\rStep 7\nit's so\nlo")
    news = await look(path)
    assert news.segments == (
        Segment(6, b"loss 1"),
        Segment(22, b"Step 7"),
        Segment(29, b"it's so"),
    )
    assert not news.restarted
    assert news.behind_bytes == 0
    assert news.place["offset"] == 37  # before the `lo` that is open


async def test_what_is_open_is_shown_and_comes_again_whole(tmp_path):
    path = tmp_path / "a.out"
    path.write_bytes(b"loss 1\nloss 2")
    first = await look(path)
    assert first.segments == (Segment(0, b"loss 1"), Segment(7, b"loss 2", closed=False))
    path.write_bytes(b"loss 1\nloss 2.5\n")
    second = await look(path, first.place)
    assert second.segments == (Segment(7, b"loss 2.5"),)
    assert second.moved_bytes < 100


async def test_an_unchanged_file_costs_a_stat(tmp_path):
    path = tmp_path / "a.out"
    path.write_bytes(b"loss 1\n")
    first = await look(path)
    second = await look(path, first.place)
    assert (second.segments, second.moved_bytes, second.place) == ((), 0, first.place)


LINES = st.lists(
    st.sampled_from(
        [b"loss 1", b"", b"x", b"Step 3: a loss", b"\0bin", b"\xff\xfe", b"9:loss", b"it's"]
    ),
    max_size=12,
)
ENDS = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n"]), min_size=12, max_size=12)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=LINES, ends=ENDS, cuts=st.lists(st.integers(0, 60), max_size=3), raw=st.booleans())
async def test_wherever_looks_fall_the_same_segments_come(tmp_path, lines, ends, cuts, raw):
    content = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    path, place, closed, last = tmp_path / "a.out", None, [], []
    transport = NoNumbers() if raw else ShellTransport()
    for cut in [*sorted(cuts), len(content)]:
        path.write_bytes(content[:cut])
        news = await look(path, place, transport=transport)
        assert not news.restarted or place is None or not place["head"]
        place = news.place
        closed += [s for s in news.segments if s.closed]
        last = [s for s in news.segments if not s.closed]
    mine = [s for s in [*closed, *last] if any(n in s.raw for n in NEEDLES)]
    assert mine == wanted(content)


async def test_a_budget_is_caught_up_with_over_looks(tmp_path):
    content = b"".join(b"loss %d\n" % n for n in range(100))
    path, place, found = tmp_path / "a.out", None, []
    path.write_bytes(content)
    for _ in range(100):
        news = await look(path, place, most=64)
        found += [s for s in news.segments if s.closed]
        place = news.place
        if not news.behind_bytes:
            break
    assert found == wanted(content)


@pytest.mark.parametrize(
    "after",
    [
        b"loss 9\n",  # shorter
        b"other 1\nloss 2\nloss 3\nloss 4\n",  # longer, another beginning
        b"begin\nloss X\nloss 2\nloss 3\n",  # longer, the same beginning only
    ],
)
async def test_another_file_begins_again(tmp_path, after):
    path = tmp_path / "a.out"
    path.write_bytes(b"begin\nloss 1\nloss 2\n")
    first = await look(path)
    path.write_bytes(after)
    second = await look(path, first.place)
    assert second.restarted
    assert list(second.segments) == wanted(after)


async def test_a_file_moved_to_another_inode_goes_on(tmp_path):
    path, copy = tmp_path / "a.out", tmp_path / "b.out"
    path.write_bytes(b"loss 1\n")
    first = await look(path)
    copy.write_bytes(b"loss 1\nloss 2\n")
    copy.replace(path)
    second = await look(path, first.place)
    assert not second.restarted
    assert second.segments == (Segment(7, b"loss 2"),)


@pytest.mark.parametrize("grown", [3, 900, 1100, 5000])
async def test_a_small_file_is_known_again_when_it_has_grown(tmp_path, grown):
    """Also from shorter than what it is known by to longer than what travels of its end."""
    path = tmp_path / "a.out"
    path.write_bytes(b"loss 1\n")
    first = await look(path)
    path.write_bytes(b"loss 1\n" + b"x" * grown + b"\nloss 2\n")
    second = await look(path, first.place)
    path.write_bytes(b"loss 1\n" + b"x" * grown + b"\nloss 2\nloss 3\n")
    third = await look(path, second.place)
    assert not (second.restarted or third.restarted)
    found = [s.raw for news in (first, second, third) for s in news.segments]
    assert found == [b"loss 1", b"loss 2", b"loss 3"]


@pytest.mark.parametrize("size", [0, 1, 300, 70_000])
def test_the_sum_is_that_of_cksum(tmp_path, size):
    content = bytes(n * 7 % 251 for n in range(size))
    (tmp_path / "a").write_bytes(content)
    said = subprocess.run(["cksum"], input=content, capture_output=True, check=True).stdout
    assert prints.cksum(prints.fed(0, content), size) == said.decode().strip()


async def test_zeros_of_a_file_server_are_not_what_a_file_is_known_by(tmp_path):
    """It may tell a size whose last bytes are still on their way."""
    path = tmp_path / "a.out"
    path.write_bytes(b"loss 1\n" + b"\0" * 7)
    first = await look(path)
    path.write_bytes(b"loss 1\nloss 2\nloss 3\n")
    second = await look(path, first.place)
    assert not second.restarted
    assert second.segments == (Segment(7, b"loss 2"), Segment(14, b"loss 3"))


@pytest.mark.parametrize("lame", [False, True])
async def test_a_line_longer_than_a_window_is_skipped_window_by_window(tmp_path, lame):
    transport = NoNumbers() if lame else ShellTransport()
    path, place, found, looks = tmp_path / "a.out", None, [], 0
    path.write_bytes(b"loss 1\n" + b"y" * (5 * SEGMENT_BYTES) + b"\rloss 2\n")
    while looks < 9 and (place is None or not place["whole"]):
        news = await look(path, place, most=SEGMENT_BYTES + 100, transport=transport)
        found, place, looks = [*found, *news.segments], news.place, looks + 1
        assert not news.restarted
    assert [s.raw for s in found if b"loss" in s.raw] == [b"loss 1", b"loss 2"]
    assert looks == 5


@pytest.mark.parametrize("lame", [False, True])
async def test_a_line_without_an_end_is_got_over(tmp_path, lame):
    """It is delivered by its beginning, and what follows it is read."""
    transport = NoNumbers() if lame else ShellTransport()
    path = tmp_path / "a.out"
    giant = b"loss " + b"x" * (3 * SEGMENT_BYTES)
    path.write_bytes(b"Step 1\n" + giant)
    first = await look(path, transport=transport)
    assert [s.raw[:6] for s in first.segments] == [b"Step 1", b"loss x"]
    assert all(s.closed and len(s.raw) <= SEGMENT_BYTES for s in first.segments)
    path.write_bytes(b"Step 1\n" + giant + b"loss loss\nloss 2\n")
    second = await look(path, first.place, transport=transport)
    assert [s.raw for s in second.segments] == [b"loss 2"]


async def test_more_lines_than_may_travel_come_over_several_looks(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "SHIP_BYTES", following._LEAST_BYTES)
    content = b"".join(b"loss %090d\n" % n for n in range(9000))
    path, place, found, looks, behind = tmp_path / "a.out", None, [], 0, 1
    path.write_bytes(content)
    while behind:
        news = await look(path, place)
        behind = news.behind_bytes
        assert news.moved_bytes <= following._LEAST_BYTES
        assert not (news.restarted and place)
        found, place, looks = [*found, *news.segments], news.place, looks + 1
    assert found == wanted(content)
    assert looks > 1


async def test_a_line_longer_than_may_travel(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "SHIP_BYTES", following._LEAST_BYTES)
    path = tmp_path / "a.out"
    path.write_bytes(b"loss" + b"x" * 2 * following._LEAST_BYTES + b"loss\nloss 2\n")
    first = await look(path)
    assert [len(s.raw) for s in first.segments] == [SEGMENT_BYTES]
    second = await look(path, first.place)
    assert [s.raw for s in second.segments] == [b"loss 2"]
    assert not second.place["torn"]


async def test_all_files_share_what_may_be_looked_through(tmp_path):
    asks = []
    for n in range(3):
        (tmp_path / f"{n}.out").write_bytes(b"loss 1\n" * 100)
        asks.append(
            LogAsk(str(n), str(tmp_path / f"{n}.out"), None, 10, Follow(None, NEEDLES, 700))
        )
    reader = FileReader(ShellTransport(), scan_bytes=1000)
    found = await reader.read_tails(asks, now=NOW, timeout_s=60)
    behind = [reading.value.news.behind_bytes for reading in found.values()]  # type: ignore[union-attr] # every file is there
    assert behind == [0, 406, 700]  # the place is before the torn line
    places = [reading.value.news.place for reading in found.values()]  # type: ignore[union-attr] # every file is there
    asks = [
        replace(ask, follow=Follow(place, NEEDLES, 700))
        for ask, place in zip(asks, places, strict=True)
    ]
    found = await reader.read_tails(asks, now=NOW, timeout_s=60)
    behind = [found[str(n)].value.news.behind_bytes for n in range(3)]  # type: ignore[union-attr] # every file is there
    assert behind == [0, 112, 0]  # the one that had to wait came first


class Torn(ShellTransport):
    """Loses some of the numbered lines on the way."""

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        answer = await super().run(script, timeout_s=timeout_s, max_bytes=max_bytes)
        lost = re.sub(rb"\n(\d+):[0-9a-f]{32}\n", b"\n", answer.stdout)
        return replace(answer, stdout=lost)


class Unread(ShellTransport):
    """A file system that gives up in the middle of a file."""

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        lame = script.replace(b"exec 4>&1\n", b"exec 4>&1\nhead() { command head -c 9; }\n")
        return await super().run(lame, timeout_s=timeout_s, max_bytes=max_bytes)


@pytest.mark.parametrize("transport", [Torn(), Unread()])
async def test_news_in_part_are_no_news(tmp_path, transport):
    path = tmp_path / "a.out"
    path.write_bytes(b"loss 1\n" * 10)
    reader = FileReader(transport)
    ask = LogAsk("7", str(path), None, 0, Follow(None, NEEDLES, 1000))
    reading = (await reader.read_tails([ask], now=NOW, timeout_s=60))["7"]
    assert isinstance(reading, Unavailable)
    assert "arrived" in reading.why or "could be had" in reading.why


async def test_hostile_names_and_needles(tmp_path):
    path = tmp_path / "a b;$(touch x)'.out"
    path.write_bytes(b"$(x)`'\nloss\n")
    news = await look(path, needles=(b"$(x)`'", b"\xff"))
    assert news.segments == (Segment(0, b"$(x)`'"),)
    assert not os.path.exists("x")
