"""Logs read where the far side is slow, poor or odd; and nobody's turn is lost to the others."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobmond.backends._files import FileReader
from jobmond.model.metrics import Segment
from jobmond.model.observation import Follow, LogAsk, LogNews, LogTail, Read, Reading
from jobmond.ports import Answer
from tests.doubles import ShellTransport

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
NEEDLES = (b"loss",)


class Shell(ShellTransport):
    """Another shell than this machine's `/bin/sh`, the script on its standard input."""

    def __init__(self, *shell: str, programs: Path | None = None, only: bool = False) -> None:
        super().__init__(programs)
        self.shell = shell
        if only:
            self.environment["PATH"] = str(programs)

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        env = self.environment
        done = subprocess.run(
            [*self.shell, "-s"], input=script, capture_output=True, env=env, check=False
        )
        return Answer(done.returncode, done.stdout, done.stderr)


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return folder


def ask(path: Path, place: object = None, *, most: int = 1 << 26, size: int = 10) -> LogAsk:
    follow = Follow(place, NEEDLES, most)  # type: ignore[arg-type] # whatever a look said it is
    return LogAsk(path.stem, str(path), None, size, follow)


async def look(reader: FileReader, *asks: LogAsk) -> Mapping[str, Reading[LogTail]]:
    return await reader.read_tails(asks, now=NOW, timeout_s=120)


async def news(reader: FileReader, one: LogAsk) -> LogNews:
    reading = (await look(reader, one))[one.native_id]
    assert isinstance(reading, Read), reading
    assert reading.value.news is not None
    return reading.value.news


def found(said: LogNews) -> list[Segment]:
    """Without what only a far side ships whose grep numbers no lines."""
    return [one for one in said.segments if b"loss" in one.raw]


SHELLS = [("dash",), ("bash",), ("bash", "--posix"), ("ksh",), ("zsh", "--emulate", "sh")]


@pytest.fixture(params=[*SHELLS, ("busybox", "sh")], ids=" ".join)
def shell(request, tmp_path) -> Shell:
    words: tuple[str, ...] = request.param
    path = shutil.which(words[0])
    if path is None:
        pytest.skip(f"no {words[0]} here")
    if words[0] != "busybox":
        return Shell(path, *words[1:])
    applets = tmp_path / "applets"  # nothing but what a small system has
    applets.mkdir()
    for name in subprocess.check_output([path, "--list"], text=True).split():
        (applets / name).symlink_to(path)
    return Shell(path, "sh", programs=applets, only=True)


async def test_any_shell_and_a_small_system(shell, tmp_path):
    path = tmp_path / "a 'b\n$(c)-\\.out"
    path.write_bytes(b"\0x\nloss 1\rno\r\nloss \xff\x002\n" + b"y" * 5000 + b"\nlo")
    reader = FileReader(shell)
    first = await news(reader, ask(path))
    assert found(first) == [Segment(3, b"loss 1"), Segment(14, b"loss \xff\x002")]
    with path.open("ab") as more:
        more.write(b"ss 3\nloss 4\n")
    second = await news(reader, ask(path, first.place))
    at = path.read_bytes().index(b"loss 3")
    assert found(second) == [Segment(at, b"loss 3"), Segment(at + 7, b"loss 4")]
    assert not second.restarted
    assert (await news(reader, ask(path, second.place))).moved_bytes == 0
    path.write_bytes(b"loss 5\n")
    third = await news(reader, ask(path, second.place))
    assert (found(third), third.restarted) == ([Segment(0, b"loss 5")], True)


async def test_a_timeout_that_knows_fewer_options(tmp_path):
    path = tmp_path / "7.out"
    path.write_bytes(b"loss 1\n")
    old = program(tmp_path / "bin", "timeout", '[ "$1" = -k ] && { echo usage >&2; exit 1; }')
    reader = FileReader(ShellTransport(old))
    assert (await news(reader, ask(path))).segments == (Segment(0, b"loss 1"),)


async def test_a_file_older_than_time_itself(tmp_path):
    path = tmp_path / "7.out"
    path.write_bytes(b"loss 1\n")
    os.utime(path, (-86400, -86400))
    reader = FileReader(ShellTransport())
    reading = (await look(reader, ask(path)))["7"]
    assert isinstance(reading, Read)
    assert reading.value.mtime_at == datetime(1969, 12, 31, tzinfo=UTC)
    assert reading.value.news is not None
    assert (await news(reader, ask(path, reading.value.news.place))).moved_bytes == 0


async def test_a_file_system_that_hangs_has_not_become_another_file(tmp_path):
    """A reading that began anew would count a life too many, and tell every alarm again."""
    path = tmp_path / "7.out"
    path.write_bytes(b"loss 1\n" * 500)
    hung = tmp_path / "hung"
    text = f"[ -e {hung} ] && exec 0</dev/null\nexec /usr/bin/cksum"
    reader = FileReader(ShellTransport(program(tmp_path / "bin", "cksum", text)))
    first = await news(reader, ask(path))
    with path.open("ab") as more:
        more.write(b"loss 2\n")
    hung.touch()
    second = await news(reader, ask(path, first.place))
    assert (second.segments, second.restarted, second.place) == ((), False, first.place)
    assert second.behind_bytes > 0
    hung.unlink()
    third = await news(reader, ask(path, first.place))
    assert third.segments == (Segment(3500, b"loss 2"),)
    assert not third.restarted


async def test_a_slow_file_system_is_read_in_smaller_pieces(tmp_path):
    """What can never be read whole in the time there is would never be read at all."""
    path = tmp_path / "7.out"
    path.write_bytes((b"x" * 1023 + b"\n") * 5000 + b"loss 1\n")
    slow = program(tmp_path / "bin", "tail", '/usr/bin/tail "$@" | head -c 3000000')
    reader = FileReader(ShellTransport(slow))
    place: object = None
    for _ in range(12):
        reading = (await look(reader, ask(path, place)))["7"]
        if isinstance(reading, Read) and reading.value.news is not None:
            place = reading.value.news.place
            if reading.value.news.segments:
                break
    else:
        pytest.fail("it never came to the end")
    assert reading.value.news.segments == (Segment(5_120_000, b"loss 1"),)


async def test_jobs_that_are_up_to_date_wait_for_nobody_s_backlog(tmp_path):
    """Forty long logs at once, and room for a few in a sweep: the others are read as ever."""
    reader = FileReader(ShellTransport(), budget_bytes=2**20)
    old = [tmp_path / f"{n}.out" for n in range(12)]
    new = [tmp_path / f"{n}.out" for n in range(12, 16)]
    places: dict[str, object] = {}
    for path in new:
        path.write_bytes(b"loss 0\n")
    for one, reading in (await look(reader, *map(ask, new))).items():
        assert isinstance(reading, Read)
        assert reading.value.news is not None
        places[one] = reading.value.news.place
    for path in old:
        path.write_bytes(b"loss 1 and some more of it\n" * 9000)
    for sweep in range(12):
        for path in new:
            with path.open("ab") as more:
                more.write(b"loss %d\n" % sweep)
        asks = [ask(p, places.get(p.stem), size=16384) for p in [*old, *new]]
        for one, reading in (await look(reader, *asks)).items():
            assert isinstance(reading, Read), (sweep, one, reading)
            assert reading.value.news is not None
            if int(one) >= 12:
                assert [s.raw for s in reading.value.news.segments] == [b"loss %d" % sweep]
            places[one] = reading.value.news.place
    assert {one for one, place in places.items() if place and place["whole"]} == {
        str(n) for n in range(16)
    }


async def test_with_room_for_few_everybody_has_a_turn(tmp_path):
    reader = FileReader(ShellTransport(), budget_bytes=300)
    paths = [tmp_path / f"{n}.out" for n in range(7)]
    for path in paths:
        path.write_bytes(b"x" * 100)
    seen: set[str] = set()
    for _ in range(3):
        asks = [LogAsk(p.stem, str(p), None, 100) for p in paths]
        found = await look(reader, *asks)
        seen |= {one for one, reading in found.items() if isinstance(reading, Read)}
    assert len(seen) == 7


async def test_news_that_waited_come_before_other_news(tmp_path):
    """With room for the backlog of one log a sweep, each of four has its turn within four."""
    reader = FileReader(ShellTransport(), budget_bytes=600_000)
    paths = [tmp_path / f"{n}.out" for n in range(4)]
    for path in paths:
        path.write_bytes(b"loss 1 and some more of it\n" * 40_000)
    places: dict[str, object] = {}
    first_seen: dict[str, int] = {}
    for sweep in range(4):
        found = await look(reader, *(ask(p, places.get(p.stem)) for p in paths))
        for one, reading in found.items():
            assert isinstance(reading, Read)
            assert reading.value.news is not None
            places[one] = reading.value.news.place or places.get(one)
            if reading.value.news.segments:
                first_seen.setdefault(one, sweep)
    assert sorted(first_seen.values()) == [0, 1, 2, 3]


async def test_answers_are_taken_apart_beside_the_event_loop(tmp_path):
    """One can hold all of the budget."""
    beside: list[object] = []

    async def offload(compute):
        beside.append(compute())
        return beside[-1]

    path = tmp_path / "7.out"
    path.write_bytes(b"loss 1\n")
    found = await look(FileReader(ShellTransport(), offload=offload), ask(path))
    assert beside == [found]
