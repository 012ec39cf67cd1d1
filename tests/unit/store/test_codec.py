"""Values to JSON and back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.model.job import Choices, LogEvidence
from jobmond.model.observation import Facts, TaskCounts
from jobmond.model.outcome import Diagnosis
from jobmond.model.state import Bucket, State
from jobmond.store import codec
from jobmond.store.columns import json_text

T = datetime(2026, 11, 29, 12, 0, 0, 5, tzinfo=UTC)
text = st.text()  # any character, lone surrogates too
maybe_text = st.none() | st.text(st.characters(), max_size=20)
instants = st.datetimes(timezones=st.just(UTC))
jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)

facts = st.builds(
    Facts,
    name=maybe_text,
    reason=maybe_text,
    exit_code=st.none() | st.integers(),
    submitted_at=st.none() | instants,
    elapsed_s=st.none() | st.integers(),
    held=st.booleans(),
    tasks=st.none()
    | st.builds(
        TaskCounts,
        total=st.integers(),
        by_state=st.dictionaries(st.sampled_from(State), st.integers()),
        failed=st.lists(text, max_size=3).map(tuple),
    ),
)
choices = st.builds(
    Choices,
    name=maybe_text,
    bucket=st.none() | st.sampled_from(Bucket),
    session=st.none() | st.dictionaries(text, jsons, max_size=3),
    labels_added=st.frozensets(text, max_size=3),
    owner_uid=st.none() | st.integers(),
)
logs = st.builds(
    LogEvidence, status=text, size_bytes=st.none() | st.integers(), mtime_at=st.none() | instants
)
diagnoses = st.builds(
    Diagnosis,
    cause=text,
    summary=text,
    line=st.none() | st.integers(),
    excerpt=st.lists(text).map(tuple),
)


@given(st.one_of(facts, choices, logs, diagnoses))
def test_anything_survives_the_way_to_text_and_back(value):
    written = json_text(codec.dump(value))
    assert written.isascii()
    assert codec.load(type(value), json.loads(written)) == value


def test_the_form_is_plain_and_leaves_nothing_out_but_none():
    counts = TaskCounts(3, {State.RUNNING: 2, State.FAILED: 1}, ("4711_1",))
    assert codec.dump(Facts(name="n", exit_code=0, started_at=T, tasks=counts)) == {
        "name": "n",
        "exit_code": 0,
        "started_at": "2026-11-29T12:00:00.000005+00:00",
        "held": False,
        "suspended": False,
        "tasks": {
            "total": 3,
            "by_state": {"RUNNING": 2, "FAILED": 1},
            "failed": ["4711_1"],
            "running": [],
        },
        "detailed": False,
    }
    assert codec.dump(Choices(bucket=Bucket.RL, labels_added=frozenset({"b", "a"}))) == {
        "bucket": "rl",
        "nel_command": [],
        "labels_added": ["a", "b"],
        "labels_removed": [],
    }


def test_an_instant_is_written_in_utc():
    there = timezone(timedelta(hours=-8))
    facts = Facts(ended_at=datetime(2026, 1, 1, 16, 0, tzinfo=there))
    assert codec.dump(facts)["ended_at"] == "2026-01-02T00:00:00+00:00"


def test_a_naive_instant_is_refused():
    with pytest.raises(ValueError, match="without time zone"):
        codec.dump(Facts(ended_at=datetime(2026, 1, 1)))


def test_a_field_that_came_later_has_its_default_and_one_that_left_is_passed_over():
    assert codec.load(Facts, {"name": "n", "gone": 1}) == Facts(name="n")
    assert codec.load(LogEvidence, {}) == LogEvidence()


@pytest.mark.parametrize(
    "raw", [{"tasks": {}}, {"tasks": {"total": 1, "by_state": {"ODD": 1}}}, {"ended_at": "soon"}]
)
def test_what_was_not_written_here_is_an_error(raw):
    with pytest.raises((ValueError, TypeError)):
        codec.load(Facts, raw)


@dataclass(frozen=True)
class Nested:
    by_name: Mapping[str, tuple[State, ...]]
    anything: Any = None
    inner: "Facts | None" = None


def test_annotations_nest():
    value = Nested({"a": (State.LOST,)}, {"x": [1]}, Facts(name="n"))
    assert codec.load(Nested, json.loads(json_text(codec.dump(value)))) == value


@dataclass(frozen=True)
class Odd:
    field: set[str]


def test_an_annotation_without_a_form_is_named():
    with pytest.raises(TypeError, match=r"set\[str\]"):
        codec.dump(Odd(set()))


def test_numbers_json_does_not_know():
    value = {"a": float("nan"), "b": [float("inf"), 1.5], "c": {"d": (float("-inf"),)}}
    assert json_text(value) == '{"a":"nan","b":["inf",1.5],"c":{"d":["-inf"]}}'
