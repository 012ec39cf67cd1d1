"""A log that is read in windows has the verdict of the whole log."""

import gzip
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobmond.analysis.choosing import choose, diagnose_file
from jobmond.analysis.faults.catalogue import FAR_NEEDLES
from jobmond.analysis.scout import Scout, Spot
from jobmond.analysis.windows import LIMITS, Limits, Span, Window, spans, window, windowed
from tests.unit.analysis.faults import shapes, shapes_more
from tests.unit.analysis.faults.variations import CASES, ELASTIC, EXIT_1, OOM, trace
from tests.unit.analysis.faults.windowing import NARROW, diagnosis, evidence, scouted

FOLDER = Path(__file__).parents[3] / "failures"
NAMES = sorted(path.name.removesuffix(".log.gz") for path in FOLDER.glob("*.log.gz"))
CHATTER = "".join(
    f"(Engine pid={n}) INFO 07-14 09:10:00 [loggers.py:248] Engine 000: throughput: 12.5 tokens/s\n"
    for n in range(700)
)
# Said before a job begins, in few lines: no needle looks for them in the middle of a large log.
NEVER_IN_THE_MIDDLE = {"argparse-required", "sbatch", "apptainer", "k8s-exit-code", "evicted"}
# The words that all is done stand further from the end than these narrow windows reach.
WORDS_BEFORE_THE_END = {"shutdown-after-done", "helper-killed-after-end", "ray-teardown"}


def place(found):
    return found and (found.cause, found.line, found.first_line, found.offset)


@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_whole_log_and_its_windows_have_the_same_verdict(name, near):
    if name == "training-hf5_sft_gradexplode" and not near:
        pytest.skip("gradients between windows are followed where metrics are read")
    log = gzip.decompress((FOLDER / f"{name}.log.gz").read_bytes())
    assert place(diagnosis(log, near=near)) == place(diagnose_file([log]))


@pytest.mark.parametrize(
    "case", (*CASES, *shapes.CASES, *shapes_more.CASES), ids=lambda case: case.name
)
def test_short_logs_too(case):
    log = case.log.encode()
    assert place(diagnosis(log)) == place(diagnose_file([log]))


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.name not in NEVER_IN_THE_MIDDLE | WORDS_BEFORE_THE_END],
    ids=lambda case: case.name,
)
def test_far_from_both_ends(case):
    log = (CHATTER + case.log + CHATTER).encode()
    assert place(diagnosis(log)) == place(diagnose_file([log]))


def expected_noise(turns: int, *, steps: bool = True) -> str:
    """What an agentic run says of trials that ran out of time or context."""
    lines = []
    for turn in range(turns):
        said = "harbor.trial.AgentTimeoutError: Agent execution timed out after 900 s"
        if turn % 2:
            said = "harbor.llms.base.ContextLengthExceededError: Model q context length exceeded"
        lines.append(f"(entry pid=8) 2026-03-01 10:00:00 | WARNING | Trial t-{turn} failed\n")
        lines.append(trace(said, "(entry pid=8) "))
        if steps and turn % 50 == 0:
            lines.append(f"(entry pid=8) 2026-03-01 10:00:00 | INFO | step {turn // 50}/80\n")
    return "".join(lines)


@pytest.mark.parametrize("near", [True, False])
def test_thousands_of_expected_tracebacks_cost_no_window(near):
    log = expected_noise(2_000).encode()
    scout = scouted(log, near=near)
    assert scout.spots() == ()
    assert scout.benign == 2_000
    assert diagnosis(log, near=near) is None


@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("after", ["", CHATTER, CHATTER + EXIT_1])
def test_one_failure_among_thousands_of_expected_tracebacks(near, after):
    noise = expected_noise(1_500)
    log = (noise + trace(OOM, "(Worker pid=9) ") + after).encode()
    found = diagnosis(log, near=near)
    assert found is not None
    assert (found.cause, found.line) == ("cuda-oom", noise.count("\n") + 6)


def test_many_failures_that_the_job_survived_are_left_out():
    lines = []
    for step in range(900):
        lines.append(trace("RuntimeError: reward server returned 503", "(w pid=8) "))
        lines.append(f"2026-03-01 10:00:00 | INFO | step {step}/900 | loss 2.1\n")
    lines += [
        f"2026-03-01 10:00:00 | INFO | step {step}/999 | loss 2.1\n" for step in range(900, 950)
    ]
    log = "".join(lines).encode()
    assert scouted(log).spots() == ()
    assert diagnosis(log) is None


def test_what_is_read_is_bounded_whatever_the_log_holds():
    lines = (trace(f"ValueError: bad row {n}", f"[rank{n}]: ") for n in range(3_000))
    log = ("\n".join(lines) + CHATTER * 3).encode()
    scout = scouted(log)
    read = spans(scout, len(log), NARROW)
    assert [(a.start, a.end) for a in read] == sorted((a.start, a.end) for a in read)
    assert all(a.end <= b.start for a, b in pairwise(read))
    assert (read[0].start, read[0].end) == (0, NARROW.head_bytes)
    assert (read[-1].start, read[-1].end) == (len(log) - NARROW.tail_bytes, len(log))
    assert sum(a.end - a.start for a in read[1:-1]) <= NARROW.middle_bytes
    assert place(diagnosis(log)) == place(diagnose_file([log])) == ("python-exception", 6, 1, 0)


def test_ranks_that_all_fail_at_the_end_of_a_noisy_run_are_blamed_on_the_first():
    noise = expected_noise(400)
    ranks = "".join(trace(OOM, f"[rank{n}]: ") for n in range(32))
    log = (CHATTER + noise + ranks + ELASTIC + CHATTER).encode()
    assert place(diagnosis(log)) == place(diagnose_file([log]))


PARTS = [
    CHATTER[:4_000],
    CHATTER[:20_000],
    expected_noise(24, steps=False),
    "".join(f"2026-03-01 10:00:{n:02} | INFO | step {n}/900 | loss 2.1\n" for n in range(40)),
    trace("RuntimeError: reward server returned 503", "(w pid=8) "),
    "(w pid=8) 10:00:00 | WARNING | caught RuntimeError: x, retrying in 1 s\n",
    trace(OOM),
    trace("KeyError: 'prompt'", "[rank3]: "),
    ELASTIC,
    "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have "
    "been OOM Killed.\n",
    "{'loss': nan, 'grad_norm': nan}\n",
    "{'loss': 2.1, 'grad_norm': 0.4}\n" * 30,
    "comm_wait=12 nanoseconds dataset=finance_qa\n",
    "".join(f"\r{n:3}%|#2   | {n}/99 [00:12<01:30,  1.01s/it]" for n in range(90)),
    "note: core dumped is disabled\n",
]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, len(PARTS) - 1), max_size=12))
def test_any_order_of_things(order):
    log = "".join(PARTS[place] for place in order).encode()
    whole, found = diagnose_file([log]), diagnosis(log)
    assert (found and found.cause) == (whole and whole.cause)
    if whole is not None and found is not None:
        assert found.line == whole.line


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.binary(max_size=40) | st.integers(0, len(PARTS) - 1), max_size=8),
    st.integers(1, 9_000),
    st.integers(0, 9_000),
)
def test_any_bytes_in_windows_of_any_size(parts, size, tail):
    log = b"".join(PARTS[p].encode() if isinstance(p, int) else p for p in parts)
    limits = Limits(0, size, tail, size, 4 * size)
    found = choose(evidence(log, limits))
    if found is None or found.line is None:
        return
    lines = log.split(b"\n")
    assert found.first_line is not None
    assert 1 <= found.first_line <= found.line <= len(lines)


def test_line_numbers_are_unknown_where_nobody_counted():
    log = CHATTER.encode() + trace(OOM).encode()
    start = len(log) - 3_000
    found = choose(windowed([Window(0, log[:500]), Window(start, log[start:])]))
    assert found is not None
    assert (found.cause, found.line) == ("cuda-oom", None)
    assert found.offset == len(CHATTER)


def test_a_small_log_is_one_span():
    assert spans(Scout(), 4_000) == (Span(0, 4_000),)
    assert spans(Scout(), 0) == (Span(0, 0),)


def test_a_window_holds_two_hundred_lines_before_and_after():
    log = b"".join(b"line %d\n" % n for n in range(1, 1_001))
    at = log.index(b"line 500\n")
    found = window(Span(1_000, 9_000, (Spot(at, 500),)), log[1_000:9_000])
    lines = found.data.split(b"\n")
    assert (lines[0], found.line) == (b"line 300", 300)
    assert lines[-2] == b"line 699"
    assert log[found.offset :].startswith(b"line 300\n")


def test_a_far_side_looks_for_few_fixed_strings():
    assert len(FAR_NEEDLES) <= 24
    assert all(len(needle) >= 3 and b"\n" not in needle for needle in FAR_NEEDLES)
    assert LIMITS.head_bytes + LIMITS.tail_bytes + LIMITS.middle_bytes <= LIMITS.whole_bytes
