"""Bodies and queries are read once, strictly."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.desk.requests import (
    AddRequest,
    CloseRequest,
    EventsRequest,
    HistoryRequest,
    LocalExit,
    LocalStart,
    LogRequest,
    SweepRequest,
    Wish,
    read_all_flag,
    read_change,
    read_job_word,
    read_refs,
)
from jobmond.errors import ConfigError
from jobmond.model.state import Bucket, Kind

BOOT = "0b9c6a3e-2f2e-4c55-9e0a-5b1b3f1f6c11"


def test_add_in_full():
    body = {
        "ids": ["4711", "4712", "4711"],
        "kind": "slurm",
        "cluster": "leonardo",
        "name": "日本 🎉",
        "description": "two\nlines",
        "labels": ["no-kill", "agentic"],
        "bucket": "rl",
        "type": "rl",
        "run": "grid",
        "user": "alice",
        "log": "/scratch/a b.out",
        "submitted_at": "2026-11-29T19:00:00+01:00",
    }
    assert AddRequest.read(body) == AddRequest(
        ids=("4711", "4712"),
        kind=Kind.SLURM,
        cluster="leonardo",
        wish=Wish(
            name="日本 🎉",
            description="two\nlines",
            bucket=Bucket.RL,
            type="rl",
            run="grid",
            user="alice",
            log_path="/scratch/a b.out",
            labels_add=frozenset({"no-kill", "agentic"}),
        ),
        submitted_at=datetime(2026, 11, 29, 18, tzinfo=UTC),
    )


def test_secrets_in_what_people_call_a_job_are_masked():
    body = {"ids": ["1"], "name": "x token=abcdef12", "run": "password=a1", "description": "-"}
    wish = AddRequest.read(body).wish
    assert (wish.name, wish.run, wish.description) == ("x token=****", "password=****", "-")


def test_null_is_not_given():
    assert AddRequest.read({"ids": ["1"], "kind": None, "labels": None}) == AddRequest(("1",))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "must be a JSON object, not a list"),
        ("x", "not text"),
        (None, "not null"),
        ({}, "ids is missing"),
        ({"ids": []}, "ids is empty"),
        ({"ids": "4711"}, "ids must be a list, not text"),
        ({"ids": [4711]}, r"ids\[0\] must be text, not a number"),
        ({"ids": [True]}, r"ids\[0\] must be text, not true or false"),
        ({"ids": [" "]}, r"ids\[0\] is empty"),
        ({"ids": ["x" * 513]}, "longer than 512"),
        ({"ids": ["1"] * 10_001}, "more than 10000"),
        ({"ids": ["a\nb"]}, r"control character: 'a\\nb'"),
        ({"ids": ["a\x1b[2J"]}, "control character"),
        ({"ids": ["a\x00"]}, "control character"),
        ({"ids": ["\ud800"]}, "control character"),
        ({"ids": ["1"], "labls": []}, "unknown key 'labls'; nearest: 'labels'"),
        ({"ids": ["1"], "kind": "slrum"}, "unknown kind 'slrum'; nearest: 'slurm'"),
        ({"ids": ["1"], "kind": 3}, "kind must be one of slurm"),
        ({"ids": ["1"], "bucket": "zz"}, "one of rl, sft, datagen, eval, other"),
        ({"ids": ["1"], "labels": ["+x"]}, "a word of letters"),
        ({"ids": ["1"], "labels": ["a b"]}, "a word of letters"),
        ({"ids": ["1"], "user": "-u root"}, "a user name"),
        ({"ids": ["1"], "user": "$(id)"}, "a user name"),
        ({"ids": ["1"], "log": "x.out"}, "an absolute path"),
        ({"ids": ["1"], "log": "/x\n/etc"}, "control character"),
        ({"ids": ["1"], "submitted_at": "yesterday"}, "must be a time like"),
        ({"ids": ["1"], "submitted_at": "2026-11-29T18:00:00"}, "lacks its offset"),
        ({"ids": ["1"], "submitted_at": "0001-01-01T00:00:00+14:00"}, "must be a time like"),
        ({"ids": ["1"], "submitted_at": 5}, "must be a time like"),
    ],
)
def test_bad_adds_say_what_is_wrong(body, said):
    with pytest.raises(ConfigError, match=said):
        AddRequest.read(body)


def test_change():
    assert read_change({"labels_add": ["no-kill"], "bucket": "sft"}) == Wish(
        bucket=Bucket.SFT, labels_add=frozenset({"no-kill"})
    )
    with pytest.raises(ConfigError, match="nothing to change"):
        read_change({})
    with pytest.raises(ConfigError, match="'x' is both added and removed"):
        read_change({"labels_add": ["x"], "labels_remove": ["x"]})
    with pytest.raises(ConfigError, match="unknown key 'user'"):
        read_change({"user": "bob"})


def test_sweep():
    assert SweepRequest.read({}) == SweepRequest(None, False)
    assert SweepRequest.read({"cluster": "a", "wait": True}) == SweepRequest("a", True)
    with pytest.raises(ConfigError, match="wait must be true or false, not a number"):
        SweepRequest.read({"wait": 1})


def test_close_and_refs():
    assert CloseRequest.read({"verdict": "no-kill"}) == CloseRequest("no-kill", None)
    with pytest.raises(ConfigError, match="unknown verdict 'nokill'; nearest: 'no-kill'"):
        CloseRequest.read({"verdict": "nokill"})
    assert read_refs({"refs": ["a/1", "a/1"]}) == ("a/1",)


def test_local_start():
    start = LocalStart.read({"pid": 4711, "birth": "123", "boot_id": BOOT, "command": "sh -c x"})
    assert (start.pid, start.start_ticks, start.boot_id) == (4711, 123, BOOT)
    for bad in ({"pid": 0}, {"pid": True}, {"pid": 2**31}, {"birth": -1}, {"boot_id": "a:b"}):
        with pytest.raises(ConfigError):
            LocalStart.read({"pid": 1, "birth": 1, "boot_id": BOOT, **bad})


def test_local_exit_has_a_code_or_a_signal():
    body = {"ref": "local/pid-1", "ended_at": "2026-11-29T18:00:00Z"}
    assert LocalExit.read({**body, "exit_code": 0}).exit_code == 0
    assert LocalExit.read({**body, "signal": 9}).signal == 9
    for bad in ({}, {"exit_code": 1, "signal": 9}, {"exit_code": 256}, {"signal": 0}):
        with pytest.raises(ConfigError):
            LocalExit.read({**body, **bad})


def test_queries():
    assert EventsRequest.read({"after": "k", "limit": "5", "wait_s": "30"}) == EventsRequest(
        "k", None, 5, 30
    )
    assert LogRequest.read({"job": "a/1", "after": "0"}) == LogRequest("a/1", 100, 0)
    assert read_job_word({"job": "leonardo/4711"}) == "leonardo/4711"
    assert read_all_flag({"all": "1"}) is True
    assert read_all_flag({}) is False
    with pytest.raises(ConfigError, match="job is missing"):
        read_job_word({})
    with pytest.raises(ConfigError, match="wait_s must be between 0 and 300"):
        EventsRequest.read({"wait_s": "301"})
    with pytest.raises(ConfigError, match="limit must be a whole number"):
        EventsRequest.read({"limit": "٣"})
    with pytest.raises(ConfigError, match="unknown key 'sinse'; nearest: 'since'"):
        HistoryRequest.read({"sinse": "x"})


def test_a_plus_that_became_a_space():
    request = HistoryRequest.read({"since": "2026-11-29T19:00:00 01:00"})
    assert request.since == datetime(2026, 11, 29, 18, tzinfo=UTC)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
KEYS = st.sampled_from(
    ["ids", "kind", "cluster", "labels", "log", "user", "pid", "birth", "boot_id", "ref",
     "refs", "wait", "verdict", "signal", "ended_at", "submitted_at", "since", "job", "n"]
)  # fmt: skip
READERS = st.sampled_from(
    [AddRequest.read, read_change, SweepRequest.read, CloseRequest.read, read_refs,
     LocalStart.read, LocalExit.read, EventsRequest.read, HistoryRequest.read, LogRequest.read]
)  # fmt: skip


@given(READERS, ANY_JSON | st.dictionaries(KEYS, ANY_JSON, max_size=5))
def test_any_body_is_read_or_refused_in_one_line(read, body):
    try:
        read(body)
    except ConfigError as refusal:
        assert "\n" not in str(refusal)
        str(refusal).encode("utf-8")
