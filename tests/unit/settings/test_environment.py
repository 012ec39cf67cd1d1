from datetime import timedelta

import pytest

from jobmond.errors import ConfigError
from tests.unit.settings.conftest import Read

TWO = """
[clusters.Leo-nardo]
kind = "local"
[clusters.jup]
kind = "slurm"
host = "jup.example"
"""


def test_a_variable_wins_over_the_file(read: Read) -> None:
    loaded = read('poll_interval = "10m"\nrecent = "1h"', JOBMOND_POLL_INTERVAL="5m")
    assert loaded.settings.poll_interval == timedelta(minutes=5)
    assert loaded.settings.recent == timedelta(hours=1)
    assert loaded.warnings == ()


def test_an_empty_variable_is_not_set(read: Read) -> None:
    assert read('poll_interval = "10m"', JOBMOND_POLL_INTERVAL="").settings.poll_interval == (
        timedelta(minutes=10)
    )


def test_nested_variables_join_the_tables_of_the_file(read: Read) -> None:
    loaded = read(
        TWO,
        JOBMOND_CLUSTERS__LEO_NARDO__ACTIVE="false",
        JOBMOND_CLUSTERS__JUP__HOST='["a.example", "b.example"]',
        JOBMOND_CLUSTERS__JUP__PORT="2222",
        JOBMOND_POLICY__NO_KILL="true",
    )
    assert loaded.warnings == ()
    assert not loaded.settings.clusters["Leo-nardo"].active
    assert loaded.settings.clusters["jup"].host == ("a.example", "b.example")
    assert loaded.settings.clusters["jup"].port == 2222
    assert loaded.settings.policy.no_kill


def test_the_built_in_cluster_and_sink_can_be_changed_without_a_file(read: Read) -> None:
    loaded = read(JOBMOND_CLUSTERS__LOCAL__DISCOVER="no", JOBMOND_SINKS__NEWS__PATH="/tmp/n.jsonl")
    assert not loaded.settings.clusters["local"].discover
    assert str(loaded.settings.sinks["news"].options["path"]) == "/tmp/n.jsonl"


def test_a_whole_cluster_from_variables(read: Read) -> None:
    loaded = read(JOBMOND_CLUSTERS__JUP__HOST="jup.example", JOBMOND_CLUSTERS__JUP__KIND="slurm")
    assert sorted(loaded.settings.clusters) == ["jup", "local"]
    assert loaded.settings.clusters["jup"].host == ("jup.example",)


def test_thresholds_of_rules(read: Read) -> None:
    loaded = read(
        "[rules.test-held]\nwords = ['a']",
        JOBMOND_RULES__TEST_HELD__MINUTES="5",
    )
    assert loaded.settings.rules == {"test-held": {"words": ("a",), "minutes": 5.0}}
    assert read(JOBMOND_RULES__TEST_HELD__MINUTES="5").settings.rules == {
        "test-held": {"minutes": 5.0}
    }


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("JOBMOND_POL_INTERVAL", "no such setting; nearest: JOBMOND_POLL_INTERVAL"),
        ("JOBMOND_XYZZY", "no such setting"),
        (
            "JOBMOND_CLUSTERS__JUPP__PORT",
            "no such table; nearest: JOBMOND_CLUSTERS__JUP",
        ),
        (
            "JOBMOND_CLUSTERS__JUP__PROT",
            "no such setting; nearest: JOBMOND_CLUSTERS__JUP__PORT",
        ),
        (
            "JOBMOND_DATABASE__ULR",
            "no such setting; nearest: JOBMOND_DATABASE__URL",
        ),
        (
            "JOBMOND_DATABASE",
            "database is a table; name a setting in it after two underscores",
        ),
        ("JOBMOND_POLL_INTERVAL__X", "no such setting"),
        ("JOBMOND_", "no such setting"),
    ],
)
def test_a_variable_that_means_nothing_is_a_warning(read: Read, name: str, warning: str) -> None:
    loaded = read(TWO, **{name: "1"})
    assert loaded.warnings == (f"{name} is ignored: {warning}",)
    assert loaded.settings == read(TWO).settings


def test_variables_that_are_no_settings_are_silent(read: Read) -> None:
    assert read(JOBMOND_CONFIG="/x", JOBMOND_REQUIRE_LIVE="1", JOBMONDX="1").warnings == ()


def test_an_error_names_the_variable_and_hides_its_value(read: Read) -> None:
    with pytest.raises(ConfigError) as caught:
        read(TWO, JOBMOND_CLUSTERS__JUP__PORT="hunter2")
    assert str(caught.value) == (
        "JOBMOND_CLUSTERS__JUP__PORT:"
        " expected a valid integer, unable to parse string as an integer"
    )


def test_an_unknown_kind_in_a_variable(read: Read) -> None:
    with pytest.raises(ConfigError, match=r"^JOBMOND_CLUSTERS__K__KIND: unknown kind 'slrum'"):
        read(JOBMOND_CLUSTERS__K__KIND="slrum")
