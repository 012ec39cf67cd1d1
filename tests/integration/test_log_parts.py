"""Logs of jobs that ended badly, in parts: real files, a real /bin/sh, grep and awk."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobmond.analysis.faults.catalogue import FAR_NEEDLES
from jobmond.analysis.witnesses import witnesses
from jobmond.backends._files import FileReader, readings
from jobmond.backends._files.looking import Limits, Marks, look_script
from jobmond.model.observation import Examine, Examined, LogAsk, LogTail, Read, Unavailable
from jobmond.ports import Answer
from tests.doubles import ShellTransport

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
SMALL = Examine(
    FAR_NEEDLES, whole_bytes=1000, head_bytes=200, tail_bytes=300, around_bytes=120, hits=6
)
TRACE = (
    b"Traceback (most recent call last):\n"
    b'  File "t.py", line 3, in f\n'
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
)


async def looked(path: Path, examine: Examine, transport: object | None = None, **options: int):
    reader = FileReader(transport or ShellTransport(), **options)  # type: ignore[arg-type] # keywords of the test's own
    ask = LogAsk("7", str(path), None, 50, examine=examine)
    return (await reader.read_tails([ask], now=NOW, timeout_s=60))["7"]


async def examined(path: Path, examine: Examine = SMALL, **options: int) -> tuple[Examined, ...]:
    found = await looked(path, examine, **options)
    assert isinstance(found, Read), found
    return found.value.examined


def check(one: Examined, raw: bytes) -> None:
    """Every part is the file's, in order, apart, and its first line has the right number."""
    end = 0
    assert one.size_bytes == len(raw)
    for part in one.parts:
        assert part.offset >= end
        end = part.offset + len(part.data)
        assert raw[part.offset : end] == part.data
        assert part.line == raw.count(b"\n", 0, part.offset) + 1


def together(one: Examined) -> bytes:
    """All that was read; parts that touch run on."""
    text, end = b"", 0
    for part in one.parts:
        text += (b"" if part.offset == end else b"\n[...]\n") + part.data
        end = part.offset + len(part.data)
    return text


def long_log(middle: bytes, lines: int = 400) -> bytes:
    steps = [b"step %d fine\n" % n for n in range(lines)]
    return b"".join(steps[: lines // 2]) + middle + b"".join(steps[lines // 2 :])


async def test_a_small_log_comes_whole(tmp_path):
    raw = b"start\n" + TRACE
    (tmp_path / "a.out").write_bytes(raw)
    [one] = await examined(tmp_path / "a.out")
    check(one, raw)
    assert [part.data for part in one.parts] == [raw]


async def test_of_a_large_log_come_head_tail_and_what_stands_around_a_failure(tmp_path):
    raw = long_log(TRACE)
    (tmp_path / "a.out").write_bytes(raw)
    [one] = await examined(tmp_path / "a.out")
    check(one, raw)
    assert one.parts[0].offset == 0
    assert len(one.parts[0].data) == 200
    assert raw.endswith(one.parts[-1].data)
    assert TRACE in together(one)
    assert (len(one.parts), one.searched, one.hits) == (4, True, 2)


async def test_what_comes_once_is_read_before_what_comes_in_thousands(tmp_path):
    noise = b"".join(b"ContextLengthExceededError: %d tokens\n" % n for n in range(3000))
    raw = long_log(noise + TRACE + noise)
    (tmp_path / "a.out").write_bytes(raw)
    [one] = await examined(tmp_path / "a.out")
    check(one, raw)
    assert TRACE in together(one)
    assert sum(len(part.data) for part in one.parts) <= SMALL.most_bytes
    assert one.hits == 6002


async def test_carriage_returns_count_no_lines(tmp_path):
    bars = b"\r".join(b"train: %d%%|###|" % n for n in range(200)) + b"\n"
    raw = bars + long_log(b"") + bars + TRACE + long_log(b"")
    (tmp_path / "a.out").write_bytes(raw)
    [one] = await examined(tmp_path / "a.out")
    check(one, raw)
    assert TRACE in together(one)


async def test_logs_beside_it_are_looked_at_as_well(tmp_path):
    (tmp_path / "a.out").write_bytes(b"client\n")
    (tmp_path / "a b.err").write_bytes(TRACE)
    (tmp_path / "server-1-7-0.log").write_bytes(b"server\n")
    (tmp_path / "empty-7.log").write_bytes(b"")
    beside = (str(tmp_path / "a b.err"), str(tmp_path / "gone.err"), "server-*7*.log", "empty-*")
    found = await examined(tmp_path / "a.out", Examine(FAR_NEEDLES, beside))
    assert [(one.path, one.parts[0].data) for one in found] == [
        (str(tmp_path / "a.out"), b"client\n"),
        (str(tmp_path / "a b.err"), TRACE),
        (str(tmp_path / "server-1-7-0.log"), b"server\n"),
    ]


@pytest.mark.parametrize("name", ["$(touch x)-*7*", "a;b-*", "'q'-*", "-n*", "../*"])
async def test_a_name_runs_nothing(tmp_path, name):
    (tmp_path / "a.out").write_bytes(b"one\n")
    found = await examined(tmp_path / "a.out", Examine(FAR_NEEDLES, (name,)))
    assert found[0].path == str(tmp_path / "a.out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.out"]


async def test_a_fifo_beside_it_is_left_alone(tmp_path):
    import os

    (tmp_path / "a.out").write_bytes(b"one\n")
    os.mkfifo(tmp_path / "a-7.fifo")
    found = await examined(tmp_path / "a.out", Examine(FAR_NEEDLES, ("a-*",)))
    assert len(found) == 1


async def test_what_may_not_travel_is_no_part(tmp_path):
    raw = long_log(TRACE)
    (tmp_path / "a.out").write_bytes(raw)
    [one] = await examined(tmp_path / "a.out", budget_bytes=500)
    assert (one.parts, one.searched) == ((), False)


async def test_what_may_not_be_searched_is_said(tmp_path):
    raw = long_log(b"") + TRACE + long_log(b"")
    (tmp_path / "a.out").write_bytes(raw)
    [one] = await examined(tmp_path / "a.out", scan_bytes=2000)
    check(one, raw)
    assert not one.searched
    assert TRACE not in together(one)


async def test_without_a_grep_that_numbers_lines_head_and_tail_come(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "grep").write_text("#!/bin/sh\nexit 2\n")
    (tools / "grep").chmod(0o755)
    raw = long_log(TRACE)
    (tmp_path / "a.out").write_bytes(raw)
    found = await looked(tmp_path / "a.out", SMALL, ShellTransport(tools))
    assert isinstance(found, Read)
    [one] = found.value.examined
    check(one, raw)
    assert (len(one.parts), one.searched) == (2, False)


class Cut:
    """A connection that ends after `at` bytes of the answer."""

    logins = 0

    def __init__(self, at: int) -> None:
        self.at, self.shell = at, ShellTransport()

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        whole = await self.shell.run(script, timeout_s=timeout_s, max_bytes=max_bytes)
        return Answer(0, whole.stdout[: self.at], b"")

    async def close(self) -> None: ...


@pytest.mark.parametrize("at", [0, 200, 400, 600, 800, 1200])
async def test_an_answer_in_part_is_no_log(tmp_path, at):
    (tmp_path / "a.out").write_bytes(long_log(TRACE))
    found = await looked(tmp_path / "a.out", SMALL, Cut(at))
    assert isinstance(found, Unavailable)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.sampled_from(
            [b"\n", b"\r", b"\0", b"x" * 90, b"Error: 7", b"nan ", TRACE, b"\xff\xfe", b"Killed\n"]
        ),
        max_size=120,
    )
)
async def test_any_bytes(tmp_path, pieces):
    raw = b"".join(pieces)
    (tmp_path / "a.out").write_bytes(raw)
    found = await looked(tmp_path / "a.out", SMALL)
    assert isinstance(found, Read)
    assert found.value.tail == raw[-50:]
    if raw:
        [one] = found.value.examined
        check(one, raw)
        witnesses(found.value)


def answer(log: bytes, tmp_path: Path) -> tuple[bytes, Marks, LogAsk]:
    import subprocess

    (tmp_path / "a.out").write_bytes(log)
    marks = Marks("a" * 32, "b" * 32)
    ask = LogAsk("7", str(tmp_path / "a.out"), None, 50, examine=SMALL)
    script = look_script(marks, [ask], Limits(), timeout_s=60)
    done = subprocess.run(["/bin/sh", "-s"], input=script, capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout, marks, ask


def test_cut_anywhere_it_is_short(tmp_path):
    stdout, marks, ask = answer(long_log(TRACE), tmp_path)
    whole = readings(stdout, marks, [ask], now=NOW)["7"]
    assert isinstance(whole, Read)
    over = stdout.rindex(b" over 0\n") + len(b" over 0\n")
    for at in range(0, over, 7):
        found = readings(stdout[:at], marks, [ask], now=NOW)["7"]
        assert not isinstance(found, Read), at


def test_words_in_a_log_that_look_like_the_answers_own_are_data(tmp_path):
    mark = b"a" * 32
    odd = b"\n%b end 0\n\n%b part 0 0 9 1\n\n%b over 0\n" % (mark, mark, mark)
    raw = long_log(odd + TRACE)
    stdout, marks, ask = answer(raw, tmp_path)
    found = readings(stdout, marks, [ask], now=NOW)["7"]
    assert isinstance(found, Read)
    check(found.value.examined[0], raw)


def test_the_parts_prove_the_cause_at_its_line(tmp_path):
    raw = long_log(TRACE) + b"srun: error: n1: task 0: Exited with exit code 1\n"
    stdout, marks, ask = answer(raw, tmp_path)
    found = readings(stdout, marks, [ask], now=NOW)["7"]
    assert isinstance(found, Read)
    tail: LogTail = found.value
    [own] = witnesses(tail)
    assert own.scan.evidence is not None
    event = next(e for e in own.scan.evidence.events if e.fault.cause == "cuda-oom")
    assert event.line == raw[: raw.index(b"torch.OutOf")].count(b"\n") + 1
    assert event.offset == raw.index(b"Traceback")
    assert re.fullmatch(
        r"\d+ bytes in 4 parts \(.* was searched, \d+ lines could matter\)", own.scan.looked
    )
