"""Whole logs as the tools print them: class and line, alone and with what the scheduler says."""

import pytest

from jobmond.analysis.choosing import Word, choose, diagnose_file
from jobmond.analysis.diagnoser import diagnose_chunks
from jobmond.model.outcome import Diagnosis
from jobmond.model.state import State
from tests.unit.analysis.faults import shapes, shapes_more
from tests.unit.analysis.faults.variations import Case

CASES = (*shapes.CASES, *shapes_more.CASES)


def check(case: Case, found: Diagnosis | None) -> None:
    assert (found.cause if found else None) in (case.cause or "").split("|") or (
        found is None and case.cause is None
    ), found
    if case.says is None or found is None:
        return
    assert found.line is not None
    line = case.log.split("\n")[found.line - 1]
    assert any(says in line for says in case.says.split(" || ")), line


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_from_the_log_alone(case):
    check(case, diagnose_file([case.log.encode()]))


@pytest.mark.parametrize("case", [c for c in CASES if c.cause], ids=lambda case: case.name)
def test_with_the_word_that_it_failed(case):
    check(case, choose(diagnose_chunks([case.log.encode()]), Word(State.FAILED, 1)))


@pytest.mark.parametrize("case", [c for c in CASES if not c.cause], ids=lambda case: case.name)
def test_with_the_word_that_all_went_well(case):
    check(case, choose(diagnose_chunks([case.log.encode()]), Word(State.COMPLETED, 0)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("size", [61, 4_000])
def test_where_the_reads_are_cut_changes_nothing(case, size):
    log = case.log.encode()
    chunks = [log[at : at + size] for at in range(0, len(log), size)]
    assert diagnose_file(chunks) == diagnose_file([log])


def test_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES)
