"""Bytes into segments and segments into text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.segments import SEGMENT_BYTES, Cutter, bare, repeats, spoken
from jobmond.model.metrics import Segment

RAW = st.lists(st.sampled_from([b"ab", b"\r", b"\n", b"", b"\0", b"xyz"]), max_size=30).map(
    b"".join
)


def cut(raw, size=None):
    cutter = Cutter()
    pieces = [raw] if size is None else [raw[i : i + size] for i in range(0, len(raw), size)]
    return [s for piece in pieces for s in cutter.feed(piece)], cutter


def test_line_feeds_and_carriage_returns_end_segments():
    found, cutter = cut(b"ab\r\ncd\ne")
    assert found == [Segment(0, b"ab"), Segment(3, b""), Segment(4, b"cd")]
    assert cutter.open() == Segment(7, b"e", closed=False)
    assert cutter.offset == 7


@given(RAW, st.integers(1, 7))
def test_any_pieces(raw, size):
    whole, cutter = cut(raw)
    found, other = cut(raw, size)
    assert found == whole
    assert other.open() == cutter.open()


@given(RAW)
def test_nothing_is_lost_and_offsets_are_true(raw):
    found, cutter = cut(raw)
    for segment in [*found, cutter.open()]:
        assert raw[segment.offset :].startswith(segment.raw)
    assert sum(len(s.raw) + 1 for s in found) == cutter.offset


def test_going_on_from_the_offset_gives_the_same():
    raw = b"one\ntwo\rthree\nfour"
    cutter = Cutter()
    first = list(cutter.feed(raw[:10]))
    second = list(Cutter(cutter.offset).feed(raw[cutter.offset :]))
    assert first + second == cut(raw)[0]


@pytest.mark.parametrize("size", [None, 1000])
def test_a_line_without_end_costs_no_memory(size):
    raw = b"x" * (SEGMENT_BYTES + 5000) + b"\nnext\n"
    found, _ = cut(raw, size)
    assert found[0] == Segment(0, b"x" * SEGMENT_BYTES)
    assert found[1] == Segment(SEGMENT_BYTES + 5001, b"next")


@pytest.mark.parametrize(
    ("raw", "actor", "text"),
    [
        (b"plain", "", "plain"),
        (b"(TaskRunner pid=7) x", "TaskRunner pid=7", "x"),
        (b"\x1b[36m(A pid=7, ip=10.0.0.2)\x1b[0m  'k': 1,", "A pid=7, ip=10.0.0.2", " 'k': 1,"),
        (b"(pid=7, ip=10.0.0.2) x", "pid=7, ip=10.0.0.2", "x"),
        (b"(raylet) x", "raylet", "x"),
        (b"(raylet, ip=10.0.0.2) x", "raylet, ip=10.0.0.2", "x"),
        (b"(A pid=9) (EngineCore_DP0 pid=77) INFO x", "A pid=9", "INFO x"),
        (b"[rank3]: x", "", "x"),
        (b"[rank3]:[E x", "", "[E x"),
        (b"[default0]:x", "", "x"),
        (b"[jpbo-027-18:3]:x", "", "x"),
        (b"x\x1b[32m [repeated 7x across cluster]\x1b[0m", "", "x"),
        (
            b"x [repeated 7x across cluster] (Ray deduplicates logs by default. Set it, or see y)",
            "",
            "x",
        ),
        (b"throughput per GPU (TFLOP/s/GPU): 400", "", "throughput per GPU (TFLOP/s/GPU): 400"),
        (b"[2026-08-22 12:00:00.123456] iteration", "", "[2026-08-22 12:00:00.123456] iteration"),
        (b"\0\0\x1b[38;2;180;140;80mx\x1b[22m\x1b[A\x1b[2K\x1b[?25l", "", "x"),
        (b"\x1b]0;title\x07x", "", "x"),
        (b"\xe2\x96", "", "\ufffd"),
    ],
)
def test_who_said_what(raw, actor, text):
    assert spoken(raw) == (actor, text)


def test_ray_s_count():
    assert repeats(b"x\x1b[32m [repeated 7x across cluster]\x1b[0m") == 8
    assert repeats(b"x") == 1


@given(st.binary(max_size=200))
def test_any_bytes(raw):
    assert "\x1b" not in bare(raw)
    spoken(raw)
    repeats(raw)


@pytest.mark.parametrize(
    "unit", [b"\x1b", b"\x1b[", b"\x1b]", b"(A pid=1) ", b"[r0]:", b"(" * 3, b" [repeated 3x"]
)
def test_long_hostile_lines_are_read_in_linear_time(unit):
    # A quadratic pattern would take minutes here.
    spoken(unit * (SEGMENT_BYTES // len(unit)))
