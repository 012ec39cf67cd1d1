"""The place of every cause is found again in its log."""

import pytest

from jobmond.analysis.choosing import choose
from jobmond.analysis.proof import proved
from jobmond.model.observation import LogPart
from tests.unit.analysis.faults.test_cases import NAMES, evidence, log


@pytest.mark.parametrize("name", NAMES)
def test_a_place_is_where_it_is_said_to_be(name):
    found = choose(evidence(name))
    if found is not None:
        assert proved(found, [LogPart(0, log(name), 1)]) == found
