"""What looks like a cause and is none is listed with the reason."""

from jobmond.analysis.benign import NOTHING
from jobmond.analysis.choosing import choose
from jobmond.analysis.diagnoser import Diagnoser
from jobmond.analysis.ruled import ruled_out
from jobmond.model.outcome import Diagnosis

TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
LOG = f"""\
starting
ContextLengthExceededError: 9000 > 8192 tokens, key {TOKEN}
ContextLengthExceededError: 9001 > 8192 tokens
Traceback (most recent call last):
  File "t.py", line 3, in step
    f()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
"""


def found(log: str) -> list[tuple[str, int | None, int, str]]:
    diagnoser = Diagnoser(NOTHING)
    diagnoser.feed(log.encode())
    evidence = diagnoser.evidence()
    diagnosis = choose(evidence) or Diagnosis("unknown", "nothing")
    return [(r.text[:30], r.line, r.count, r.why) for r in ruled_out(evidence, diagnosis)]


def test_what_is_expected_is_counted_at_its_first_line_and_masked():
    expected = [row for row in found(LOG) if row[3] == "expected in a run"]
    assert expected == [("ContextLengthExceededError: 90", 2, 2, "expected in a run")]
    assert TOKEN not in repr(found(LOG))


def test_the_cause_is_not_ruled_out():
    assert not any("OutOfMemory" in row[0] for row in found(LOG))


def test_a_log_in_which_nothing_looks_bad():
    assert found("step 1\nstep 2\n") == []
