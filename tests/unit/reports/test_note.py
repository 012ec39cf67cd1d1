import pytest

from jobmond.model.job import Choices, LogEvidence
from jobmond.model.observation import TaskCounts
from jobmond.model.outcome import Diagnosis, Signal
from jobmond.model.state import Severity, State
from jobmond.reports.note import alarming, note

CASES = {
    "what it is": ({}, "tokenise"),
    "a person's words for it": (
        {"choices": Choices(description="pretokenise the corpus")},
        "pretokenise the corpus",
    ),
    "the gravest signal and its action": (
        {
            "signals": (
                Signal("held", Severity.WATCH, "held by an admin", {}),
                Signal("zombie", Severity.ALARM, "all trials done", {}, action="cancel"),
            )
        },
        "all trials done, cancel; tokenise",
    ),
    "the log's last line": (
        {"log": LogEvidence("read", "/l", 9, last_line="pushed 40 shards")},
        "log: pushed 40 shards; tokenise",
    ),
    "no log": (
        {"log": LogEvidence("absent", "/l")},
        "no log at the path the source names; tokenise",
    ),
    "a log that may not be read": (
        {"log": LogEvidence("unavailable", "/l", error="permission: bob may not read /l")},
        "log could not be read: permission; tokenise",
    ),
    "a log that was not to be had": (
        {"log": LogEvidence("unavailable", "/l", error="connection lost")},
        "log could not be read; tokenise",
    ),
    "nobody has seen it": (
        {"state": State.PENDING, "seen_at": None},
        "not asked about yet; tokenise",
    ),
    "why it waits": (
        {"state": State.PENDING, "facts": {"reason": "Priority"}},
        "waiting: Priority; tokenise",
    ),
    "no reason is none": (
        {"state": State.PENDING, "facts": {"reason": "None"}},
        "waiting; tokenise",
    ),
    "held": (
        {"state": State.PENDING, "facts": {"held": True, "reason": "JobHeldUser"}},
        "held (JobHeldUser); tokenise",
    ),
    "what it waits for": (
        {"state": State.PENDING, "facts": {"dependency": "afterany:4710(unfulfilled)"}},
        "waits for afterany:4710(unfulfilled); tokenise",
    ),
    "suspended": ({"facts": {"suspended": True}}, "suspended; tokenise"),
    "parts": (
        {
            "facts": {
                "tasks": TaskCounts(4, {State.RUNNING: 3, State.FAILED: 1}, ("4711_2",)),
            }
        },
        "4 parts: 3 running, 1 failed (failed: 4711_2); tokenise",
    ),
    "a good end": ({"state": State.COMPLETED}, "no action; tokenise"),
    "a cause": (
        {
            "state": State.FAILED,
            "facts": {"exit_code": 1},
            "diagnosis": Diagnosis("import-error", "No module named torch"),
            "agent_log": "/a/2026-11-29/x.md",
        },
        "needs action: No module named torch (exit code 1); tokenise",
    ),
    "no cause, a code": (
        {
            "state": State.FAILED,
            "facts": {"exit_code": 3},
            "diagnosis": Diagnosis("unknown", "nothing found"),
        },
        "needs action: exit code 3; tokenise",
    ),
    "a signal": (
        {"state": State.FAILED, "facts": {"signal": 9, "exit_code": 137}},
        "needs action: signal 9; tokenise",
    ),
    "nothing said": ({"state": State.FAILED}, "needs action: no source says why; tokenise"),
    "out of memory": (
        {"state": State.OUT_OF_MEMORY, "facts": {"exit_code": 125}},
        "needs action: ran out of memory (exit code 125); tokenise",
    ),
    "a restart": (
        {"state": State.TIMEOUT, "successor": "leonardo/4712"},
        "no action: goes on as leonardo/4712; tokenise",
    ),
    "a requeue": (
        {"state": State.NODE_FAIL, "successor": "leonardo/4711"},
        "no action: goes on as leonardo/4711; tokenise",
    ),
    "a failure that something follows": (
        {"state": State.FAILED, "facts": {"exit_code": 1}, "successor": "leonardo/4712"},
        "needs action: exit code 1; tokenise; followed by leonardo/4712",
    ),
    "the end of a chain": (
        {"state": State.TIMEOUT},
        "needs action: ran into its time limit and nothing continues it; tokenise",
    ),
    "who cancelled": (
        {"state": State.CANCELLED, "native": "CANCELLED by 1000"},
        "no action: cancelled by 1000; tokenise",
    ),
    "preempted": (
        {"state": State.PREEMPTED},
        "look whether it is wanted: preempted and not queued again; tokenise",
    ),
    "lost": ({"state": State.LOST}, "needs action: no source knows it any more; tokenise"),
    "unknown": (
        {"state": State.UNKNOWN},
        "over or gone, and no source can tell how; see its log; tokenise",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_notes(make_job, case):
    changes, text = CASES[case]
    assert note(make_job(**changes)) == text


def test_a_name_that_is_only_the_id_says_nothing(make_job):
    assert note(make_job(facts={"name": None})) == ""


@pytest.mark.parametrize(
    ("state", "alarm"),
    [
        (State.FAILED, True),
        (State.OUT_OF_MEMORY, True),
        (State.NODE_FAIL, True),
        (State.LOST, True),
        (State.TIMEOUT, True),
        (State.PREEMPTED, False),
        (State.CANCELLED, False),
        (State.COMPLETED, False),
        (State.UNKNOWN, False),
        (State.RUNNING, False),
    ],
)
def test_what_an_end_asks_for(make_job, state, alarm):
    assert alarming(make_job(state=state)) is alarm
    assert not alarming(make_job(state=State.TIMEOUT, successor="leonardo/4712"))


def test_what_a_waiting_job_waits_for_comes_with_the_sources_own_words(make_job):
    facts = {"reason": "Unschedulable", "message": "0/1 nodes are available\nand more"}
    waiting = make_job(state=State.PENDING, facts=facts)
    assert "waiting: Unschedulable (0/1 nodes are available)" in note(waiting)


def test_what_was_last_seen_of_a_lost_job_is_in_its_note(make_job):
    facts = {"reason": "record-gone", "message": "last seen RUNNING"}
    lost = make_job(state=State.LOST, tracked=False, facts=facts)
    assert "needs action: record-gone: last seen RUNNING" in note(lost)
