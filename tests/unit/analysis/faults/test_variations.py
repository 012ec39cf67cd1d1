"""Logs that were not there when the catalogue was written: does it hold in general?"""

import pytest

from jobmond.analysis.choosing import diagnose_file
from tests.unit.analysis.faults.variations import CASES, OOM, Case, trace


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_cause_and_its_line(case: Case) -> None:
    found = diagnose_file([case.log.encode()])
    wanted = {word if word != "null" else None for word in (case.cause or "null").split("|")}
    assert (found.cause if found else None) in wanted, found
    if case.says is not None:
        assert found is not None
        assert found.line is not None
        line = case.log.split("\n")[found.line - 1]
        assert any(says in line for says in case.says.split("|")), line


def test_names_are_unique_and_a_quarter_is_healthy() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert sum(case.cause is None for case in CASES) * 6 > len(CASES)


@pytest.mark.parametrize("oom", [True, False])
def test_thousands_of_benign_tracebacks_hide_no_failure_and_make_none(oom: bool) -> None:
    lines = []
    for turn in range(2_500):
        lines.append(f"(entry pid=8) 2026-03-01 10:00:00 | WARNING | Trial t-{turn} failed\n")
        said = "harbor.trial.AgentTimeoutError: Agent execution timed out after 900 s"
        if turn % 2:
            said = "harbor.llms.base.ContextLengthExceededError: Model q context length exceeded"
        lines.append(trace(said, "(entry pid=8) "))
        if turn % 50 == 0:
            lines.append(f"(entry pid=8) 2026-03-01 10:00:00 | INFO | step {turn // 50}/80\n")
    log = "".join(lines)
    found = diagnose_file([(log + (trace(OOM, "(Worker pid=9) ") if oom else "")).encode()])
    if not oom:
        assert found is None
        return
    assert found is not None
    assert (found.cause, found.line) == ("cuda-oom", log.count("\n") + 6)
