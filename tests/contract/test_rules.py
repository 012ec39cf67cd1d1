"""What every rule owes, whoever wrote it."""

import pytest

from jobmond import registry
from jobmond.model.state import State
from jobmond.ports import Case
from tests.unit.builders import NOW, job, unseen

RULES = list(registry.rules)


# What configurations and scripts may name.
INTERFACE = [
    "rl-collapse",
    "rl-watch",
    "nan-loss",
    "grad-explosion",
    "dead-run",
    "stall",
    "held",
    "dependency-never-satisfied",
    "deep-probe",
    "eval-stall",
    "engine-idle",
    "zombie",
    "instant-fail",
    "auth-failures",
    "dead-engine",
    "stranded-traces",
    "hung-chunk",
    "silent-wedge",
    "mass-silence",
    "completion-mismatch",
    "no-trials",
]


def test_every_rule_of_the_interface_is_there():
    assert set(INTERFACE) <= set(RULES)


@pytest.mark.parametrize("name", RULES)
class TestEveryRule:
    def test_is_called_like_its_plugin(self, name):
        assert registry.rules[name]().id == name

    def test_cites_its_source_and_prints_it(self, name):
        rule = registry.rules[name]()
        assert rule.source
        assert rule.source in rule.explain()
        assert name in rule.explain()

    @pytest.mark.parametrize("state", list(State))
    def test_says_nothing_on_an_empty_case(self, name, state):
        rule = registry.rules[name]()
        assert not list(rule.judge(Case(None, unseen(state=state), NOW)))

    def test_says_nothing_about_a_healthy_job(self, name):
        assert not list(registry.rules[name]().judge(Case(job(), job(), NOW)))
