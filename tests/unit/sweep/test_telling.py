"""What the journal hears of a sweep: each reason when it comes up."""

from types import SimpleNamespace
from typing import Any

from structlog.testing import capture_logs

from jobmond.analysis.settle import Move
from jobmond.model.commit import JobChange
from jobmond.model.job import LogEvidence
from jobmond.sweep.observe import Answers
from jobmond.sweep.telling import say, say_denied
from tests.unit.builders import job

LAB: Any = SimpleNamespace(name="lab")
FINE = Answers({}, (), {})
WHY = "permission: alice may not read /l.out"


def test_why_a_job_is_not_moved_is_said_once_for_each_reason() -> None:
    first, second = job(note="the queue says X"), job("4712")
    moves = [
        Move(first, first, error="the queue says X"),  # known from the sweep before
        Move(second, second, error="the queue says X"),
        Move(None, job("4713"), error="unreadable"),
        Move(job("4714"), job("4714")),
    ]
    with capture_logs() as said:
        say(LAB, FINE, moves)
    assert [(line["event"], line["job"], line["why"]) for line in said] == [
        ("not moved", "lab/4712", "the queue says X"),
        ("not moved", "lab/4713", "unreadable"),
    ]


def test_of_a_cluster_that_did_not_answer_only_complaints_are_said() -> None:
    answers = Answers({}, (), {}, trouble="timed out", complaints=("unknown state ODD",))
    with capture_logs() as said:
        say(LAB, answers, [Move(job(), job(), error="timed out")])
    assert [(line["event"], line["what"]) for line in said] == [
        ("not understood", "unknown state ODD")
    ]


def test_logs_that_may_not_be_read_are_one_line_for_each_reason() -> None:
    def denied(native_id: str) -> Any:
        return job(native_id, log=LogEvidence(status="unavailable", error=WHY))

    known = denied("4711")
    moves = [Move(known, known), Move(job("4712"), denied("4712")), Move(None, denied("4713"))]
    with capture_logs() as said:
        say_denied(LAB, moves, [JobChange(move.job) for move in moves])
        say_denied(LAB, moves[:1], [JobChange(known)])
    assert [(line["why"], line["jobs"]) for line in said] == [(WHY, "lab/4712 lab/4713")]
