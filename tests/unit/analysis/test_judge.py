"""Signals come, stay and go."""

from dataclasses import dataclass, replace

from jobmond.analysis.judge import judged, standing
from jobmond.model.outcome import Signal
from jobmond.model.state import Severity
from jobmond.ports import Case
from tests.unit.builders import NOW, at, job


@dataclass
class Says:
    """A rule that fires with what it is given."""

    id: str
    signals: tuple = ()
    source = "a test"

    def judge(self, case):
        return self.signals

    def explain(self):
        return ""


def signal(rule="held", **more):
    return Signal(rule, Severity.WATCH, rule, {}, **more)


def judge(signals, *rules, stale=False):
    return judged(Case(None, job(signals=signals, stale=stale), NOW), rules)


def test_a_new_signal_opens_now():
    verdict = judge((), Says("held", (signal(),)))
    assert verdict.opened == (signal(opened_at=NOW),)
    assert verdict.signals == verdict.opened


def test_one_that_goes_on_keeps_when_it_began_and_its_first_step():
    known = signal(opened_at=at(-60), step=3, last_step=3)
    verdict = judge((known,), Says("held", (signal(step=9, last_step=9),)))
    assert verdict.signals == (signal(opened_at=at(-60), step=3, last_step=9),)
    assert not verdict.opened
    assert not verdict.cleared


def test_one_that_no_longer_fires_clears():
    verdict = judge((signal(opened_at=at(-60)),), Says("held"))
    assert verdict.cleared == (signal(opened_at=at(-60), cleared_at=NOW),)
    assert not standing(replace(job(), signals=verdict.signals))


def test_a_latched_one_stays_for_the_life():
    known = signal("rl-collapse", opened_at=at(-60))
    assert judge((known,), Says("rl-collapse")).signals == (known,)


def test_one_that_cleared_may_come_again():
    old = signal(opened_at=at(-60), cleared_at=at(-30))
    verdict = judge((old,), Says("held", (signal(),)))
    assert verdict.signals == (old, signal(opened_at=NOW))


def test_stale_evidence_opens_and_clears_nothing():
    known = signal(opened_at=at(-60))
    verdict = judge((known,), Says("held"), Says("x", (signal("x"),)), stale=True)
    assert (verdict.signals, verdict.opened, verdict.cleared) == ((known,), (), ())
