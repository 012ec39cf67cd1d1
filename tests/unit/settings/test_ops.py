"""Ops files: what they may say, and what they may not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.errors import ConfigError
from jobmond.settings.clusters import LocalCluster, SlurmCluster
from jobmond.settings.ops import Ops, read_ops, with_ops

WHOLE = """---
active: false
host: [login1, login2]
user: alice
benign: 'No available shared memory'
log_dirs:
  - /scratch/logs
ckpt_dirs: [/scratch/ckpt]
no_kill: yes
notes: |
  Maintenance until Tuesday.
  Ask Bob.
---
# Leonardo

Anything at all: `ssh_key: /x`.
"""


def test_a_whole_file():
    assert read_ops(WHOLE) == Ops(
        active=False,
        host=("login1", "login2"),
        user="alice",
        benign=("No available shared memory",),
        log_dirs=("/scratch/logs",),
        ckpt_dirs=("/scratch/ckpt",),
        no_kill=True,
        notes="Maintenance until Tuesday. Ask Bob.",
    )


@pytest.mark.parametrize(
    "text", ["", "# Leonardo\n---\nactive: false\n---\n", "---\n---\n", "---\n# nothing\n...\nx"]
)
def test_no_front_matter_is_no_error(text):
    assert read_ops(text) == Ops()


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("identity_file: /k", "unknown key identity_file; "),
        ("auth_command: [rm]", "unknown key auth_command; "),
        ("sinks: {}", "unknown key sinks; "),
        ("activ: true", "unknown key activ; nearest: active"),
        ("1: 2", "unknown key 1; "),
        ("active: perhaps", "active: expected a valid boolean"),
        ("host: -oProxyCommand=x", "host[0]: not a host name: '-oProxyCommand=x'"),
        ("host: []", "host: "),
        ("user: 'a b'", "user: not a user name: 'a b'"),
        ("benign: '('", "benign[0]: not a regular expression: "),
        ("notes: [a]", "notes: expected a valid string"),
        ("- a", "the front matter is no table"),
        ("active: [", "line "),
        ("a: *b", "line 2: no YAML: found undefined alias"),
        ("a: !!python/object/apply:os.system [x]", "line 2: no YAML: could not determine"),
        ("a: 2026-99-99", "no YAML: month must be in 1..12"),
        ("a: " + "[" * 3000, "no YAML: "),
        ("notes: " + "x" * 70_000, "the front matter is longer than 65536 characters"),
    ],
)
def test_what_it_may_not_say_is_one_line(front, said):
    with pytest.raises(ConfigError) as error:
        read_ops(f"---\n{front}\n---\n")
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_a_front_matter_that_is_not_closed_is_no_empty_one():
    with pytest.raises(ConfigError, match="not closed"):
        read_ops("---\nactive: true\n")


def test_it_wins_over_the_table_and_leaves_the_rest():
    table = SlurmCluster(kind="slurm", host=("old",), user="bob", discover=True, notes="n")
    changed = with_ops(table, Ops(host=("new",), active=False))
    assert (changed.host, changed.active, changed.user, changed.notes, changed.discover) == (
        ("new",), False, "bob", "n", True,
    )  # fmt: skip
    assert with_ops(table, Ops()) is table


def test_a_cluster_without_a_host_gets_none():
    with pytest.raises(ConfigError, match="host: a cluster of kind local has none"):
        with_ops(LocalCluster(kind="local"), Ops(host=("x",)))


@given(st.text() | st.text().map(lambda text: f"---\n{text}\n---\n"))
def test_any_text_is_taken_or_refused_in_one_line(text):
    try:
        read_ops(text)
    except ConfigError as error:
        assert "\n" not in str(error)
