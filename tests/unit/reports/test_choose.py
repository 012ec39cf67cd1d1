import pytest

from jobmond.errors import ConfigError, Refused
from jobmond.model.state import Bucket
from jobmond.reports.choose import (
    alarm,
    changed,
    chosen,
    field_names,
    fields,
    narrowed,
    the_bucket,
    the_job,
)
from jobmond.reports.times import parse_instant


def job(ref, **changes):
    cluster, _, native = ref.partition("/")
    return {
        "ref": ref,
        "cluster": cluster,
        "native_id": native.partition("@")[0],
        "name": "n",
        "run": "r",
        "life": 1,
        "bucket": "other",
        "tracked": True,
        "state": "RUNNING",
        "signals": [],
        "successor": None,
        **changes,
    }


JOBS = [
    job("a/1", name="alpha", run="alpha"),
    job("b/1", name="beta", run="beta", bucket="rl"),
    job("a/2", name="chain", run="chain", life=1, tracked=False),
    job("a/3", name="chain", run="chain", life=2),
    job("a/4", name="old", run="old", life=1, tracked=False),
    job("a/5", name="old", run="old", life=2, tracked=False),
    job("a/1@17", name="alpha0", run="alpha0", tracked=False),
    job("host/pid-77"),
    job("host/pid-3"),  # the bare id is nearer
]


@pytest.mark.parametrize(
    ("word", "ref"),
    [
        ("a/1", "a/1"),
        ("a/1@17", "a/1@17"),
        ("3", "a/3"),
        ("beta", "b/1"),
        ("chain", "a/3"),  # the tracked one
        ("old", "a/5"),  # the newest life
        ("77", "host/pid-77"),  # a process, by its number
    ],
)
def test_a_word_means_one_job(word, ref):
    assert the_job(JOBS, word)["ref"] == ref


def test_an_id_on_two_clusters_is_ambiguous():
    with pytest.raises(Refused, match=r"^'1' may be a/1, b/1: give one of these$"):
        the_job(JOBS, "1")


def test_an_unknown_job_names_the_nearest():
    with pytest.raises(Refused, match=r"no job 'alhpa' .*did you mean 'alpha'") as refused:
        the_job(JOBS, "alhpa")
    assert refused.value.exit_code == 1


def test_filters_add_up_and_the_summary_follows():
    jobs = chosen(JOBS, words=["a/1", "b/1"], bucket="rl")
    assert [j["ref"] for j in jobs] == ["b/1"]
    document = narrowed({"schema": 1, "jobs": JOBS, "summary": None}, jobs)
    assert document["summary"] == {
        "line": "0 of 1 completed, 1 running",
        "tracked": 1,
        "by_state": {"RUNNING": 1},
    }


def test_changed_counts_events_and_instants():
    jobs = [
        job("a/1", ended_at="2026-11-29T12:00:00Z"),
        job("a/2", ended_at="2026-11-29T11:59:59Z"),
        job("a/3", started_at="2026-11-29T12:30:00Z", ended_at=None),
        job("a/4"),
    ]
    since = parse_instant("2026-11-29T12:00:00Z")
    assert [j["ref"] for j in changed(jobs, since, {"a/4"})] == ["a/1", "a/3", "a/4"]


ALARM = {"rule": "zombie", "severity": "alarm"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"state": "FAILED"}, True),
        ({"state": "LOST"}, True),
        ({"state": "CANCELLED"}, False),
        ({"state": "UNKNOWN"}, False),
        ({"state": "TIMEOUT"}, True),
        ({"state": "TIMEOUT", "successor": "a/2"}, False),
        ({"state": "FAILED", "successor": "a/2"}, True),
        ({"signals": [ALARM]}, True),
        ({"signals": [{**ALARM, "severity": "watch"}]}, False),
    ],
)
def test_what_is_an_alarm(changes, expected):
    assert alarm({"jobs": [job("a/1", **changes)], "clusters": []}) is expected


@pytest.mark.parametrize(
    ("status", "expected"), [("ok", False), ("unreachable", False), ("needs-login", True)]
)
def test_a_cluster_that_waits_for_a_person_is_an_alarm(status, expected):
    assert alarm({"jobs": [], "clusters": [{"status": status}]}) is expected


def test_fields():
    names = field_names("ref, log.status,metrics.policy/grad.norm,step,top_exception")
    found = {"ref": "a/1", "log": {"status": "read"}, "metrics": {"policy/grad.norm": 1.0}}
    assert fields({**found, "step": None}, names) == {
        "ref": "a/1",
        "log.status": "read",
        "metrics.policy/grad.norm": 1.0,
        "step": None,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sate", r"no field 'sate' \(did you mean 'state'\?\)"),
        ("state.x", "no field 'state.x'"),
        (" , ", "names no field"),
    ],
)
def test_a_wrong_field_is_a_usage_error(text, message):
    with pytest.raises(ConfigError, match=message) as wrong:
        field_names(text)
    assert wrong.value.exit_code == 2


def test_buckets():
    assert the_bucket("RL") is Bucket.RL
    assert the_bucket("catch-all") is Bucket.OTHER
    with pytest.raises(ConfigError, match=r"no bucket 'evl' \(did you mean 'eval'\?\)"):
        the_bucket("evl")
