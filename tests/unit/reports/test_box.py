import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from jobmond.reports.box import Column, narrowed, table

GOLDEN = Path(__file__).parents[2] / "golden"
RL = (
    Column("Job", min_width=23, least=8),
    Column("Step"),
    Column("Reward"),
    Column("Policy Loss"),
    Column("Grad Norm"),
    Column("Trend", least=5),
)
ROWS = (
    ("<run> (shaped)", "15/80", "0.619", "-0.0040", "0.006",
     "Checkpoint saved. Slight dip from 0.652"),
    ("<run> (base)", "26/80", "0.451", "-0.0930", "0.021", "Stable, gradients strong"),
)  # fmt: skip


def test_the_rl_table_is_the_known_one_byte_for_byte():
    text = "\n".join(table(RL, ROWS)) + "\n"
    assert text.encode() == (GOLDEN / "rl_table.txt").read_bytes()


@pytest.mark.parametrize("columns", [80, 60])
def test_a_table_fits_and_never_cuts_a_number(columns):
    lines = table(RL, ROWS, fit=columns)
    assert {len(line) for line in lines} == {columns} or max(map(len, lines)) <= columns
    assert all(len(line) == len(lines[0]) for line in lines)
    for number in ("15/80", "0.619", "-0.0040", "0.006", "26/80", "0.451", "-0.0930", "0.021"):
        assert any(f" {number} " in line for line in lines)


def test_the_widest_column_gives_way_first():
    lines = table([Column("A", least=4), Column("B", least=4)], [["x" * 40, "y" * 10]], fit=37)
    assert lines[3:5] == [
        "│ " + "x" * 20 + " │ " + "y" * 10 + " │",
        "│ " + "x" * 20 + " │ " + " " * 10 + " │",
    ]


def test_text_goes_over_lines_and_rules_part_the_rows():
    columns = [Column("Job", least=8, whole=13), Column("Ended"), Column("Trend", least=8)]
    rows = [
        ["arm-a leonardo/4711", "12:50", "Slight dip from 0.652"],
        ["arm-b vega/9", "13:00", "Stable"],
    ]
    assert table(columns, rows, fit=42) == [
        "┌───────────────┬───────┬────────────────┐",
        "│      Job      │ Ended │     Trend      │",
        "├───────────────┼───────┼────────────────┤",
        "│ arm-a         │ 12:50 │ Slight dip     │",
        "│ leonardo/4711 │       │ from 0.652     │",
        "├───────────────┼───────┼────────────────┤",
        "│ arm-b vega/9  │ 13:00 │ Stable         │",
        "└───────────────┴───────┴────────────────┘",
    ]


def test_titles_go_over_lines_before_words_are_broken():
    lines = table([Column("Policy Loss"), Column("Job", least=4, whole=13)],
                  [["-0.0040", "leonardo/4711"]], fit=27)  # fmt: skip
    assert lines == [
        "┌─────────┬───────────────┐",
        "│ Policy  │      Job      │",
        "│  Loss   │               │",
        "├─────────┼───────────────┤",
        "│ -0.0040 │ leonardo/4711 │",
        "└─────────┴───────────────┘",
    ]


def test_without_room_a_table_is_too_wide_rather_than_wrong():
    lines = table([Column("N"), Column("M")], [["123456789", "-0.0040"]], fit=10)
    assert "123456789" in lines[3]
    assert "-0.0040" in lines[3]


def test_no_rows_and_no_width():
    assert table([Column("Job"), Column("St")], []) == [
        "┌─────┬────┐",
        "│ Job │ St │",
        "├─────┼────┤",
        "└─────┴────┘",
    ]


def test_a_missing_value_is_a_dash_and_a_zero_a_zero():
    assert table([Column("A"), Column("B")], [[None, 0]])[3] == "│ — │ 0 │"


def test_ascii_is_ascii_whatever_the_cells_hold():
    lines = table([Column("Job"), Column("Note", least=6)], [["数据", "a→b, then more"]],
                  fit=34, ascii_only=True)  # fmt: skip
    assert lines == [
        "+--------------+----------------+",
        "|     Job      |      Note      |",
        "+--------------+----------------+",
        "| \\u6570\\u636e | a>b, then more |",
        "+--------------+----------------+",
    ]
    narrow = table([Column("Note", least=6)], [["a→b, then more"]], fit=12, ascii_only=True)
    assert narrow[3:5] == ["| a>b,     |", "| then     |"]


def harmless(lines):
    """Nothing that moves a cursor, hides or reorders; joiners hold emoji together."""
    return not any(
        unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and c not in "\u200d\ufe0f"
        for line in lines
        for c in line
    )


HOSTILE = [
    "FAILED|x",
    "TIMEOUT",
    "$(touch /tmp/p)",
    "tab\there",
    "two\nlines",
    "\x1b[31mred\x1b[0m",
    "\x9b31m",
    "\u202egnp.exe",
    "数据预处理",
    "👨‍👩‍👧 family",
    "e\u0301te\u0301",
    "\u0301lonely",
    "\u200d",
    "x\u200d",
    "1\ufe0f",
    "🇩🇪🇫🇷",
    "नमस्ते",
    "a\x00b",
    b"\xff\xfe".decode("utf-8", "backslashreplace"),
    "\udcff",
    "\uff46\uff55\uff4c\uff4c",
    "",
]


@pytest.mark.parametrize("fit", [None, 80, 60, 30])
def test_hostile_names_keep_the_table_aligned_and_the_terminal_whole(fit):
    rows = [[name, "RUNNING", name] for name in HOSTILE]
    columns = [Column("Job", least=8), Column("State"), Column("Note", least=5)]
    lines = table(columns, rows, fit=fit)
    assert len(lines) == len(HOSTILE) + 4 or fit == 30
    assert {wcswidth(line) for line in lines} == {wcswidth(lines[0])}
    assert harmless(lines)


@given(st.lists(st.lists(st.text(max_size=40), min_size=2, max_size=2), max_size=4),
       st.integers(20, 90))  # fmt: skip
def test_any_text_keeps_the_table_aligned(rows, fit):
    lines = table([Column("A", least=5), Column("B", least=5)], rows, fit=fit)
    assert {wcswidth(line) for line in lines} == {wcswidth(lines[0])}
    assert wcswidth(lines[0]) <= fit
    assert harmless(lines)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 20)), min_size=1, max_size=8),
       st.integers(0, 600))  # fmt: skip
def test_narrowing_keeps_floors_and_stops_at_the_room(pairs, room):
    widths = [max(w, f) for w, f in pairs]
    floors = [f for _, f in pairs]
    result = narrowed(widths, floors, room)
    assert all(f <= r <= w for f, r, w in zip(floors, result, widths, strict=True))
    assert sum(result) == min(sum(widths), max(room, sum(floors)))


def test_narrowing_levels_the_widest_columns():
    assert narrowed([40, 10, 30], [5, 5, 5], 50) == [20, 10, 20]
    assert narrowed([10, 10], [10, 3], 15) == [10, 5]
