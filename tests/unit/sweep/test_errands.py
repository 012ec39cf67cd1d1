"""Commands of follow-ups: once each, never by a shell, their outcome kept."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from jobmond.model.outcome import Followup
from jobmond.sweep.errands import INTERRUPTED, Errand, Errands, filled
from jobmond.transports._process import Said, said
from tests.unit.builders import NOW

OWED = Followup(3, "cleanup", "lab/4711", "remove the tree", NOW, evidence={"path": "/s/a b;$(x)"})


class Ledger:
    def __init__(self, *owed):
        self.owed = {one.id: one for one in owed}
        self.trail = []

    def followups(self, *, all=False):
        return [one for one in self.owed.values() if one.state == "open"]

    def note_followup(self, followup_id, evidence):
        one = self.owed[followup_id]
        self.owed[followup_id] = replace(one, evidence={**one.evidence, **evidence})

    def audit(self, *, at, uid, action, subject=None, detail=None):
        self.trail.append((action, subject, detail))

    def command(self, number=3):
        return self.owed[number].evidence.get("command")


class Clock:
    at = NOW

    def now(self):
        self.at += timedelta(seconds=1)
        return self.at

    def monotonic(self):
        return self.at.timestamp()


@dataclass
class Program:
    """Says what a test wants, and remembers how it was called."""

    answer: object = field(default_factory=lambda: Said(0, b"removed 3\n", b""))
    calls: list = field(default_factory=list)

    async def __call__(self, command, *, timeout_s, grace_s, env=None):
        self.calls.append((list(command), timeout_s, env))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def call(fn, /, *args, **kw):
    return fn(*args, **kw)


async def rounds(ledger, program, *commands, times=1, kind="cleanup"):
    errands = Errands(ledger, call, Clock(), program, env={"PATH": "/bin"})
    for _ in range(times):
        errands.wake({kind: Errand(commands or ("/bin/clean", "{path}", "--job={ref}"), 60.0)})
        await errands.idle()
    return errands


async def test_arguments_are_words_whatever_is_in_them():
    ledger, program = Ledger(OWED), Program()
    await rounds(ledger, program)
    ((words, timeout_s, env),) = program.calls
    assert words == ["/bin/clean", "/s/a b;$(x)", "--job=lab/4711"]
    assert timeout_s == 60.0
    assert env == {
        "PATH": "/bin",
        "JOBMOND_FOLLOWUP_ID": "3",
        "JOBMOND_FOLLOWUP_REF": "lab/4711",
    }


async def test_the_outcome_is_kept_and_it_runs_once():
    ledger, program = (
        Ledger(OWED),
        Program(Said(4, b"", b"x\ntoken=hf_abcdefghijklmnopqrstuvwxyz12\n")),
    )
    await rounds(ledger, program, times=3)
    assert len(program.calls) == 1
    outcome = ledger.command()
    assert (outcome["program"], outcome["status"]) == ("/bin/clean", 4)
    assert outcome["began_at"] < outcome["ended_at"]
    assert "hf_abc" not in outcome["said"]
    assert [(action, subject) for action, subject, _ in ledger.trail] == [
        ("followup-command", "lab/4711")
    ] * 2
    assert ledger.owed[3].state == "open", "only the tree's end closes a cleanup"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TimeoutError(), "did not end within 60 s, and was ended"),
        (FileNotFoundError(2, "No such file"), "cannot be started: No such file"),
    ],
)
async def test_a_command_that_fails_is_told(error, told):
    ledger = Ledger(OWED)
    await rounds(ledger, Program(error))
    assert ledger.command()["error"] == told


async def test_only_what_is_configured_and_may_be_done_runs():
    held = replace(OWED, id=4, evidence={**OWED.evidence, "held": "90 of 100 steps"})
    other = replace(OWED, id=5, kind="zombie")
    done = replace(OWED, id=6, state="closed")
    ledger, program = Ledger(held, other, done), Program()
    await rounds(ledger, program)
    assert program.calls == []
    errands = Errands(Ledger(OWED), call, Clock(), program, env={})
    errands.wake({})
    await errands.idle()
    assert program.calls == []


async def test_without_a_tree_nothing_is_removed():
    ledger, program = Ledger(replace(OWED, evidence={})), Program()
    await rounds(ledger, program)
    assert program.calls == []
    assert ledger.command()["error"] == "not run: no tree is known"
    assert filled(["c", "{id}"], replace(OWED, evidence={})) == ["c", "3"]


async def test_what_a_crash_cut_off_is_not_repeated():
    begun = {"program": "/bin/clean", "began_at": "2026-11-29T12:00:00Z"}
    ledger = Ledger(replace(OWED, evidence={**OWED.evidence, "command": begun}))
    program = Program()
    await rounds(ledger, program, times=2)
    assert program.calls == []
    assert ledger.command()["error"] == INTERRUPTED


async def test_nothing_waits_for_a_command_and_stopping_ends_it():
    began, ended = asyncio.Event(), asyncio.Event()

    async def lasts(command, *, timeout_s, grace_s, env=None):
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    ledger = Ledger(OWED)
    errands = Errands(ledger, call, Clock(), lasts, env={})
    errands.wake({"cleanup": Errand(("x",), 600.0)})
    assert not began.is_set()
    await began.wait()
    await errands.stop()
    assert ended.is_set()
    assert "ended_at" not in ledger.command()
    errands.wake({"cleanup": Errand(("x",), 600.0)})
    await errands.idle()
    assert "ended_at" not in ledger.command()


async def test_a_real_program_gets_its_words_unchanged(tmp_path):
    ledger = Ledger(OWED)
    errands = Errands(ledger, call, Clock(), said, env={"PATH": "/usr/bin:/bin"})
    errands.wake({"cleanup": Errand(("printf", "%s", "{path}"), 30.0)})
    await errands.idle()
    assert (ledger.command()["status"], ledger.command()["said"]) == (0, "/s/a b;$(x)")
