"""Reading: any bytes, any cut, windows, long logs."""

import gzip
import json
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobmond.analysis.choosing import choose, diagnose_file
from jobmond.analysis.diagnoser import Diagnoser
from jobmond.analysis.faults.catalogue import FAR_NEEDLES
from jobmond.analysis.pieces import PIECE_BYTES
from tests.unit.analysis.faults.variations import CASES, OOM, STEPS, trace

FOLDER = Path(__file__).parents[3] / "failures"
LOGS = [case.log.encode() for case in CASES]
SHORT = [log for log in LOGS if len(log) < 12_000]


def chunked(log: bytes, sizes: list[int]) -> list[bytes]:
    chunks, at, turn = [], 0, 0
    while at < len(log):
        size = sizes[turn % len(sizes)]
        chunks.append(log[at : at + size])
        at += size
        turn += 1
    return chunks


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SHORT), st.lists(st.integers(1, 3_000), min_size=1, max_size=5))
def test_any_way_of_cutting_gives_the_same_verdict(log, sizes):
    assert diagnose_file(chunked(log, sizes)) == diagnose_file([log])


PIECES = st.sampled_from(
    [
        b"Traceback (most recent call last):\n", b'  File "a.py", line 1, in f\n', b"\r", b"\n",
        b"ValueError: x\n", b"[rank1]: ", b"\0\0", b"\x1b[31m", b"\xff\xfe", b"  + Exception Group ",
        b"  | ", b"Killed\n", b"{'loss': nan, 'grad_norm': nan}\n", b"{'loss': 1.0, 'grad_norm': 2}\n",
        b"step 3/9 loss 2\n", b"exit 0\n", b"srun: error: n1: task 0: Exited with exit code 1\n",
        b"The above exception was the direct cause of the following exception:\n", b"(raylet) ",
        b"slurmstepd: error: *** JOB 1 ON n CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n",
        b"\xe2\x95\xad\xe2\x94\x80 Traceback (most recent call last) \xe2\x94\x80\xe2\x95\xae\n",
    ]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(PIECES | st.binary(max_size=24), max_size=25).map(b"".join),
    st.lists(st.integers(1, 90), min_size=1, max_size=4),
)
def test_hostile_bytes_cut_anywhere(log, sizes):
    found = diagnose_file([log])
    assert diagnose_file(chunked(log, sizes)) == found
    if found is None:
        return
    lines = log.split(b"\n")
    if found.line is not None:
        assert found.first_line is not None
        assert 1 <= found.first_line <= found.line <= len(lines)
        assert found.offset == sum(len(line) + 1 for line in lines[: found.first_line - 1])
    for text in (found.summary, *found.excerpt):
        assert text.replace("\t", "").isprintable()


@settings(max_examples=20, deadline=None)
@given(st.integers(PIECE_BYTES - 60, 3 * PIECE_BYTES), st.sampled_from([1_000, 65_536, 70_001]))
def test_a_line_that_is_too_long_hides_nothing_after_it(length, size):
    log = b"x" * length + b"\n" + trace(OOM).encode()
    found = diagnose_file(chunked(log, [size]))
    assert found is not None
    assert (found.cause, found.line, found.offset) == ("cuda-oom", 7, length + 1)


def test_what_stands_far_right_in_a_line_that_is_too_long_is_not_read_however_it_is_cut():
    log = b"y" * (PIECE_BYTES + 10) + b" slurmstepd: error: Detected 1 oom_kill event\nnext\n"
    for size in (100, 65_536, 1 << 20):
        assert diagnose_file(chunked(log, [size])) is None


def windows(log: bytes) -> list[tuple[int, int | None, bytes]]:
    """What a far side sends of a log that is too large: head, neighbourhoods of hits, tail."""
    lines = log.split(b"\n")
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    near: set[int] = set()
    for needle in FAR_NEEDLES:
        hits = [n for n, line in enumerate(lines) if needle in line]
        near.update((*hits[:4], *hits[-4:]))
    spans = [(0, 200)] + [(max(0, hit - 200), hit + 200) for hit in near]
    found: list[tuple[int, int | None, bytes]] = [
        (offsets[a], a + 1, log[offsets[a] : offsets[min(b, len(lines))]]) for a, b in sorted(spans)
    ]
    start = max(0, len(log) - 20_000)
    return [*found, (start, None, log[start:])]


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.log.gz")))
def test_windows_give_the_same_class_and_line_as_the_whole_log(name):
    log = gzip.decompress((FOLDER / name).read_bytes())
    truth = json.loads((FOLDER / name.replace(".log.gz", ".json")).read_text())
    if truth["cause"] == "grad-explosion":
        pytest.skip("needs every metric record")
    if len(log) > 300_000 and truth["cause"] is None:
        pytest.skip("the failing one of that size is enough")
    whole = diagnose_file([log])
    diagnoser = Diagnoser()
    for offset, line, data in windows(log):
        diagnoser.feed(data, offset=offset, line=line)
    found = choose(diagnoser.evidence())
    assert (found.cause if found else None) == (whole.cause if whole else None)
    if found is not None and whole is not None and found.line is not None:
        assert found.line == whole.line


def test_a_window_inside_a_file_knows_bytes_but_no_line_numbers():
    log = STEPS.encode() + trace(OOM).encode()
    diagnoser = Diagnoser()
    diagnoser.feed(log[1_000:], offset=1_000)
    found = choose(diagnoser.evidence())
    assert found is not None
    assert (found.cause, found.line, found.first_line) == ("cuda-oom", None, None)
    assert found.offset == len(STEPS.encode())


def test_memory_stays_flat():
    block = (trace("harbor.AgentTimeoutError: timed out") + STEPS + trace("KeyError: 'a'")).encode()
    tracemalloc.start()
    found = diagnose_file(block for _ in range(300))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found is not None
    assert peak < 8 * 2**20


@pytest.mark.parametrize(
    "piece",
    [
        b"\x1b[0", b"\x1b]", b"\r", b"\n", b"[rank1]: ", b"a.", b"(", b"1: ", b'  File "', b" ",
        b"Traceback (most recent call last):\n", b"error ", b"error\n", b"nan\r", b"loss nan ",
        b"[rank1]: Traceback (most recent call last):\n", b"[repeated 3x across cluster]",
        b'Traceback (most recent call last):\n  File "x", line 1, in f\n', b"    | error", b"%|",
        b"gloo Timed out waiting ", b"judge API error ", b"grad_norm 5 ", b"step 1 ", b"1/2 [3",
        b"Error: 429 ", b"FATAL:  error", b"RayTaskError(", b"'loss': ", b"==> a.log <==\n",
    ],
)  # fmt: skip
def test_hostile_length_costs_time_in_proportion(piece):
    def cost(length: int) -> float:
        log = piece * (length // len(piece))
        runs = []
        for _ in range(2):
            began = time.process_time()
            diagnose_file([log])
            runs.append(time.process_time() - began)
        return min(runs)

    small, large = cost(40_000), cost(320_000)
    # Eight times the text: linear is 8 times the work, quadratic 64 times.
    assert large < 30 * max(small, 0.004)
