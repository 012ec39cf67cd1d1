"""Commands that go on: wait, events --follow, logs -f. Time passes only in the double."""

import json

import pytest

QUIET = {"events": [], "last": "k0"}
EVENT = {
    "key": "k1",
    "at": "2026-11-29T12:00:00Z",
    "severity": "alarm",
    "title": "tokenise FAILED",
    "job": {"ref": "leonardo/4711"},
}


def test_wait_for_the_end(fake, ctl, job):
    fake.on("GET /v1/job", {"job": job()}, {"job": job(state="COMPLETED", exit_code=0)})
    fake.on("GET /v1/events", {"events": [EVENT], "last": "k1"})
    result = ctl("wait", "4711")
    assert (result.exit_code, result.stdout) == (0, "leonardo/4711 COMPLETED, exit code 0\n")
    assert fake.queries("GET /v1/job") == [{"job": "4711"}, {"job": "leonardo/4711"}]
    assert fake.queries("GET /v1/events") == [
        {"since": "2026-11-29T12:00:00Z", "wait_s": "30", "limit": "1000"}
    ]


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "TIMEOUT", "LOST", "PREEMPTED"])
def test_another_end_is_exit_code_1(fake, ctl, job, state):
    fake.on("GET /v1/job", {"job": job(state=state)})
    assert ctl("wait", "4711").exit_code == 1


def test_one_bad_end_among_several_is_exit_code_1_but_all_are_waited_for(fake, ctl, job):
    def answer(query, _):
        ref = query["job"]
        waited = len(fake.queries("GET /v1/events"))
        state = "FAILED" if ref == "a/1" else ("COMPLETED" if waited else "RUNNING")
        return {"job": job(ref, state=state)}

    fake.on("GET /v1/job", answer)
    fake.on("GET /v1/events", QUIET)
    result = ctl("wait", "a/1", "a/2")
    assert result.exit_code == 1
    assert result.stdout == "a/1 FAILED\na/2 COMPLETED\n"


def test_a_job_that_nobody_asks_about_is_not_waited_for(fake, ctl, job):
    fake.on("GET /v1/job", {"job": job(asked_about=False)})
    result = ctl("wait", "4711")
    assert result.exit_code == 1
    assert result.stdout == (
        "leonardo/4711 RUNNING, and nobody asks about it: leonardo is not in the configuration\n"
    )


def test_timeout(fake, ctl, job, time):
    fake.on("GET /v1/job", {"job": job()})
    fake.on("GET /v1/events", QUIET)
    result = ctl("wait", "4711", "--timeout", "3s")
    assert result.exit_code == 5
    assert result.stderr == "jobmonctl: leonardo/4711 is still RUNNING\n"
    assert time.passed_s == 3
    assert [q["wait_s"] for q in fake.queries("GET /v1/events")] == ["3", "2", "1"]


def test_a_successor_is_waited_for(fake, ctl, job):
    def answer(query, _):
        if query["job"] in ("4711", "leonardo/4711"):
            return {"job": job(state="TIMEOUT", successor="leonardo/4712")}
        waited = len(fake.queries("GET /v1/events"))
        return {"job": job("leonardo/4712", state="COMPLETED" if waited else "PENDING")}

    fake.on("GET /v1/job", answer)
    fake.on("GET /v1/events", QUIET)
    result = ctl("wait", "4711")
    assert (result.exit_code, result.stdout) == (0, "leonardo/4712 COMPLETED\n")


def test_successors_that_go_round_in_a_circle_end(fake, ctl, job):
    def answer(query, _):
        other = {"a/1": "a/2", "a/2": "a/1"}[query["job"]]
        return {"job": job(query["job"], state="TIMEOUT", successor=other)}

    fake.on("GET /v1/job", answer)
    assert ctl("wait", "a/1").exit_code == 1


@pytest.mark.parametrize(
    ("until", "changes", "code"),
    [
        ("running", {"state": "RUNNING"}, 0),
        ("RUNNING", {"state": "COMPLETED"}, 0),  # it has been running
        ("RUNNING", {"state": "FAILED"}, 1),
        ("FAILED", {"state": "FAILED"}, 0),
        ("FAILED", {"state": "COMPLETED"}, 1),
        ("step=10", {"state": "RUNNING", "step": 10}, 0),
        ("step=10", {"state": "FAILED", "step": 9}, 1),
        ("step=10", {"state": "FAILED", "step": 12}, 0),
        ("step=10", {"state": "COMPLETED", "step": None}, 0),
        ("end", {"state": "RUNNING", "tracked": False}, 1),
    ],
)
def test_until(fake, ctl, job, *, until, changes, code):
    fake.on("GET /v1/job", {"job": job(**changes)})
    assert ctl("wait", "4711", "--until", until).exit_code == code


@pytest.mark.parametrize(
    "words", [("--until", "runing"), ("--until", "step=x"), ("--timeout", "soon")]
)
def test_wait_usage(fake, ctl, words):
    result = ctl("wait", "4711", *words)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


def test_an_unknown_job_is_not_waited_for(fake, ctl):
    fake.on("GET /v1/job", (404, {"error": "unknown job 'x'", "exit_code": 1}))
    assert ctl("wait", "x").exit_code == 1


def test_a_daemon_that_restarts_does_not_end_a_wait(fake, ctl, job, time):
    gone = (200, b"not json")
    fake.on("GET /v1/job", {"job": job()}, gone, gone, {"job": job(state="COMPLETED")})
    fake.on("GET /v1/events", gone)
    result = ctl("wait", "4711")
    assert result.exit_code == 0
    assert time.pauses == [5, 5]
    assert result.stderr.count("waiting for it") == 1


def test_a_daemon_that_stays_away_does(fake, ctl, job):
    gone = (200, b"not json")
    fake.on("GET /v1/job", {"job": job()}, gone)
    fake.on("GET /v1/events", gone)
    assert ctl("wait", "4711").exit_code == 3


def test_no_daemon_at_all_is_said_at_once(ctl, time):
    assert ctl("wait", "4711").exit_code == 3
    assert time.pauses == []


def test_events(fake, ctl):
    fake.on("GET /v1/events", {"events": [EVENT], "last": "k1"})
    assert ctl("events", "--since", "1h").stdout == (
        "13:00  alarm  leonardo/4711  tokenise FAILED\n"
    )
    assert json.loads(ctl("events", "--after", "k0", "--json").stdout) == EVENT
    assert fake.queries("GET /v1/events") == [
        {"since": "2026-11-29T11:00:00Z", "limit": "1000"},
        {"after": "k0", "limit": "1000"},
    ]


def test_events_come_page_by_page(fake, ctl):
    page = {"events": [EVENT] * 1000, "last": "k1000"}
    fake.on("GET /v1/events", page, {"events": [EVENT], "last": "k1001"})
    assert ctl("events", "--since", "1d").stdout.count("\n") == 1001
    assert fake.queries("GET /v1/events")[1] == {"after": "k1000", "limit": "1000"}


def test_following_goes_on_over_a_restart_and_misses_nothing(fake, ctl, time):
    def stop():
        if len(time.pauses) == 2:
            raise KeyboardInterrupt

    time.on_pause = stop
    second = {**EVENT, "title": "second"}
    fake.on(
        "GET /v1/events",
        {"events": [EVENT], "last": "k1"},
        (200, b"not json"),
        {"events": [second], "last": "k2"},
        QUIET,
    )
    result = ctl("events", "--follow")
    assert result.exit_code == 130
    assert [line.split()[-1] for line in result.stdout.splitlines()] == ["FAILED", "second"]
    assert fake.queries("GET /v1/events") == [
        {"since": "2026-11-29T12:00:00Z", "limit": "1000"},
        {"after": "k1", "limit": "1000", "wait_s": "30"},
        {"after": "k1", "limit": "1000", "wait_s": "30"},
        {"after": "k2", "limit": "1000", "wait_s": "30"},
    ]


PART = {"path": "/logs/x", "status": "read", "text": "", "offset": 0, "next": 5, "size": 5}


def test_logs_are_made_safe(fake, ctl):
    text = "a\x1b[31m\r 10%\r 20%\r\nb\tc\n"
    fake.on("GET /v1/job/log", {**PART, "text": text})
    result = ctl("logs", "4711", "-n", "7")
    assert result.stdout == "a\\x1b[31m\n 10%\n 20%\nb\tc\n"
    assert fake.queries("GET /v1/job/log") == [{"job": "4711", "n": "7"}]


def test_a_log_that_cannot_be_read_is_said(fake, ctl):
    fake.on(
        "GET /v1/job/log", {**PART, "status": "unavailable", "text": None, "error": "timed out"}
    )
    result = ctl("logs", "4711")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "jobmonctl: log unavailable (/logs/x): timed out\n"


def test_following_a_log_ends_with_the_job_and_after_its_last_line(fake, ctl, job, time):
    fake.on(
        "GET /v1/job/log",
        {**PART, "text": "one\n"},
        {**PART, "text": "two\n", "next": 10},
        {**PART, "text": "last\n", "next": 15},
        {**PART, "text": "", "next": 15},
    )
    fake.on("GET /v1/job", {"job": job()}, {"job": job(state="FAILED")})
    result = ctl("logs", "4711", "-f")
    assert result.stdout == "one\ntwo\nlast\n"
    assert [q.get("after") for q in fake.queries("GET /v1/job/log")] == [None, "5", "10", "15"]
    assert time.pauses == [5, 0, 0]
