"""Engines and exports, from windows of logs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.engine import engine, exported_rows
from jobmond.model.trials import Engine

POST = 'INFO:     10.0.0.1:1234 - "POST /v1/chat/completions HTTP/1.1" {} X\n'


def stats(at, running, waiting=0, number="000"):
    return (
        f"INFO 10-22 {at} [loggers.py:248] Engine {number}: Avg prompt throughput: 23.1 tokens/s, "
        f"Avg generation throughput: 0.0 tokens/s, Running: {running} reqs, "
        f"Waiting: {waiting} reqs, GPU KV cache usage: 0.2%\n"
    )


def test_nothing_of_an_engine():
    assert engine("") is None
    assert engine("142/300 Mean: 0.21\nRunning trials...\n") is None


def test_at_work():
    found = engine(stats("09:43:49", 3) + POST.format(200) + stats("09:43:59", 1))
    assert found == Engine(0.0, answered=1, refused=0)


def test_idle_since_its_last_request():
    lines = stats("09:43:49", 3) + stats("09:43:59", 0) + stats("09:53:59", 0)
    assert engine(lines).idle_s == 610


def test_an_idle_engine_falls_silent():
    lines = stats("09:43:49", 3) + stats("09:43:59", 0)
    assert engine(lines, age_s=600).idle_s == 610
    assert engine(stats("09:43:49", 3), age_s=600).idle_s == 0


def test_waiting_is_work():
    assert engine(stats("09:43:49", 0, 4)).idle_s == 0


def test_one_of_several_engines_at_work_is_enough():
    lines = stats("09:43:49", 3) + stats("09:53:49", 0) + stats("09:53:50", 2, number="001")
    assert engine(lines).idle_s == 0


def test_answers_after_the_engine_went_idle():
    lines = stats("09:43:49", 3) + stats("09:43:59", 0) + POST.format(200)
    assert engine(lines).answered_after_idle
    lines = stats("09:43:49", 3) + POST.format(200) + stats("09:43:59", 0) + POST.format(503)
    assert engine(lines) == Engine(10.0, answered=1, refused=1)


def test_over_new_year():
    lines = stats("23:59:50", 1).replace("10-22", "12-31")
    lines += stats("00:00:10", 0).replace("10-22", "01-01")
    assert engine(lines).idle_s == 20


def test_sglang():
    line = "[2026-07-14 09:00:{} TP0] Decode batch. #running-req: {}, #token: 1, #queue-req: 0\n"
    assert engine(line.format("00", 2) + line.format("30", 0)).idle_s == 30


@pytest.mark.parametrize(
    ("text", "rows"),
    [("", 0), ("[traces] Exported 8612 rows from x", 8612),
     ("[traces] Exported 1,200 rows\n" * 2, 2400),
     ("exported nothing", 0), ("[traces] Exported , rows", 0)],
)  # fmt: skip
def test_exports(text, rows):
    assert exported_rows(text) == rows


@given(st.text() | st.lists(st.sampled_from(
    [stats("09:43:49", 3), stats("99:99:99", 0), stats("09:43:49", 0), POST.format(200), "\n"]
), max_size=6).map("".join), st.floats(0, 1e6))  # fmt: skip
def test_any_window_is_accepted(window, age_s):
    found = engine(window, age_s=age_s)
    assert found is None or found.idle_s is None or found.idle_s >= 0
    assert exported_rows(window) >= 0
