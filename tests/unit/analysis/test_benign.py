"""Lines that people call noise are never a cause, and take nothing else with them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.benign import Benign
from jobmond.analysis.diagnose import diagnose
from jobmond.analysis.logscan import tail_evidence
from jobmond.model.outcome import Diagnosis
from jobmond.model.state import State

TELEMETRY = b"""\
Traceback (most recent call last):
  File "telemetry.py", line 3, in push
ConnectionError: telemetry.example is not there
"""
SHAPE = b"""\
Traceback (most recent call last):
  File "train.py", line 9, in <module>
ValueError: bad shape
"""
CHAINED = (
    TELEMETRY + b"\nDuring handling of the above exception, another exception occurred:\n\n" + SHAPE
)
NOISE = Benign.of([r"telemetry\.example"])


def said(log: bytes, benign: Benign = NOISE, *, at_start: bool = True) -> Diagnosis:
    scan = tail_evidence(log, at_start=at_start, benign=benign)
    return diagnose(scan, state=State.FAILED, exit_code=1)


@pytest.mark.parametrize("log", [TELEMETRY + b"step 2\n" + SHAPE, SHAPE + TELEMETRY, CHAINED])
def test_the_other_traceback_is_the_cause(log: bytes) -> None:
    assert said(log).summary == "ValueError: bad shape"


def test_where_nothing_else_is_left_nothing_is_known() -> None:
    found = said(b"step 1\n" + TELEMETRY)
    assert found.cause == "unknown"
    assert "(1 lines that look bad are expected)" in found.summary
    assert said(b"step 1\n" + TELEMETRY, Benign()).cause != "unknown"


@pytest.mark.parametrize(
    ("line", "expression"),
    [
        (b"torch.OutOfMemoryError: CUDA out of memory.", "CUDA out of memory"),
        (
            b"slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT x DUE TO TIME LIMIT ***",
            "^slurmste",
        ),
        (b"[rank3]: torch.OutOfMemoryError: CUDA out of memory.", r"^\[rank3\]"),
        (b"./run.sh: line 3: 4711 Killed                  python x.py", "Killed"),
        (b"{'loss': nan, 'grad_norm': nan, 'epoch': 1.0}", "loss': nan"),
        (b"\x1b[31mOSError: [Errno 28] No space left on device\x1b[0m", "No space left"),
    ],
)
def test_a_single_line_is_searched_as_it_stands(line: bytes, expression: str) -> None:
    log = b"step 1\n" + line + b"\nbye\n"
    assert said(log, Benign()).cause != "unknown"  # it could be one
    assert said(log, Benign.of([expression])).cause == "unknown"
    assert said(log, Benign.of(["something else"])) == said(log, Benign())


def test_a_traceback_whose_head_was_cut_off() -> None:
    cut = TELEMETRY.partition(b"\n")[2]
    assert said(cut, Benign(), at_start=False).cause != "unknown"
    assert said(cut, at_start=False).cause == "unknown"


def test_last_words_that_are_noise_prove_nothing_and_take_nothing_back() -> None:
    assert tail_evidence(TELEMETRY, at_start=True).proves_failure is not None
    assert tail_evidence(TELEMETRY, at_start=True, benign=NOISE).proves_failure is None
    scan = tail_evidence(
        SHAPE + b"pushing to telemetry.example failed\n", at_start=True, benign=NOISE
    )
    assert scan.proves_failure == "ValueError: bad shape"


def test_what_is_read_is_still_shown() -> None:
    scan = tail_evidence(TELEMETRY, at_start=True, benign=NOISE)
    assert scan.last_line == "ConnectionError: telemetry.example is not there"


def test_the_rest_of_a_very_long_line_is_not_searched() -> None:
    assert not Benign.of(["end$"]).line("x" * 3_000 + "end")


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", TELEMETRY, SHAPE, CHAINED]),
    st.sampled_from(["telemetry", "Error", ".", "^$", "x"]),
)
def test_any_log_and_what_matches_everything(noise: bytes, log: bytes, expression: str) -> None:
    found = said(noise + log, Benign.of([expression]))
    assert found == said(noise + log, Benign()) or expression != "x" or b"x" in noise + log
    if expression == ".":
        assert found.line is None
