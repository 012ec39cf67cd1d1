"""The rules that need no metrics."""

import pytest

from jobmond import registry
from jobmond.model.observation import Facts
from jobmond.model.state import Severity, State
from jobmond.ports import Case
from tests.unit.builders import NOW, job


def fired(rule, **changes):
    return list(registry.rules[rule]().judge(Case(None, job(**changes), NOW)))


def test_held():
    (signal,) = fired("held", state=State.PENDING, facts=Facts(held=True, reason="JobHeldAdmin"))
    assert (signal.rule, signal.severity, signal.action) == ("held", Severity.WATCH, "inspect")
    assert "JobHeldAdmin" in signal.title


@pytest.mark.parametrize(
    "changes",
    [
        {"state": State.PENDING, "facts": Facts(held=False, reason="Priority")},
        {"state": State.RUNNING, "facts": Facts(held=True)},
        {"state": State.CANCELLED, "facts": Facts(held=True)},
    ],
)
def test_not_held(changes):
    assert not fired("held", **changes)


def test_a_dependency_that_cannot_be_met():
    facts = Facts(reason="DependencyNeverSatisfied", dependency="afterok:7(failed)")
    (signal,) = fired("dependency-never-satisfied", state=State.PENDING, facts=facts)
    assert signal.severity is Severity.ALARM
    assert signal.evidence["dependency"] == "afterok:7(failed)"


@pytest.mark.parametrize(
    "changes",
    [
        {"state": State.PENDING, "facts": Facts(reason="Dependency")},
        {"state": State.CANCELLED, "facts": Facts(reason="DependencyNeverSatisfied")},
        {"state": State.PENDING, "facts": Facts()},
    ],
)
def test_a_dependency_that_can(changes):
    assert not fired("dependency-never-satisfied", **changes)
