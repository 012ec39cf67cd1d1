"""What a source says of an end, where the log says nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.diagnose import diagnose
from jobmond.analysis.logscan import tail_evidence
from jobmond.model.state import State

TRACE = (
    'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n'
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
)


def failed(message, *, scan=None, **more):
    return diagnose(scan, state=State.FAILED, exit_code=1, message=message, **more)


def test_the_last_words_of_a_program_tell_the_cause_without_places():
    found = failed(TRACE)
    assert found.cause == "cuda-oom"
    assert "CUDA out of memory" in found.summary
    assert (found.line, found.first_line, found.offset) == (None, None, None)


@pytest.mark.parametrize("head", ["", "Traceback\n", "some text\n\n"])
def test_an_exception_alone_is_enough(head):
    found = failed(f"{head}ValueError: nan loss\n")
    assert (found.cause, found.summary) == ("python-exception", "ValueError: nan loss")


def test_what_the_log_proves_counts_more():
    log = tail_evidence(TRACE.encode(), at_start=True)
    assert failed("ValueError: another", scan=log).cause == "cuda-oom"


@pytest.mark.parametrize("reason", ["StartError", "ContainerCannotRun"])
def test_a_reason_alone_can_name_the_cause(reason):
    found = failed(None, reason=reason)
    assert (found.cause, found.summary) == (
        "container",
        f"The container could not be started ({reason})",
    )


def test_words_that_prove_nothing_are_said_all_the_same():
    found = diagnose(None, state=State.LOST, reason="no-pods", message="exceeded quota: q\nx")
    assert (found.cause, found.summary) == ("unknown", "no-pods: exceeded quota: q x")


def test_without_words_nothing_says_why():
    assert failed(None).summary == "FAILED with exit code 1; nothing says why. No log was read."


@given(st.text(max_size=400))
def test_any_words_are_accepted(message):
    found = failed(message)
    assert found.cause
    assert len(found.summary) <= 400
