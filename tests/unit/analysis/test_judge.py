"""Signals come, stay and go."""

from dataclasses import dataclass, replace

import pytest

from jobmond.analysis.judge import Judged, Steps, carried, judged, judged_steps, standing
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


COLLAPSED = signal("rl-collapse", opened_at=at(-60), step=3, last_step=4)
WATCHED = signal("rl-watch", opened_at=at(-60), step=3, last_step=4)


def stepped(*known, fired=(), newest=9, labels=(), **more):
    steps = Steps({s.rule: s for s in fired}, newest, **more)
    return judged_steps(replace(job(), signals=known, labels=frozenset(labels)), steps, now=NOW)


def test_rules_over_steps_are_not_asked_by_a_sweep():
    assert judge((COLLAPSED,), Says("held")).signals == ()
    assert carried(replace(job(), signals=(COLLAPSED, signal()))).signals == (COLLAPSED,)


def test_a_latched_one_stays_for_the_life():
    assert stepped(COLLAPSED) == Judged((COLLAPSED,))


def test_it_ends_with_the_life():
    gone = replace(COLLAPSED, cleared_at=NOW)
    assert stepped(COLLAPSED, same_life=False) == Judged((gone,), cleared=(gone,))


def test_the_next_life_may_raise_it_again_in_the_same_sweep():
    again = signal("rl-collapse", step=7, last_step=9)
    verdict = stepped(COLLAPSED, fired=[again], same_life=False)
    gone, fresh = replace(COLLAPSED, cleared_at=NOW), replace(again, opened_at=NOW)
    assert verdict == Judged((gone, fresh), (fresh,), (gone,))


def test_a_later_firing_moves_the_last_step_only():
    again = replace(signal("rl-collapse", step=8, last_step=8), title="another")
    assert stepped(COLLAPSED, fired=[again]) == Judged((replace(COLLAPSED, last_step=8),))


def test_one_that_is_not_latched_goes_with_a_step_without_it():
    gone = replace(WATCHED, cleared_at=NOW)
    assert stepped(WATCHED) == Judged((gone,), cleared=(gone,))


def test_but_not_when_nothing_new_was_logged():
    assert stepped(WATCHED, newest=None) == Judged((WATCHED,))


def test_what_came_and_went_between_two_sweeps_is_told_only_where_it_is_latched():
    passing = [signal(rule, step=6, last_step=7) for rule in ("rl-watch", "nan-loss")]
    assert [s.rule for s in stepped(fired=passing).opened] == ["nan-loss"]


@pytest.mark.parametrize(
    ("labels", "logged", "recovers"),
    [
        (["spike-mitigation"], range(1, 15), True),  # 5 to 14: ten steps without it
        (["spike-mitigation"], range(1, 14), False),
        ([], range(1, 100), False),
    ],
)
def test_a_run_that_is_meant_to_have_spikes_recovers_after_ten_clean_steps(
    labels, logged, recovers
):
    verdict = stepped(COLLAPSED, labels=labels, logged=list(logged))
    assert [s.recovered_at for s in verdict.signals] == [NOW if recovers else None]
    assert len(verdict.recovered) == recovers
    assert (
        not stepped(*verdict.signals, labels=labels, logged=list(logged)).recovered or not recovers
    )


def test_another_spike_after_that_is_no_recovery():
    known = replace(COLLAPSED, recovered_at=at(-30))
    again = signal("rl-collapse", step=8, last_step=9)
    verdict = stepped(known, fired=[again], labels=["spike-mitigation"], logged=[8, 9])
    assert verdict.signals == (replace(COLLAPSED, last_step=9),)


def test_one_that_cleared_may_come_again():
    old = signal(opened_at=at(-60), cleared_at=at(-30))
    verdict = judge((old,), Says("held", (signal(),)))
    assert verdict.signals == (old, signal(opened_at=NOW))


def test_stale_evidence_opens_and_clears_nothing():
    known = signal(opened_at=at(-60))
    verdict = judge((known,), Says("held"), Says("x", (signal("x"),)), stale=True)
    assert (verdict.signals, verdict.opened, verdict.cleared) == ((known,), (), ())
