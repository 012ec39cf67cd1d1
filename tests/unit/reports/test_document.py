import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import jsonschema
import pytest

from jobmond.model.job import Choices, ClusterHealth, LogEvidence
from jobmond.model.observation import TaskCounts
from jobmond.model.outcome import Diagnosis, Signal, SinkStanding
from jobmond.model.state import Bucket, Severity, State
from jobmond.model.training import Training
from jobmond.reports.document import job_object, status_document, summary_line, with_unused
from jobmond.reports.schema import SCHEMAS, schema

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
OK = ClusterHealth("leonardo", "slurm", True, "ok", NOW - timedelta(days=1), NOW)
DAEMON = {
    "running": True,
    "host": "login7",
    "version": "0.1.0",
    "last_sweep_at": NOW - timedelta(minutes=3),
    "next_sweep_at": None,
}


def valid(document):
    checker = jsonschema.Draft202012Validator(schema("status"))
    assert list(checker.iter_errors(json.loads(json.dumps(document, allow_nan=False)))) == []
    return document


def test_a_job_has_every_key_of_the_interface_and_no_other(make_job):
    assert job_object(make_job(), NOW) == {
        "ref": "leonardo/4711",
        "cluster": "leonardo",
        "native_id": "4711",
        "kind": "slurm",
        "bucket": "other",
        "type": "batch",
        "name": "tokenise",
        "run": "tokenise",
        "user": "alice",
        "owner": None,
        "labels": [],
        "tracked": True,
        "stale": False,
        "state": "RUNNING",
        "native_state": "RUNNING",
        "reason": None,
        "exit_code": None,
        "signal": None,
        "submitted_at": "2026-11-29T09:00:00Z",
        "started_at": "2026-11-29T11:00:00Z",
        "ended_at": None,
        "seen_at": "2026-11-29T11:55:00Z",
        "elapsed_s": 3600,
        "time_limit_s": None,
        "start_estimate_at": None,
        "eta_s": None,
        "nodes": None,
        "phase": "bring-up",
        "life": 1,
        "step": None,
        "max_step": None,
        "metrics": {},
        "trend": None,
        "note": "tokenise",
        "successor": None,
        "tasks": None,
        "signals": [],
        "diagnosis": None,
        "agent_log": None,
        "log": {"path": None, "status": "none", "bytes": None, "error": None},
    }


def test_a_full_document_keeps_the_contract(make_job):
    failed = make_job(
        "4712",
        id=2,
        state=State.FAILED,
        native="FAILED",
        tracked=False,
        ended_at=NOW - timedelta(minutes=10),
        facts={"exit_code": 1, "tasks": TaskCounts(3, {State.FAILED: 1, State.COMPLETED: 2})},
        diagnosis=Diagnosis("python-exception", "ValueError: bad", excerpt=("ValueError: bad",)),
        log=LogEvidence("read", "/logs/4712.out", 120),
        choices=Choices(owner="bob", session={"pid": 3}),
        signals=(Signal("held", Severity.WATCH, "held", {"ratio": math.nan}),),
    )
    document = valid(status_document([make_job(), failed], [OK], daemon=DAEMON, now=NOW))
    assert document["generated_at"] == "2026-11-29T12:00:00Z"
    assert document["daemon"]["last_sweep_at"] == "2026-11-29T11:57:00Z"
    assert document["summary"] == {
        "line": "0 of 2 completed, 1 failed, 1 running",
        "tracked": 1,
        "by_state": {"RUNNING": 1, "FAILED": 1},
    }
    shown = document["jobs"][1]
    assert shown["session"] == {"pid": 3}
    assert shown["tasks"] == {"total": 3, "by_state": {"FAILED": 1, "COMPLETED": 2}, "failed": []}
    assert shown["signals"][0]["evidence"] == {"ratio": "nan"}
    assert shown["log"] == {"path": "/logs/4712.out", "status": "read", "bytes": 120, "error": None}


def test_sinks_come_in_the_order_of_the_configuration():
    known = [
        SinkStanding("old", undelivered=2, last_error="x"),
        SinkStanding("forgotten", given_up=4),
        SinkStanding("team", undelivered=1, retry_at=NOW, given_up=1, given_up_at=NOW),
    ]
    sinks = with_unused(known, ["news", "team"])
    document = valid(status_document([], [], sinks=sinks, daemon=DAEMON, now=NOW))
    nothing = {"undelivered": 0, "retry_at": None, "given_up": 0, "given_up_at": None}
    at = "2026-11-29T12:00:00Z"
    assert document["sinks"] == [
        {"name": "news", "configured": True, **nothing, "last_error": None},
        {
            "name": "team",
            "configured": True,
            "undelivered": 1,
            "retry_at": at,
            "given_up": 1,
            "given_up_at": at,
            "last_error": None,
        },
        {"name": "old", "configured": False, **nothing, "undelivered": 2, "last_error": "x"},
    ]


def test_an_empty_document_keeps_the_contract():
    document = valid(status_document([], [], daemon={"running": False, "host": "h"}, now=NOW))
    assert document["summary"]["line"] == "no jobs"


@pytest.mark.parametrize("state", list(State))
def test_every_state_keeps_the_contract(make_job, state):
    job = make_job(state=state, native=state.value)
    valid(status_document([job], [OK], daemon=DAEMON, now=NOW))


def test_the_contract_notices_a_missing_key_and_a_wrong_word(make_job):
    document = status_document([make_job()], [OK], daemon=DAEMON, now=NOW)
    checker = jsonschema.Draft202012Validator(schema("status"))
    del document["jobs"][0]["stale"]
    document["jobs"][0]["state"] = "DONE"
    assert {list(e.path)[-1] for e in checker.iter_errors(document)} == {0, "state"}


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))


def test_an_older_incarnation_shows_its_birth(make_job):
    old = make_job(id=5, birth="1764300000", tracked=False, state=State.NODE_FAIL, life=1)
    new = make_job(id=4, birth="1764400000", life=2)
    document = status_document([old, new], [OK], daemon=DAEMON, now=NOW)
    assert [job["ref"] for job in document["jobs"]] == ["leonardo/4711", "leonardo/4711@1764300000"]
    assert [job["native_id"] for job in document["jobs"]] == ["4711", "4711"]


def test_jobs_come_by_bucket_then_live_ones_then_the_latest_end(make_job):
    def ended(native_id, minutes):
        return make_job(
            native_id,
            state=State.COMPLETED,
            ended_at=NOW - timedelta(minutes=minutes),
            tracked=False,
        )

    jobs = [ended("1", 50), ended("2", 10), make_job("3"), make_job("9", bucket=Bucket.RL)]
    document = status_document(jobs, [OK], daemon=DAEMON, now=NOW)
    assert [job["native_id"] for job in document["jobs"]] == ["9", "3", "2", "1"]


def test_elapsed_counts_only_time_somebody_saw(make_job):
    def elapsed(job):
        return job_object(job, NOW)["elapsed_s"]

    job = make_job(facts={"elapsed_s": 3000})
    assert elapsed(job) == 3600
    assert elapsed(replace(job, stale=True)) == 3300
    assert elapsed(make_job(facts={"elapsed_s": 3000, "suspended": True})) == 3000
    assert elapsed(replace(job, state=State.COMPLETED)) == 3000
    assert elapsed(replace(job, state=State.PENDING)) is None
    assert elapsed(make_job(facts={"started_at": NOW + timedelta(minutes=1)})) == 0


def test_an_end_is_shown_only_for_what_is_over(make_job):
    job = make_job(ended_at=NOW, facts={"ended_at": NOW})
    assert job_object(job, NOW)["ended_at"] is None
    assert job_object(replace(job, state=State.LOST), NOW)["ended_at"] == "2026-11-29T12:00:00Z"


@pytest.mark.parametrize(
    ("state", "successor", "phase"),
    [
        (State.PENDING, None, "queued"),
        (State.RUNNING, None, "bring-up"),
        (State.COMPLETED, None, "done"),
        (State.FAILED, None, "failed"),
        (State.TIMEOUT, None, "failed"),
        (State.TIMEOUT, "leonardo/4712", "bring-up"),
        (State.CANCELLED, None, "bring-up"),
    ],
)
def test_phases(make_job, state, successor, phase):
    assert job_object(make_job(state=state, successor=successor), NOW)["phase"] == phase


TRAINING = Training(
    dialect="skyrl",
    bucket=Bucket.RL,
    phase="training",
    step=15,
    max_step=80,
    metrics={"reward": 0.234375, "generate/batch_num_seq": 128.0, "policy_loss": math.nan},
    rate_s_per_step=41.23456789,
    eta_s=2680.2469135,
    resumed_from=10,
    checkpoints=(10, 15),
    trend="Checkpoint saved. Stable",
)


def test_what_a_log_says_of_its_training(make_job):
    job = make_job(bucket=Bucket.RL, training=TRAINING)
    [shown] = valid(status_document([job], [OK], daemon=DAEMON, now=NOW))["jobs"]
    assert (shown["phase"], shown["step"], shown["max_step"]) == ("training", 15, 80)
    assert shown["metrics"] == {
        "generate/batch_num_seq": 128.0,
        "policy_loss": "nan",
        "reward": 0.234375,
    }
    assert shown["trend"] == "Checkpoint saved. Stable"
    assert (shown["eta_s"], shown["rate_s_per_step"]) == (2680.25, 41.2346)
    assert (shown["resumed_from"], shown["checkpoints"]) == (10, [10, 15])
    assert shown["shaping"] == "base"  # 30 of 128 rollouts


def test_partial_credit_is_shaping_and_without_a_count_nothing_is(make_job):
    shaped = replace(TRAINING, metrics={**TRAINING.metrics, "reward": 0.2371093})
    assert job_object(make_job(training=shaped), NOW)["shaping"] == "shaped"
    half = replace(TRAINING, metrics={**TRAINING.metrics, "reward": 0.5})
    assert "shaping" not in job_object(make_job(training=half), NOW)
    finer = replace(half, values=(0.234375, 0.5))
    assert job_object(make_job(training=finer), NOW)["shaping"] == "base"
    uncounted = replace(TRAINING, metrics={"reward": 0.2371093})
    assert "shaping" not in job_object(make_job(training=uncounted), NOW)


@pytest.mark.parametrize(
    ("state", "log_phase", "phase", "eta_s"),
    [
        (State.RUNNING, "training", "training", 2680.25),
        (State.RUNNING, "bring-up", "bring-up", 2680.25),
        (State.RUNNING, "done", "done", None),
        (State.COMPLETED, "training", "done", None),
        (State.FAILED, "training", "failed", None),
        (State.CANCELLED, "training", "training", None),
        (State.PENDING, "training", "queued", None),
    ],
)
def test_what_the_scheduler_proves_goes_before_the_log(make_job, state, log_phase, phase, eta_s):
    job = make_job(state=state, training=replace(TRAINING, phase=log_phase))
    shown = job_object(job, NOW)
    assert (shown["phase"], shown["eta_s"]) == (phase, eta_s)


def test_a_log_of_no_trainer_has_no_numbers(make_job):
    shown = job_object(make_job(training=Training()), NOW)
    assert (shown["phase"], shown["step"], shown["metrics"]) == ("bring-up", None, {})


def test_an_sft_grid_is_in_the_document(make_job):
    jobs = [
        make_job("1", bucket=Bucket.SFT, run="7b", training=TRAINING),
        make_job("2", bucket=Bucket.SFT, run="7b", state=State.PENDING),
        make_job("3", bucket=Bucket.SFT, run="1b", state=State.PENDING),
        make_job("4", bucket=Bucket.RL, run="arm"),
    ]
    document = valid(status_document(jobs, [OK], daemon=DAEMON, now=NOW))
    cell = {
        "run": "7b", "ref": "leonardo/1", "step": 15, "max_step": 80,
        "progress": 0.1875, "eta_s": 2680.25,
    }  # fmt: skip
    assert document["sft_grid"] == {
        "cells": 2,
        "tally": {"running": 1, "pending": 1, "done": 0, "stopped": 0},
        "running": [cell],
        "long_pole": cell,
    }
    assert valid(status_document(jobs[:2], [OK], daemon=DAEMON, now=NOW))["sft_grid"] is None


def test_cleared_signals_are_history(make_job):
    signal = Signal("held", Severity.WATCH, "held", {}, cleared_at=NOW)
    assert job_object(make_job(signals=(signal,)), NOW)["signals"] == []


def line(*states, scores=None, successor=None):
    return summary_line(
        [
            {
                "cluster": "c",
                "native_id": str(i),
                "state": s,
                "scores": (scores or {}).get(i),
                "successor": (successor or {}).get(i),
            }
            for i, s in enumerate(states)
        ]
    )


def test_the_aggregate_line():
    scores = {
        0: [{"name": "MMLU-Pro", "value": 42.3}],
        1: [{"name": "GSM8K", "value": 67.1}],
        2: [{"name": "unfinished", "value": 1.0}],
    }
    assert (
        line("COMPLETED", "COMPLETED", "RUNNING", "PENDING", scores=scores)
        == "2 of 4 completed (MMLU-Pro: 42.3%, GSM8K: 67.1%), 1 running, 1 pending"
    )
    assert line("COMPLETED") == "1 of 1 completed"
    assert line("FAILED", "LOST", "OUT_OF_MEMORY", "NODE_FAIL") == "0 of 4 completed, 4 failed"
    assert line("CANCELLED", "UNKNOWN") == "0 of 2 completed, 1 cancelled, 1 unknown"


def test_a_time_limit_is_a_failure_only_where_nothing_goes_on():
    assert line("FAILED", successor={0: "c/1"}) == "0 of 1 completed, 1 failed"
    assert line("FAILED", successor={0: "c/0"}) == "0 of 1 completed, 1 restarted"
    assert line("TIMEOUT") == "0 of 1 completed, 1 failed"
    assert (
        line("TIMEOUT", "RUNNING", successor={0: "leonardo/2"})
        == "0 of 2 completed, 1 running, 1 restarted"
    )


def test_the_news_contract_takes_the_documented_event():
    news = {
        "schema": 1, "key": "k", "at": "2026-11-29T12:00:00Z", "type": "transition",
        "severity": "alarm",
        "job": {"ref": "leonardo/4711", "name": "n", "bucket": "sft", "run": "n"},
        "before": "RUNNING", "after": "FAILED", "native": "FAILED", "correction": False,
        "title": "t", "body": "b", "diagnosis": None, "agent_log": None,
    }  # fmt: skip
    jsonschema.validate(news, schema("news"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**news, "at": "2026-11-29 12:00"}, schema("news"))


def test_the_inspect_contract_takes_the_documented_object():
    found = {
        "schema": 1, "path": "x.log", "bucket": "rl", "dialect": "skyrl", "bytes": 73211,
        "lines": 1210, "life": 1, "resumed_from": None, "phase": "training", "step": 24,
        "max_step": 80, "metrics": {"loss": "nan"},
        "series": {"grad_norm": [[1, 0.02], [2, "inf"]]}, "rate_s_per_step": 41.2,
        "eta_s": 2307.0, "checkpoints": [10, 20], "signals": [],
        "diagnosis": {"cause": "cuda-oom", "summary": "s", "line": 812, "first_line": 804,
                      "offset": 60211, "excerpt": ["x"], "fingerprint": "f", "victims": 7},
    }  # fmt: skip
    jsonschema.validate(found, schema("inspect"))
