"""A job that is said to run while nothing of it does."""

from jobmond.model.observation import Facts
from jobmond.model.state import Severity, State
from jobmond.ports import Case
from jobmond.rules.silent_wedge import SilentWedge
from tests.unit.builders import NOW, job


def judged(*, rule=None, **changes):
    one = job(**changes)
    return list((rule or SilentWedge()).judge(Case(one, one, NOW)))


def test_once_may_be_bad_luck():
    assert judged(facts=Facts(misses=1)) == []
    assert judged(facts=Facts()) == []


def test_twice_is_worth_a_look_and_says_why():
    said = 'Error creating: pods "x" is forbidden: exceeded quota\nand more'
    (signal,) = judged(facts=Facts(misses=2, reason="FailedCreate", message=said))
    assert (signal.severity, signal.action) == (Severity.WATCH, "inspect")
    assert signal.title == (
        'no pod at 2 looks in a row: Error creating: pods "x" is forbidden: exceeded quota'
    )
    assert signal.evidence == {"misses": 2, "reason": "FailedCreate"}


def test_a_job_that_has_ended_or_was_not_seen_says_nothing():
    assert judged(state=State.LOST, facts=Facts(misses=3)) == []
    assert judged(stale=True, facts=Facts(misses=2)) == []


def test_how_often_is_a_field():
    assert judged(rule=SilentWedge(looks=3), facts=Facts(misses=2)) == []
    assert judged(rule=SilentWedge(looks=1), facts=Facts(misses=1))
