"""Submit times that people write down."""

from datetime import timedelta

import pytest

from jobmond.analysis.submitted import another, before, fits
from jobmond.model.observation import Facts
from tests.unit.builders import NOW, job, unseen

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_day_either_way_is_the_same_job(sign: int) -> None:
    assert fits(NOW, NOW + sign * DAY)
    assert not fits(NOW, NOW + sign * (DAY + SECOND))


def born(**facts: object):
    return job(facts=Facts(submitted_at=NOW, **facts))


@pytest.mark.parametrize(
    ("known", "hint", "said"),
    [
        (born(), NOW - 2 * DAY, True),
        (born(), NOW + 2 * DAY, True),
        (born(), NOW - DAY, False),
        (born(), None, False),
        (job(facts=Facts()), NOW, False),
        # People know when it was submitted, not when it was queued again.
        (born(restarts=1), NOW - 20 * DAY, False),
        (job(facts=Facts(submitted_at=NOW), predecessor=3), NOW - 20 * DAY, False),
        (born(restarts=1), NOW + 2 * DAY, True),
        # Not seen yet: what is known of it is a hint as well.
        (unseen(facts=Facts(submitted_at=NOW)), NOW - 20 * DAY, False),
    ],
)
def test_which_is_another(known, hint, said):
    assert another(known, hint) is said


def test_before_is_before():
    assert before(born(), NOW - SECOND)
    assert not before(born(), NOW)
    assert not before(born(), None)
    assert not before(unseen(facts=Facts(submitted_at=NOW)), NOW - DAY)
