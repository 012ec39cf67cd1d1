"""Logs that were not there when the catalogue was written: does it hold in general?"""

import pytest

from jobmond.analysis.choosing import diagnose_file
from tests.unit.analysis.faults.variations import CASES, Case


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
