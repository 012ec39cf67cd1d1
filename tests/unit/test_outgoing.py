"""News as they leave: JSON, masked, and cut where a receiver takes no more."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.outgoing import CUT, encoded, fitted, outgoing

LONG = "x" * 5000
DIAGNOSIS = {"cause": "python-exception", "summary": "ValueError: no", "excerpt": ["a", "b"]}

texts = st.text(max_size=400)
news = st.fixed_dictionaries(
    {
        "key": texts,
        "title": texts,
        "severity": st.sampled_from(["info", "alarm"]),
        "before": st.none() | texts,
        "after": st.none() | texts,
        "body": st.none() | st.text(max_size=3000),
        "diagnosis": st.none()
        | st.fixed_dictionaries(
            {"cause": texts, "summary": texts, "excerpt": st.lists(st.text(max_size=200))}
        ),
    }
)


def test_the_key_comes_first_and_once() -> None:
    assert encoded(outgoing({"title": "t", "key": "k"}, key="k")) == b'{"key": "k", "title": "t"}'


def test_what_json_lacks_is_a_word() -> None:
    evidence = {"loss": math.nan, "up": math.inf, "down": -math.inf, "n": 1.5, "t": (1,)}
    assert outgoing({"signal": {"evidence": evidence}}, key="k")["signal"]["evidence"] == {
        "loss": "nan",
        "up": "inf",
        "down": "-inf",
        "n": 1.5,
        "t": [1],
    }


def test_secrets_are_masked_but_not_what_is_looked_up() -> None:
    sent = outgoing({"body": "API_KEY=abc123", "ref": "c/API_KEY=abc123"}, key="API_KEY=abc123")
    assert sent == {"key": "API_KEY=abc123", "body": "API_KEY=****", "ref": "c/API_KEY=abc123"}


def test_only_ascii_that_prints_leaves() -> None:
    assert encoded({"title": "é\x1b\x7f\u202e"}) == b'{"title": "\\u00e9\\u001b\\u007f\\u202e"}'


def test_a_value_that_is_no_json() -> None:
    with pytest.raises(TypeError):
        encoded({"title": object()})


def test_what_fits_is_not_touched() -> None:
    small = {"title": "t", "body": LONG}
    assert fitted(small, len(encoded(small))) == encoded(small)


def test_the_body_is_cut_and_says_so() -> None:
    sent = fitted({"title": "t", "body": LONG, "after": "FAILED"}, 1024)
    assert len(sent) == 1024
    found = json.loads(sent)
    assert found["body"] == "x" * (found["body"].count("x")) + "… (cut)"
    assert (found["title"], found["after"]) == ("t", "FAILED")


def test_the_excerpt_is_cut_where_the_body_is_not_enough() -> None:
    long = DIAGNOSIS | {"excerpt": ["y" * 100] * 100}
    found = json.loads(fitted({"title": "t", "body": LONG, "diagnosis": long}, 1024))
    assert found["body"] == CUT
    assert found["diagnosis"]["summary"] == "ValueError: no"
    assert 5 <= len(found["diagnosis"]["excerpt"]) <= 9
    assert found["diagnosis"]["excerpt"][-1] == CUT


def test_a_title_is_never_cut() -> None:
    big = {"title": LONG, "body": LONG, "diagnosis": DIAGNOSIS}
    found = json.loads(fitted(big, 1024))
    assert found["title"] == LONG
    assert found["body"] == CUT
    assert found["diagnosis"] == DIAGNOSIS | {"excerpt": [CUT]}


@given(event=news, limit=st.integers(0, 5000))
def test_cut_anywhere(event: dict[str, object], limit: int) -> None:
    sent = fitted(event, limit)
    found = json.loads(sent)
    assert len(sent) <= max(limit, len(encoded(event)))
    assert {**found, "body": None, "diagnosis": None} == {**event, "body": None, "diagnosis": None}
    if found["body"] != event["body"]:
        assert found["body"].endswith(CUT)
        assert event["body"].startswith(found["body"].removesuffix(CUT))
    if found["diagnosis"] != event["diagnosis"]:
        kept = found["diagnosis"].pop("excerpt")
        assert found["diagnosis"] == {k: v for k, v in event["diagnosis"].items() if k != "excerpt"}
        assert kept[-1] == CUT
        assert kept[:-1] == event["diagnosis"]["excerpt"][: len(kept) - 1]
    if event["body"] is not None and len(encoded({**event, "body": CUT})) <= limit:
        assert len(sent) <= limit


@given(st.text(min_size=20, max_size=500), st.integers(60, 600))
def test_as_much_is_kept_as_fits(body: str, limit: int) -> None:
    sent = fitted({"t": "", "body": body}, limit)
    kept = json.loads(sent)["body"]
    if kept == body:
        assert len(sent) <= limit
    else:
        longer = body[: len(kept) - len(CUT) + 1]
        assert len(encoded({"t": "", "body": longer + CUT})) > limit
