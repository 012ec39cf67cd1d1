"""Every plugin goes by one name, whether its module was imported or only listed."""

import pytest

from jobmond import registry
from jobmond.registry import Registry

KINDS = [registry.rules, registry.sinks, registry.backends, registry.transports]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
class TestEveryKind:
    def test_what_is_listed_is_what_there_is(self, kind):
        listed = kind.offered()
        assert tuple(kind) == listed

    def test_every_listed_plugin_can_be_had(self, kind):
        for name in kind.offered():
            assert kind.offers(name)
            assert callable(kind[name])


def test_the_sinks_are_these():
    assert registry.sinks.offered() == ("agent-log", "file", "journal", "registry-file", "webhook")


@pytest.mark.parametrize("name", ["http", "kube"])
def test_what_carries_no_scripts_is_no_transport(name):
    assert not registry.transports.offers(name)
    with pytest.raises(KeyError):
        registry.transports[name]


@pytest.mark.parametrize("name", ["agent_log", "nobody", ""])
def test_another_spelling_is_another_name(name):
    assert not registry.sinks.offers(name)
    with pytest.raises(KeyError):
        registry.sinks[name]


def test_a_name_that_no_module_stands_for_is_refused():
    fresh = Registry("sink", "jobmond.sinks")
    with pytest.raises(ValueError, match="'team_chat': write the name with hyphens"):
        fresh.plugin("team_chat")
