from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from wcwidth import wcswidth

from jobmond.model.job import ClusterHealth, LogEvidence
from jobmond.model.outcome import SinkStanding
from jobmond.model.state import Bucket, State
from jobmond.reports.document import job_object, status_document
from jobmond.reports.status import status_text
from jobmond.reports.view import note_cell, state_cell

GOLDEN = Path(__file__).parents[2] / "golden"
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DAEMON = {
    "running": True,
    "host": "login7",
    "last_sweep_at": NOW - 3 * MINUTE,
    "next_sweep_at": NOW + 12 * MINUTE,
}
OK = ClusterHealth("leonardo", "slurm", True, "ok", NOW - HOUR, NOW)


@pytest.fixture
def ended(make_job):
    def make(native_id, state, minutes_ago, **changes):
        facts = {"elapsed_s": 720, **changes.pop("facts", {})}
        return make_job(
            native_id,
            state=state,
            native=changes.pop("native", state.value),
            ended_at=NOW - minutes_ago * MINUTE,
            tracked=False,
            facts=facts,
            **changes,
        )

    return make


def golden(name):
    return (GOLDEN / name).read_text(encoding="utf-8").splitlines()


def test_the_whole_report(make_job, ended, view):
    clusters = [
        OK,
        ClusterHealth(
            "jupiter", "slurm", True, "needs-login", NOW - 2 * HOUR, NOW - 24 * HOUR,
            "Permission denied (publickey)", "ssh login.jupiter.example",
        ),
        ClusterHealth("mare", "slurm", False, "inactive", NOW - HOUR),
        ClusterHealth(
            "vega", "slurm", True, "unreachable", NOW - 30 * MINUTE, NOW - 35 * MINUTE, "timed out"
        ),
    ]  # fmt: skip
    jobs = [
        make_job("4720", bucket=Bucket.RL, log=LogEvidence("empty", "/l"), facts={"name": "arm"}),
        make_job(
            "4713", state=State.PENDING, native="REQUEUED", type="upload",
            facts={"reason": "Priority", "start_estimate_at": NOW + 90 * MINUTE},
        ),
        make_job("88", cluster="vega", stale=True),
        ended("4712", State.FAILED, 10, facts={"exit_code": 3}),
        ended("4714", State.CANCELLED, 20, native="CANCELLED by 1000"),
        ended(
            "4715", State.TIMEOUT, 120, successor="leonardo/4716",
            facts={"name": "\x1b[31mred|\u202e数据"},
        ),
    ]  # fmt: skip
    document = status_document(jobs, clusters, daemon=DAEMON, now=NOW)
    assert status_text(document, view) == golden("status_live.txt")


def test_a_cluster_that_was_not_asked_yet_is_in_no_trouble(view):
    new = ClusterHealth("leonardo", "slurm", True, "unreachable", NOW, error="not asked yet")
    document = status_document([], [new], daemon=DAEMON, now=NOW)
    assert "leonardo: not asked yet" in status_text(document, view)


def test_a_cluster_that_the_configuration_names_no_more(view):
    gone = ClusterHealth(
        "mare", "slurm", False, "inactive", NOW - HOUR, error="not in the configuration"
    )
    document = status_document([], [gone], daemon=DAEMON, now=NOW)
    assert status_text(document, view)[1] == (
        "mare: inactive (not in the configuration), its jobs are not polled"
    )


def test_a_stale_job_that_no_sweep_has_seen(make_job, view):
    job = job_object(make_job(stale=True, seen_at=None), NOW)
    assert note_cell(job, view).split(";")[0] == "never seen"


def test_a_stored_report_on_a_narrow_ascii_terminal(ended, view):
    jobs = [ended("4712", State.COMPLETED, 0, facts={"elapsed_s": 3600})]
    stored = status_document(
        jobs, [OK], daemon={"running": False, "host": "login7"}, now=NOW - 2 * HOUR
    )
    stored["jobs"][0]["ended_at"] = "2026-11-29T10:00:00Z"
    narrow = replace(view, fit=60, ascii_only=True)
    assert status_text(stored, narrow) == golden("status_stored_60.txt")


def test_nothing_tracked_says_what_to_type(view):
    document = status_document([], [], daemon=DAEMON, now=NOW)
    assert status_text(document, view) == [
        "jobmond on login7: last sweep 3m ago, next in 12m",
        "No jobs. `jobmonctl add ID` tracks one, `jobmonctl discover` lists what runs.",
    ]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"last_sweep_at": None}, "jobmond on login7: no sweep yet, next in 12m"),
        (
            {"next_sweep_at": NOW - MINUTE},
            "jobmond on login7: last sweep 3m ago, next one due",
        ),
        (
            {"next_sweep_at": None},
            "jobmond on login7: last sweep 3m ago, none due until a job is tracked",
        ),
        (
            {"host": "\x1b]0;x\x07"},
            r"jobmond on \x1b]0;x\x07: last sweep 3m ago, next in 12m",
        ),
    ],
)  # fmt: skip
def test_the_daemon_line(view, changes, text):
    document = status_document([], [], daemon={**DAEMON, **changes}, now=NOW)
    assert status_text(document, view)[0] == text


@pytest.mark.parametrize(
    ("sink", "lines"),
    [
        ({}, []),
        ({"undelivered": 3}, []),  # on its way
        (
            {"undelivered": 3, "retry_at": NOW + MINUTE, "last_error": "gone\x1b[31m"},
            [r"sink team: 3 undelivered: gone\x1b[31m"],
        ),
        (
            {"given_up": 2, "given_up_at": NOW - HOUR, "last_error": "the receiver answered 404"},
            ["sink team: 2 given up, the last 1h00m ago: the receiver answered 404"],
        ),
        ({"given_up": 2, "given_up_at": NOW - 25 * HOUR, "last_error": "x"}, []),
        (
            {"undelivered": 1, "configured": False},
            ["sink team: 1 undelivered, this sink is not configured any more"],
        ),
    ],
)
def test_a_sink_has_a_line_where_something_is_wrong(view, sink, lines):
    standing = SinkStanding("team", **sink)
    document = status_document([], [], sinks=[standing], daemon=DAEMON, now=NOW)
    assert status_text(document, view)[1:-1] == lines


def test_a_report_of_an_older_daemon_has_no_sinks(view):
    document = status_document([], [], daemon=DAEMON, now=NOW)
    del document["sinks"]
    assert len(status_text(document, view)) == 2


def test_buckets_come_in_order_each_with_its_jobs(make_job, view):
    jobs = [make_job(str(i), bucket=bucket) for i, bucket in enumerate(reversed(Bucket))]
    lines = status_text(status_document(jobs, [OK], daemon=DAEMON, now=NOW), view)
    titles = [lines[i + 1] for i, text in enumerate(lines) if not text]
    assert titles == [
        "RL, no metrics yet",
        "SFT, no metrics yet",
        "Datagen, no metrics yet",
        "Eval, no metrics yet",
        "Catch-all",
    ]


def test_brief_columns(make_job, view):
    document = status_document([make_job()], [OK], daemon=DAEMON, now=NOW)
    lines = status_text(document, replace(view, brief=True))
    assert lines[-2] == "│ leonardo/4711 │ RUNNING │ 1h00m   │ tokenise │"


@pytest.mark.parametrize(
    ("job", "text"),
    [
        ({"state": "RUNNING", "native_state": "COMPLETING"}, "RUNNING (COMPLETING)"),
        ({"state": "RUNNING", "native_state": "running"}, "RUNNING"),
        ({"state": "CANCELLED", "native_state": "CANCELLED by 0"}, "CANCELLED by 0"),
        ({"state": "LOST", "native_state": ""}, "LOST"),
        ({"state": "RUNNING", "native_state": "RUNNING", "stale": True}, "RUNNING (stale)"),
        (
            {"state": "FAILED", "native_state": "FAILED", "ended_at": "2026-11-29T11:59:30Z"},
            "FAILED 30s ago",
        ),
        (
            {"state": "UNKNOWN", "native_state": "", "ended_at": "2026-11-29T11:00:00Z"},
            "UNKNOWN 1h00m ago",
        ),
    ],
)
def test_the_source_s_own_word_is_always_shown(view, job, text):
    assert state_cell(job, view) == text


@pytest.mark.parametrize("fit", [120, 80, 60])
def test_hostile_names_leave_the_report_aligned(make_job, view, fit):
    names = [
        "FAILED|x",
        "TIMEOUT",
        "$(touch /tmp/p)",
        "a\tb\nc",
        "\x1b[2J",
        "数据👨‍👩‍👧",
        "\udcff",
        "e\u0301",
    ]
    jobs = [make_job(str(i), facts={"name": name}) for i, name in enumerate(names)]
    lines = status_text(status_document(jobs, [OK], daemon=DAEMON, now=NOW), replace(view, fit=fit))
    table = lines[lines.index("Catch-all") + 1 :]
    assert len(table) == len(names) + 4
    assert {wcswidth(line) for line in table} == {wcswidth(table[0])}
    assert wcswidth(table[0]) <= fit
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for line in lines for c in line)


def test_what_is_wrong_with_files_is_told_below_the_daemon(view):
    problems = [f"/f{n}.json: not JSON\x1b" for n in range(7)]
    off = ClusterHealth("mare", "slurm", False, "inactive", NOW - HOUR, notes="until Tuesday")
    document = status_document([], [off], daemon={**DAEMON, "problems": problems}, now=NOW)
    lines = status_text(document, view)
    assert lines[1] == "problem: /f0.json: not JSON\\x1b"
    assert lines[6:8] == ["and 2 more", "mare: inactive, its jobs are not polled (until Tuesday)"]
