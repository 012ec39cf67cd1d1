import subprocess
import sys

import pytest

from jobmond.reports.cells import cell, centred, clip, left, width


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
