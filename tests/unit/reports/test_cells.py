import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.reports.cells import cell, centred, clip, left, width, wrap


@pytest.mark.parametrize(
    ("text", "columns", "clipped"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("abcdef", 1, "…"),
        ("abcdef", 0, ""),
        ("数据预处理", 5, "数据…"),
        ("数据预处理", 4, "数…"),  # half a character is none
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("👨‍👩‍👧👨‍👩‍👧", 3, "👨‍👩‍👧…"),
    ],
)
def test_clipping_cuts_between_characters(text, columns, clipped):
    assert clip(text, columns) == clipped


def test_widths_are_columns():
    assert width("abc") == 3
    assert width("数据") == 4
    assert width("👨‍👩‍👧") == 2
    assert width("a—…→") == 4


def test_an_odd_rest_goes_to_the_right():
    assert centred("Step", 7) == " Step  "
    assert left("数", 4) == "数  "


def test_controls_are_written_out_and_loose_joiners_dropped():
    assert cell("a\x1b[31m\tb") == r"a\x1b[31m\tb"
    assert cell("x\u200d") == "x"
    assert cell("\u0301a") == "a"
    assert cell(True) == "True"


def test_a_monstrous_cell_is_cut_before_it_is_measured():
    assert width(cell("数" * 1_000_000)) <= 8000


def test_width_tables_are_loaded_only_for_text_that_needs_them():
    code = (
        "import sys\n"
        "from jobmond.reports.box import Column, table\n"
        "table([Column('Job')], [['—'], ['15/80 → …']])\n"
        "sys.exit('wcwidth' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("text", "columns", "lines"),
    [
        ("Stable", 10, ["Stable"]),
        ("Slight dip from 0.652", 10, ["Slight dip", "from 0.652"]),
        ("a  b", 2, ["a", "b"]),
        ("leonardo/4711", 10, ["leonardo/", "4711"]),
        ("rl__qwen3-8b__swe", 8, ["rl__", "qwen3-8b", "__swe"]),
        ("at -0.0040, then", 7, ["at", "-0.0040", ", then"]),
        ("1.2e-05", 4, ["1.2e", "-05"]),  # no other way
        ("x" * 7, 3, ["xxx", "xxx", "x"]),
        ("数据预处理", 4, ["数据", "预处", "理"]),
        ("数据", 1, ["数", "据"]),  # wider than there is room, but whole
        ("", 5, [""]),
    ],
)
def test_wrapping(text, columns, lines):
    assert wrap(text, columns) == lines


def test_a_cell_has_only_so_many_lines():
    lines = wrap("one two three four five six", 5, most=3)
    assert lines == ["one", "two", "…"]
    assert wrap("a b c d e f g", 3, most=2) == ["a b", "c …"]


@given(st.text(max_size=200), st.integers(2, 40))
def test_wrapped_text_fits_and_is_all_there(text, columns):
    shown = cell(text)
    lines = wrap(shown, columns, most=1000)
    assert all(width(line) <= columns for line in lines)
    assert "".join(lines).replace(" ", "") == shown.replace(" ", "")


@given(st.lists(st.floats(-1e6, 1e6).map(lambda v: f"{v:.4f}"), max_size=12), st.integers(14, 40))
def test_numbers_that_fit_are_never_broken(numbers, columns):
    words = [word for line in wrap(" ".join(numbers), columns) for word in line.split()]
    assert words == numbers
