"""A log that is read in windows has the verdict of the whole log."""

import gzip
from pathlib import Path

import pytest

from jobmond.analysis.choosing import diagnose_file
from tests.unit.analysis.faults.variations import CASES
from tests.unit.analysis.faults.windowing import diagnosis

FOLDER = Path(__file__).parents[3] / "failures"
NAMES = sorted(path.name.removesuffix(".log.gz") for path in FOLDER.glob("*.log.gz"))


def place(found):
    return found and (found.cause, found.line, found.first_line, found.offset)


@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_whole_log_and_its_windows_have_the_same_verdict(name, near):
    log = gzip.decompress((FOLDER / f"{name}.log.gz").read_bytes())
    assert place(diagnosis(log, near=near)) == place(diagnose_file([log]))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_short_logs_too(case):
    log = case.log.encode()
    assert place(diagnosis(log)) == place(diagnose_file([log]))
