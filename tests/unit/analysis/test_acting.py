"""What may follow from a collapse: anything but a clear yes is a no."""

from dataclasses import replace

import pytest

from jobmond.analysis.acting import Leave, decided, hindrance
from jobmond.model.observation import Facts, TaskCounts
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Kind, Severity, State
from tests.unit.builders import job

COLLAPSE = Signal("rl-collapse", Severity.ALARM, "collapse", {}, step=9, last_step=9)
RUN = job(bucket=Bucket.RL)
YES = Leave(cancels=True)


def test_by_default_it_is_only_recommended():
    assert decided(RUN, COLLAPSE, Leave()) == decided(RUN, COLLAPSE, Leave())
    assert not decided(RUN, COLLAPSE, Leave()).cancel
    assert decided(RUN, COLLAPSE, Leave()).why == 'left running: on_collapse = "recommend"'


def test_with_leave_it_is_cancelled():
    assert decided(RUN, COLLAPSE, YES).cancel
    assert 'policy.on_collapse = "cancel"' in decided(RUN, COLLAPSE, YES).why


@pytest.mark.parametrize(
    ("changes", "leave", "why"),
    [
        ({"labels": frozenset({"no-kill"})}, YES, "it is labelled no-kill"),
        ({"labels": frozenset({"spike-mitigation"})}, YES, "it is labelled spike-mitigation"),
        ({}, Leave(True, "no_kill is set for lab"), "no_kill is set for lab"),
        ({"bucket": Bucket.SFT}, YES, "it is no RL job but sft"),
        ({"kind": Kind.KUBERNETES}, YES, "jobs of kubernetes are never cancelled"),
        ({"state": State.PENDING}, YES, "it is PENDING"),
        ({"stale": True}, YES, "the cluster did not answer"),
        ({"birth": None}, YES, "it is no single job"),
        ({"facts": Facts(tasks=TaskCounts(4, {}))}, YES, "it is no single job"),
    ],
)
def test_what_hinders(changes, leave, why):
    one = replace(RUN, **changes)
    assert hindrance(one, leave) == why
    assert decided(one, COLLAPSE, leave).why == f"left running: {why}"
    assert not decided(one, COLLAPSE, leave).cancel


def test_no_other_rule_cancels():
    other = replace(COLLAPSE, rule="nan-loss")
    assert not decided(RUN, other, YES).cancel
