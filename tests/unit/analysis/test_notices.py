"""News: what is told, how loud, and under which key."""

from dataclasses import replace

import pytest

from jobmond.analysis import notices
from jobmond.analysis.mask import mask
from jobmond.model.job import Choices, ClusterHealth
from jobmond.model.observation import Facts
from jobmond.model.outcome import Diagnosis, Signal, Transition
from jobmond.model.state import Severity, State
from tests.unit.builders import NOW, at, job, unseen


def went(before, after):
    return Transition(NOW, before, after, after.value)


@pytest.mark.parametrize(
    ("after", "level"),
    [
        (State.FAILED, Severity.ALARM),
        (State.OUT_OF_MEMORY, Severity.ALARM),
        (State.NODE_FAIL, Severity.ALARM),
        (State.LOST, Severity.ALARM),
        (State.TIMEOUT, Severity.ALARM),
        (State.PREEMPTED, Severity.WATCH),
        (State.UNKNOWN, Severity.WATCH),
        (State.COMPLETED, Severity.INFO),
        (State.CANCELLED, Severity.INFO),
        (State.RUNNING, Severity.INFO),
        (State.PENDING, Severity.INFO),
    ],
)
def test_how_loud_an_end_is(after, level):
    assert notices.severity(after) is level


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"state": State.RUNNING}, False),
        ({"state": State.PENDING}, False),
        ({"state": State.COMPLETED}, True),
        ({"state": State.FAILED}, True),
        ({"state": State.PENDING, "facts": Facts(held=True)}, True),
        (
            {
                "state": State.RUNNING,
                "native": "RUNNING",
                "choices": Choices(last_status="PENDING"),
            },
            True,
        ),
        (
            {
                "state": State.RUNNING,
                "native": "RUNNING",
                "choices": Choices(last_status="RUNNING"),
            },
            False,
        ),
    ],
)
def test_the_first_sighting_is_news_only_if_it_tells_something(change, told):
    first = replace(unseen(), **change)
    assert notices.worth_telling(first, went(None, first.state)) is told


def test_a_later_transition_always_is():
    assert notices.worth_telling(job(), went(State.PENDING, State.RUNNING))


def test_a_failure_in_full():
    failed = job(
        state=State.FAILED,
        native="FAILED",
        facts=Facts(name="train\x1b[31m", exit_code=3, elapsed_s=4210, nodes="n[1-4]"),
        diagnosis=Diagnosis("python-exception", "ValueError: no"),
        agent_log="/a/2026-11-29/lab-4711-train.md",
        proof="sacct",
        transitions=2,
    )
    news = notices.transition_news(failed, went(State.RUNNING, State.FAILED), at=NOW)
    assert news.key == "lab/4711@100#2"
    assert news.payload == {
        "schema": 1,
        "at": "2026-11-29T12:00:00Z",
        "type": "transition",
        "severity": "alarm",
        "job": {"ref": "lab/4711", "name": "train\\x1b[31m", "bucket": "other", "run": "train"},
        "before": "RUNNING",
        "after": "FAILED",
        "native": "FAILED",
        "correction": False,
        "title": "lab/4711 (train\\x1b[31m): RUNNING → FAILED (exit code 3): ValueError: no",
        "body": "native FAILED; elapsed 1h10m; nodes n[1-4]; proof sacct",
        "diagnosis": {
            "cause": "python-exception",
            "summary": "ValueError: no",
            "line": None,
            "first_line": None,
            "offset": None,
            "excerpt": [],
            "fingerprint": None,
            "victims": None,
        },
        "agent_log": "/a/2026-11-29/lab-4711-train.md",
    }


@pytest.mark.parametrize("name", ["password", "read ../etc/passwd", "api_key", "my-secret"])
def test_a_name_that_sounds_like_a_secret_does_not_hide_the_verdict(name: str):
    failed = job(facts=Facts(name=name), state=State.FAILED)
    news = notices.transition_news(failed, went(State.RUNNING, State.FAILED), at=NOW)
    assert mask(news.payload["title"]) == f"lab/4711 ({name}): RUNNING → FAILED"


@pytest.mark.parametrize(
    ("state", "code", "summary", "title"),
    [
        (State.LOST, None, "LOST; nothing says why", "LOST: nothing says why"),
        (
            State.FAILED,
            4,
            "FAILED with exit code 4; the log holds nothing that says why. No log was read.",
            "FAILED (exit code 4): the log holds nothing that says why. No log was read.",
        ),
        (State.FAILED, 4, "FAILED", "FAILED (exit code 4): FAILED"),
        (State.LOST, None, "gone; and away", "LOST: gone; and away"),
    ],
)
def test_a_title_says_state_and_code_once(state, code, summary, title):
    diagnosis = Diagnosis("unknown", summary)
    ended = job(facts=Facts(name="train", exit_code=code), state=state, diagnosis=diagnosis)
    news = notices.transition_news(ended, went(State.RUNNING, state), at=NOW)
    assert news.payload["title"] == f"lab/4711 (train): RUNNING → {title}"


def test_the_key_is_the_same_however_often_it_is_composed_and_new_for_each_transition():
    first = notices.transition_news(job(transitions=2), went(None, State.RUNNING), at=NOW)
    again = notices.transition_news(job(transitions=2), went(None, State.RUNNING), at=at(5))
    later = notices.transition_news(job(transitions=3), went(None, State.RUNNING), at=NOW)
    assert first.key == again.key != later.key


def test_a_chain_restart_names_the_successor_and_is_calm():
    ended = job(state=State.TIMEOUT, native="TIMEOUT", successor="lab/4712")
    news = notices.restart_news(
        ended,
        went(State.RUNNING, State.TIMEOUT),
        after=State.RUNNING,
        successor="lab/4712",
        at=NOW,
    )
    assert (news.type, news.severity) == ("restart", Severity.INFO)
    assert news.payload["successor"] == "lab/4712"
    assert news.payload["title"] == "lab/4711 (train): timeout, continues as lab/4712"


def test_a_requeue_tells_the_ended_and_the_new_state():
    ended = job(state=State.NODE_FAIL, native="NODE_FAIL")
    news = notices.restart_news(
        ended,
        went(State.RUNNING, State.NODE_FAIL),
        after=State.PENDING,
        successor="lab/4711",
        at=NOW,
    )
    assert (news.payload["before"], news.payload["after"]) == ("NODE_FAIL", "PENDING")
    assert news.payload["successor"] == "lab/4711"


def test_signals_come_and_go_under_their_own_keys():
    signal = Signal("held", Severity.WATCH, "held", {"reason": "JobHeldUser"}, opened_at=at(-5))
    came = notices.signal_news(job(), signal, "signal", at=NOW)
    went_ = notices.signal_news(job(), signal, "cleared", at=NOW)
    assert came.key != went_.key
    assert (came.severity, went_.severity) == (Severity.WATCH, Severity.INFO)
    assert came.payload["signal"]["rule"] == "held"
    assert "recovered_at" not in came.payload["signal"]


def test_secrets_and_control_characters_never_leave():
    leaky = job(
        state=State.FAILED,
        facts=Facts(name="x", reason="token=hf_abcdefghijklmnopqrstuvwxyz0123 \x07"),
    )
    news = notices.transition_news(leaky, went(State.RUNNING, State.FAILED), at=NOW)
    assert "hf_abcdefghijklmnop" not in news.payload["body"]
    assert "\x07" not in news.payload["body"]


def health(status, **more):
    return ClusterHealth("lab", "slurm", True, status, since=NOW, **more)


def test_a_clusters_trouble_says_what_helps():
    bad = health("needs-login", error="host key changed", remedy="ssh-keygen -R login")
    news = notices.cluster_news(health("ok"), bad, at=NOW)
    assert (news.severity, news.ref) == (Severity.ALARM, None)
    assert news.payload["body"] == "host key changed Try: ssh-keygen -R login"
    assert (news.payload["before"], news.payload["after"]) == ("ok", "needs-login")
    assert news.payload["job"] is None


def test_its_end_says_how_long_it_took():
    news = notices.cluster_news(health("unreachable"), health("ok"), at=at(90))
    assert news.payload["title"] == "cluster lab: ok again, after 1h30m"
    assert news.severity is Severity.INFO
