"""An end is looked into at once, and for three sweeps more where the log was not to be had."""

from jobmond.model.job import LogEvidence
from jobmond.model.observation import Absent, LogTail, NotApplicable, Read, Unavailable
from jobmond.model.state import PostMortem, State
from jobmond.sweep.postmortem import autopsy, evidence
from tests.unit.builders import NOW, at, job

TRACE = b'step 1\nTraceback (most recent call last):\n  File "t.py", line 1\nValueError: no\n'


def read(tail=TRACE, size=None, offset=0):
    size = len(tail) if size is None else size
    return Read(LogTail("/l.out", size, 7, at(-1), offset, tail), NOW)


def failed(**changes):
    return job(state=State.FAILED, native="FAILED", tracked=False, ended_at=at(-2), **changes)


def look(over, reading, *, ended_now=False, sweeps=3):
    return autopsy(over, reading, ended_now=ended_now, agent_logs="/a", sweeps=sweeps, now=NOW)


def test_with_a_log_the_first_look_is_the_last():
    found = look(failed(), read(), ended_now=True)
    assert found.job.post_mortem is PostMortem.DONE
    assert found.job.diagnosis.cause == "python-exception"
    assert found.job.agent_log == "/a/2026-11-29/lab-4711-train.md"
    assert "ValueError: no" in found.entry
    assert not found.cause_changed


def test_without_one_the_entry_stands_and_the_log_is_looked_for_three_sweeps_more():
    over = failed()
    first = look(over, Unavailable("connection lost"), ended_now=True)
    assert first.entry is not None
    assert first.job.post_mortem is PostMortem.PENDING
    stages = []
    current = first.job
    for _ in range(3):
        again = look(current, Absent(("/l.out",)))
        current = again.job
        stages.append((current.post_mortem, again.entry))
    assert stages == [
        (PostMortem.PENDING, None),
        (PostMortem.PENDING, None),
        (PostMortem.GIVEN_UP, None),
    ]


def test_a_log_that_turns_up_later_rewrites_the_entry_and_is_news_if_the_cause_changed():
    first = look(failed(), Unavailable("x"), ended_now=True).job
    assert first.diagnosis.cause == "unknown"
    later = look(first, read())
    assert later.cause_changed
    assert later.job.post_mortem is PostMortem.DONE
    assert later.job.agent_log == first.agent_log
    assert "ValueError: no" in later.entry


def test_a_log_that_adds_nothing_is_no_news():
    first = look(failed(), Unavailable("x"), ended_now=True).job
    later = look(first, read(b"nothing of note\n"))
    assert not later.cause_changed
    assert later.job.post_mortem is PostMortem.DONE


def test_a_sweep_that_could_not_ask_does_not_count():
    first = look(failed(), Unavailable("x"), ended_now=True).job
    assert look(first, NotApplicable()).job == first


def test_an_empty_log_is_looked_at_again():
    assert look(failed(), read(b""), ended_now=True).job.post_mortem is PostMortem.PENDING


def test_what_the_log_showed():
    seen = evidence(LogEvidence(), read(b"a\nloss 1.2\x1b[0m\n\n"), now=NOW)
    assert (seen.status, seen.path, seen.size_bytes, seen.last_line) == (
        "read",
        "/l.out",
        16,
        "loss 1.2",
    )
    assert evidence(LogEvidence(), read(b""), now=NOW).status == "empty"


def test_a_look_that_failed_keeps_what_was_known():
    known = evidence(LogEvidence(), read(), now=NOW)
    lost = evidence(known, Unavailable("permission denied"), now=at(15))
    assert (lost.status, lost.error, lost.size_bytes) == (
        "unavailable",
        "permission denied",
        known.size_bytes,
    )
    gone = evidence(known, Absent(("/l.out", "/w/*_4711.out")), now=at(15))
    assert (gone.status, gone.error) == ("absent", "looked for /l.out, /w/*_4711.out")
    assert evidence(known, NotApplicable(), now=at(15)) == known
