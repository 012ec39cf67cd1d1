import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from wcwidth import wcswidth

from jobmond.model.job import Choices, LogEvidence
from jobmond.model.observation import TaskCounts
from jobmond.model.outcome import Diagnosis, Signal
from jobmond.model.state import Severity, State
from jobmond.model.training import Training
from jobmond.reports.document import job_object
from jobmond.reports.lists import (
    discovery_text,
    event_line,
    followups_text,
    history_text,
    sweep_line,
)
from jobmond.reports.show import show_text

GOLDEN = Path(__file__).parents[2] / "golden"
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.fixture
def failed(make_job):
    return job_object(
        make_job(
            state=State.FAILED,
            native="FAILED",
            tracked=False,
            life=2,
            labels=frozenset({"smoke", "tested"}),
            choices=Choices(owner="bob"),
            ended_at=NOW - timedelta(minutes=10),
            successor="leonardo/4712",
            note="needs action",
            log=LogEvidence("read", "/logs/4711.out", 120),
            signals=(Signal("held", Severity.WATCH, "held by an admin", {}, action="inspect"),),
            diagnosis=Diagnosis(
                "import-error",
                "No module named torch",
                line=812,
                excerpt=("Traceback (most recent call last):", "\x1b[2JModuleNotFoundError"),
            ),
            facts={
                "name": "tokenise \x1b[31m",
                "reason": "NonZeroExitCode",
                "exit_code": 1,
                "elapsed_s": 3000,
                "time_limit_s": 86400,
                "nodes": "n[1-2]",
                "tasks": TaskCounts(3, {State.COMPLETED: 2, State.FAILED: 1}, ("4711_1",)),
            },
        ),
        NOW,
    )


def test_one_job_in_full(failed, view):
    job = {
        **failed,
        "description": "pretokenise the corpus",
        "proof": "sacct",
        "partition": "boost",
        "workdir": "/work\x07",
        "restarts": 0,
        "lives": [
            {
                "life": 1,
                "ref": "leonardo/4700",
                "state": "TIMEOUT",
                "native_state": "TIMEOUT",
                "ended_at": "2026-11-29T11:00:00Z",
            },
            failed,
        ],
        "transitions": [
            {"at": "2026-11-29T09:01:00Z", "before": None, "after": "PENDING"},
            {
                "at": "2026-11-29T11:50:00Z",
                "before": "LOST",
                "after": "FAILED",
                "correction": True,
            },
        ],
        "followups": [{"id": 7, "kind": "cleanup", "title": "remove the trial tree"}],
        "entries": ["/a/2026-11-29/leonardo-4711-tokenise.md"],
    }
    golden = (GOLDEN / "show_failed.txt").read_text(encoding="utf-8")
    assert "\n".join(show_text(job, view)) + "\n" == golden


def test_a_bare_job_says_only_what_is_known(make_job, view):
    lines = show_text(job_object(make_job(), NOW), view)
    assert lines[0] == "Job         leonardo/4711"
    assert not any(line.startswith(("Reason", "Exit code", "Log", "Ended")) for line in lines)


def test_history(failed, make_job, view):
    code = {**failed, "ref": "leonardo/9", "diagnosis": None, "successor": None, "name": "x"}
    on = {**code, "state": "TIMEOUT", "native_state": "TIMEOUT", "successor": "leonardo/10"}
    assert history_text([code, on], view) == [
        "┌────────────┬──────┬─────────┬───────┬─────────┬────────────────────────┐",
        "│    Job     │ Name │  State  │ Ended │ Elapsed │         Cause          │",
        "├────────────┼──────┼─────────┼───────┼─────────┼────────────────────────┤",
        "│ leonardo/9 │ x    │ FAILED  │ 12:50 │ 50m     │ exit code 1            │",
        "│ leonardo/9 │ x    │ TIMEOUT │ 12:50 │ 50m     │ goes on as leonardo/10 │",
        "└────────────┴──────┴─────────┴───────┴─────────┴────────────────────────┘",
    ]
    assert "import-error: No module" in history_text([failed], view)[3]
    unknown = {**code, "diagnosis": {"cause": "unknown", "summary": "nothing found"}}
    assert "│ exit code 1 │" in history_text([unknown], view)[3]
    assert history_text([], view) == ["Nothing has ended."]


def test_discovery(view):
    jobs = [{"ref": "vega/8", "name": None, "state": "RUNNING", "user": "al\x07ice"}]
    assert discovery_text(jobs, view) == [
        "┌────────┬──────┬─────────┬───────────┐",
        "│  Job   │ Name │  State  │   User    │",
        "├────────┼──────┼─────────┼───────────┤",
        r"│ vega/8 │ —    │ RUNNING │ al\x07ice │",
        "└────────┴──────┴─────────┴───────────┘",
        "`jobmonctl add JOB` tracks one of them, `jobmonctl discover --track` all.",
    ]
    assert discovery_text([], view) == ["No jobs that are not tracked already."]


def test_followups(view):
    owed = {
        "id": 7,
        "ref": "vega/8",
        "kind": "deep-probe",
        "title": "probe it",
        "opened_at": "2026-11-29T11:00:00Z",
    }
    closed = {**owed, "id": 8, "state": "closed", "verdict": "no-kill"}
    assert followups_text([owed, closed], view) == [
        "┌────┬────────┬────────────┬───────┬──────────────────┬──────────┐",
        "│ Id │  Job   │    Kind    │ Since │      State       │   What   │",
        "├────┼────────┼────────────┼───────┼──────────────────┼──────────┤",
        "│ 7  │ vega/8 │ deep-probe │ 12:00 │ open             │ probe it │",
        "│ 8  │ vega/8 │ deep-probe │ 12:00 │ closed (no-kill) │ probe it │",
        "└────┴────────┴────────────┴───────┴──────────────────┴──────────┘",
        "`jobmonctl done ID` closes one.",
    ]
    assert followups_text([], view) == ["Nothing is owed."]


@pytest.mark.parametrize(
    ("cluster", "text"),
    [
        (
            {"name": "vega", "status": "ok", "jobs": 12, "changes": 1, "age_s": 0},
            "vega: ok, 12 jobs, 1 change",
        ),
        (
            {"name": "vega", "status": "ok", "jobs": 1, "changes": 0, "age_s": 130},
            "vega: ok, 1 job, 0 changes (answer of 2m ago)",
        ),
        (
            {"name": "vega", "status": "ok", "jobs": 1, "changes": None, "age_s": 130},
            "vega: ok, 1 job (answer of 2m ago)",
        ),
        (
            {
                "name": "vega",
                "status": "needs-login",
                "error": "denied\x1b[0m",
                "remedy": "ssh vega",
            },
            r"vega: needs-login: denied\x1b[0m → ssh vega",
        ),
    ],
)
def test_sweep_lines(view, cluster, text):
    assert sweep_line(cluster, view) == text


def test_event_lines(view):
    news = {
        "at": "2026-11-29T11:00:00Z",
        "severity": "alarm",
        "title": "tok\x1benise FAILED",
        "job": {"ref": "vega/8"},
        "correction": True,
    }
    assert event_line(news, view) == (r"12:00  alarm  vega/8  tok\x1benise FAILED (correction)")
    cluster = {**news, "job": None, "cluster": "vega", "title": "vega is back", "severity": "info"}
    assert event_line({**cluster, "correction": False}, replace(view, ascii_only=True)) == (
        "12:00  info   vega is back"
    )


def test_a_job_whose_log_nobody_knows(make_job, view):
    lines = show_text(job_object(make_job(log=LogEvidence("absent", None, None)), NOW), view)
    assert "Log         no path known" in lines
    assert not [line for line in lines if line.strip() == "absent"]


def test_how_a_job_trains(make_job, view):
    training = Training(
        dialect="skyrl",
        phase="training",
        step=15,
        max_step=80,
        metrics={"policy/policy_loss": -0.004, "reward": 0.619, "policy/x": math.nan},
        rate_s_per_step=41.23,
        eta_s=2680.0,
        resumed_from=10,
        checkpoints=tuple(range(1, 9)),
        trend="Stable",
    )
    signals = (
        Signal(
            "rl-collapse", Severity.ALARM, "collapse", {}, action="inspect", step=12, last_step=15
        ),
    )
    job = job_object(make_job(training=training, signals=signals), NOW)
    past = {"severity": "watch", "rule": "rl-watch", "title": "z\x1b", "step": 3, "last_step": 3}
    lines = show_text({**job, "shaping": "base", "past_signals": [past]}, view)
    start = lines.index("Phase       training")
    assert lines[start : start + 8] == [
        "Phase       training",
        "Step        15/80",
        "Resumed at  step 10",
        "Pace        41.2 s a step",
        "To go       44m",
        "Banked      step 8 by its log (before: 7, 6, 5, 4, 3) and 2 more",
        "Rewards     base (by reward x rollouts per step)",
        "Trend       Stable",
    ]
    assert lines[-11:] == [
        "",
        "Signals",
        "  alarm rl-collapse at steps 12 to 15: collapse → inspect",
        "",
        "Signals that were cleared",
        "  watch rl-watch at step 3: z\\x1b",
        "",
        "Metrics",
        "  reward              0.619",
        "  policy/policy_loss  -0.004",
        "  policy/x            nan",
    ]


def test_many_metrics_are_counted(make_job, view):
    training = Training(dialect="verl", metrics={f"m{n}": float(n) for n in range(205)})
    lines = show_text(job_object(make_job(training=training), NOW), view)
    assert lines[-1] == "  and 5 more"


@pytest.mark.parametrize("fit", [80, 60])
def test_narrow_lists_cut_neither_refs_nor_numbers(failed, view, fit):
    narrow = replace(view, fit=fit)
    ended = {**failed, "ref": "jupiter/12345678", "ended_at": "2026-11-28T11:50:00Z"}
    owed = {
        "id": 12345,
        "ref": "jupiter/12345678",
        "kind": "deep-probe",
        "title": "a new setting: read its rollouts",
        "opened_at": "2026-11-28T11:00:00Z",
    }
    waiting = {"ref": "jupiter/12345678", "name": "a-long-name" * 3, "state": "OUT_OF_MEMORY"}
    for lines, parts in (
        (history_text([ended], narrow), ("jupiter/12345678", "2026-11-28", "12:50", "50m")),
        (followups_text([owed], narrow)[:-1], ("12345", "jupiter/12345678", "2026-11-28", "12:00")),
        (discovery_text([waiting], narrow)[:-1], ("jupiter/12345678", "OUT_OF_MEMORY")),
    ):
        assert {wcswidth(line) for line in lines} == {wcswidth(lines[0])}
        assert wcswidth(lines[0]) <= fit
        words = {word.strip(":,") for line in lines for word in line.replace("│", " ").split()}
        assert words >= set(parts)
