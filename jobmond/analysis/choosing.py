"""Which of all that was said is the cause."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from jobmond.analysis.diagnoser import Evidence, diagnose_chunks
from jobmond.analysis.faults.fault import Role
from jobmond.analysis.fingerprint import fingerprint
from jobmond.analysis.ledger import Event
from jobmond.analysis.loglines import clipped
from jobmond.analysis.mask import mask
from jobmond.analysis.pulse import SURVIVED
from jobmond.analysis.saying import saying
from jobmond.analysis.visible import visible
from jobmond.model.outcome import Diagnosis
from jobmond.model.state import State

_SAID_CHARS = 300
_LINE_CHARS = 1_000
_LAST_WORDS = 2  # pieces that may follow the last exception of a program

_BY_STATE = {
    State.OUT_OF_MEMORY: ("host-oom", "the job was killed for its memory"),
    State.TIMEOUT: ("walltime", "the job reached its time limit"),
    State.NODE_FAIL: ("node-failure", "a node of the job failed"),
    State.PREEMPTED: ("preempted", "the job was preempted"),
}
_BY_REASON = (
    (re.compile(r"OOMKilled|OutOfMemory"), "host-oom"),
    (re.compile(r"DeadlineExceeded|TimeLimit"), "walltime"),
    (re.compile(r"Evicted|Preempt"), "preempted"),
    (re.compile(r"NodeFail|NodeLost|NodeDown"), "node-failure"),
    (re.compile(r"^Scheduling timeout exceeded"), "unschedulable"),  # iris
)
_SAYING = {
    **dict(_BY_STATE.values()),
    "unschedulable": "no place for the job was found in time",
}
_SIGNALS = {
    7: ("segfault", "SIGBUS"),
    9: ("sigkill", "SIGKILL"),
    11: ("segfault", "SIGSEGV"),
    15: ("sigterm", "SIGTERM"),
}
# By these words a program, or the script around it, says that it got to its end.
_GOOD = re.compile(
    r"\bexit(?:ed)?(?: with)?(?: (?:code|status))?[ :=]{0,3}0\.?$"
    r"|(?:leaving|exiting|finished|ended|done) with (?:exit )?code 0\b"
    r"|^Job '[\w-]{1,80}' succeeded$|finished: SUCCEEDED\b"
    r"|^={3,} (?!.*\b(?:failed|errors?)\b)[^=]*\bpassed\b[^=]* in [\d.:]+[^=]*={3,}$"
    r"|\{'train_runtime': [^{}]*\}$|^\*{5} train metrics \*{5}$"
    r"|Training completed\. Do not forget|\btraining (?:is )?(?:done|finished|complete)\b"
    r"|\ball \d+ (?:chunks|tasks|shards) (?:complete|done|finished)"
    r"|^\[traces\] (?:Exported|pushed|upload complete)|Results (?:written|saved) to "
    r"|Evaluation completed\b|Saving results aggregated|Complete invocation\. \d+ jobs submitted"
    r"|^requeued \d+|\brequeu?ing (?:the )?job\b|Reached max_? ?training[_ ]steps"
    r"|run is already COMPLETE|`Trainer\.fit` stopped: `max_",
    re.IGNORECASE,
)
# The training bar at its end: what is stopped after it was stopped because all is done.
_BAR_DONE = re.compile(
    rb"Training (?:Progress|Batches Processed|Step Progress)[^|\r\n]{0,20}100%"
    rb"\|[^|\r\n]{0,200}\| (\d+)/\1 "
)
_DIVERGED = frozenset({"nan-loss", "grad-explosion"})
_SHUTDOWN = frozenset(
    {"sigterm", "sigterm-agent", "slurm-cancelled", "interrupted", "sigkill", "ray-died"}
)
# Services hiccup: a record of one is a failure only where something ends after it.
_HICCUPS = frozenset({"network", "auth", "judge", "sandbox"})
# Ranks that wait say these; the one that made them wait may have said something long before.
_WAITING = frozenset({"nccl-timeout", "rendezvous", "nccl-system"})
# What the engine's own processes die of has this class; what names a resource keeps its own.
_UPGRADED = frozenset({"python-exception", "cuda-error", "segfault", "nccl-timeout"})


@dataclass(frozen=True, slots=True)
class Word:
    """What the scheduler says about the end. None where it says nothing (yet)."""

    state: State | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None

    @property
    def failed(self) -> bool:
        """Whether it says that the job did not do what it was asked for."""
        return self.state is not None and self.state not in (
            State.COMPLETED,
            State.RUNNING,
            State.PENDING,
            State.UNKNOWN,
        )


def diagnose_file(chunks: Iterable[bytes]) -> Diagnosis | None:
    """Why the job of a whole log failed, from the log alone; None where it proves no failure."""
    return choose(diagnose_chunks(chunks))


def choose(evidence: Evidence, word: Word | None = None) -> Diagnosis | None:
    """The cause of a failure; None where nothing proves one.

    Where the scheduler says that the job failed there is always an answer.
    """
    word = word or Word()
    case = _Case(evidence, word)
    event = case.cause()
    if word.state is State.COMPLETED and (event is None or event.fault.cause not in _DIVERGED):
        return None
    named = _named(word)
    if named and (event is None or event.fault.cause != named[0]):
        return _outside(named, event, evidence)
    weak = event is None or event.fault.role is Role.CONFIRMATION
    signalled = _signalled(word) if weak else None
    if signalled:
        return _outside(signalled, None, evidence)
    if event is not None:
        return _diagnosis(event, evidence, case.cause_class(event))
    return _unknown(word, evidence) if word.failed else None


class _Case:
    """One log and one word of the scheduler."""

    def __init__(self, evidence: Evidence, word: Word) -> None:
        self._evidence = evidence
        self._failed = word.failed
        events = [event for event in evidence.events if event.place >= evidence.born]
        self._good = None if word.failed else _good_end(evidence)
        self._bar = None if word.failed else _bar_end(evidence)
        if self._good is not None and any(
            event.fault.role is Role.CONFIRMATION and event.place > self._good for event in events
        ):
            self._good = None
        self._ends = [e.place for e in events if e.fault.role is Role.CONFIRMATION]
        self._caught = [event for event in events if event.caught and self._stands(event)]
        self._events = [event for event in events if not event.caught]
        self._alive = [event for event in self._events if self._stands(event)]

    def cause(self) -> Event | None:
        """The event that names the cause."""
        verdict = self._first(Role.VERDICT)
        roots = [event for event in self._alive if event.fault.role is Role.ROOT]
        return (
            verdict
            or (roots[0] if roots else None)
            or self._announced(Role.ROOT)
            or self._symptom()
            or self._announced(Role.SYMPTOM)
            or self._confirmed()
        )

    def cause_class(self, event: Event) -> str:
        """The class of `event`, given everything else that fired."""
        cause = event.fault.cause
        died = any(e.fault.cause == "engine-dead" for e in self._alive)
        return "engine-dead" if event.engine and died and cause in _UPGRADED else cause

    def _stands(self, event: Event) -> bool:
        """Whether the job did not go on, or end well, after it."""
        if event.key is not None:
            return True  # a metric that is not a number stands until it is one again
        if self._good is not None and (
            event.place < self._good
            or event.fault.id in _SHUTDOWN
            or event.fault.role in (Role.CONSEQUENCE, Role.CONFIRMATION)
            or event.text.startswith("a traceback that the log does not finish")
        ):
            return False
        if self._bar is not None and event.place > self._bar and event.fault.id in _SHUTDOWN:
            return False
        if event.logged and event.fault.cause in _HICCUPS and not self._proved(event):
            return False
        survived = self._evidence.marks - event.marks >= SURVIVED
        return event.section != self._evidence.sections or not survived

    def _first(self, role: Role) -> Event | None:
        return next((event for event in self._alive if event.fault.role is role), None)

    def _announced(self, role: Role) -> Event | None:
        """The last exception that a log record announced, where the program ended after it."""
        for event in reversed(self._caught):
            if event.fault.role is role and (self._failed or self._ended_after(event)):
                return event
        return None

    def _ended_after(self, event: Event) -> bool:
        return any(end > event.place for end in self._ends)

    def _proved(self, event: Event) -> bool:
        """Whether something says that the job failed after `event`, or nothing comes after it."""
        if self._failed or _last_words(event, self._evidence):
            return True
        return self._ended_after(event)

    def _symptom(self) -> Event | None:
        symptoms = [e for e in self._alive if e.fault.role is Role.SYMPTOM and self._backed(e)]
        best = min(symptoms, key=lambda e: (e.fault.weight, e.place), default=None)
        if best is not None and best.fault.id in _WAITING:
            return self._earlier(best) or best
        return best

    def _backed(self, event: Event) -> bool:
        """Whether what has to fire with it fired."""
        needs = event.fault.needs
        return not needs or any(e.fault.id in needs for e in self._alive)

    def _earlier(self, symptom: Event) -> Event | None:
        """A thread that died while the others went on for a while: its rank takes no more part."""
        dead = [
            event
            for event in self._events
            if event.fault.role is Role.ROOT and event.thread and event.place < symptom.place
        ]
        return dead[-1] if dead else None

    def _confirmed(self) -> Event | None:
        confirmed = self._first(Role.CONFIRMATION)
        consequence = next(
            (e for e in self._alive if e.fault.role is Role.CONSEQUENCE and e.exception), None
        )
        return confirmed and (consequence or confirmed)


def _good_end(evidence: Evidence) -> int | None:
    """The byte at which the last words begin by which a program says that all is done."""
    at, best = evidence.size_bytes - len(evidence.tail), None
    for raw in re.split(rb"(?<=[\r\n])", evidence.tail):
        if raw.strip():
            said = saying(raw.strip(b"\r\n"))
            if not said.quoted and _GOOD.search(said.text[-400:]):
                best = at
        at += len(raw)
    return best


def _bar_end(evidence: Evidence) -> int | None:
    """The byte at which the training bar was painted full."""
    start = evidence.size_bytes - len(evidence.tail)
    found = next(_BAR_DONE.finditer(evidence.tail), None)
    return start + found.start() if found else None


def _last_words(event: Event, evidence: Evidence) -> bool:
    """Whether next to nothing follows `event` in the log."""
    start = evidence.size_bytes - len(evidence.tail)
    if event.end < start:
        return False
    after = evidence.tail[event.end - start :]
    return sum(1 for part in re.split(rb"[\r\n]", after) if part.strip()) <= _LAST_WORDS


def _named(word: Word) -> tuple[str, str] | None:
    if word.state in _BY_STATE:
        return _BY_STATE[word.state]
    if word.reason and word.failed:
        for shape, cause in _BY_REASON:
            if shape.search(word.reason):
                return cause, _SAYING[cause]
    return None


def _signalled(word: Word) -> tuple[str, str] | None:
    number = word.signal
    if not number and word.exit_code and 128 < word.exit_code < 160:
        number = word.exit_code - 128
    known = _SIGNALS.get(number or 0)
    if known is None or not word.failed:
        return None
    cause, name = known
    if cause == "segfault":
        return cause, f"the program crashed with {name}"
    return cause, f"the job was ended by {name}, sender unknown"


def _outside(named: tuple[str, str], event: Event | None, evidence: Evidence) -> Diagnosis:
    """A cause that the scheduler names; the log may hold a line of it, and something else."""
    cause, said = named
    quote = next((e for e in evidence.events if e.fault.cause == cause), None)
    said = said[:1].upper() + said[1:]
    if event is not None and event.fault.cause != "unknown":
        said += f"; the log also holds: {event.text.rstrip('.')}"
    summary = clipped(_safe(said), _SAID_CHARS)
    if quote is None:
        signature = f"scheduler:-:-:{cause}"
        return Diagnosis(cause, summary, fingerprint=signature, victims=evidence.victims)
    return replace(_diagnosis(quote, evidence, cause), summary=summary)


def _diagnosis(event: Event, evidence: Evidence, cause: str) -> Diagnosis:
    said = clipped(_safe(event.text).strip().rstrip("."), _SAID_CHARS)
    return Diagnosis(
        cause=cause,
        summary=said if cause != "unknown" else f"{said}; nothing says why. {_looked(evidence)}",
        line=event.line,
        first_line=event.first_line,
        offset=event.offset,
        excerpt=_shown(event.excerpt),
        fingerprint=fingerprint(event.fault.id, event.text, event.frame),
        victims=evidence.victims,
    )


def _unknown(word: Word, evidence: Evidence) -> Diagnosis:
    how = word.state.value if word.state else "failed"
    if word.exit_code is not None:
        how += f" with exit code {word.exit_code}"
    if word.signal:
        how += f" and signal {word.signal}"
    code = "-" if word.exit_code is None else str(word.exit_code)
    return Diagnosis(
        cause="unknown",
        summary=f"{how}; the log holds nothing that says why. {_looked(evidence)}",
        fingerprint=f"unknown:-:-:exit{code}",
        victims=evidence.victims,
    )


def _looked(evidence: Evidence) -> str:
    if not evidence.size_bytes:
        return "The log is empty."
    parts = "parts of the log" if evidence.gaps else "the whole log"
    text = f"Looked at {parts}, {evidence.size_bytes} bytes"
    if evidence.benign:
        text += f"; {evidence.benign} lines that look bad are expected"
    return text + "."


def _safe(text: str) -> str:
    return visible(mask(text), keep="\t")


def _shown(excerpt: Sequence[str]) -> tuple[str, ...]:
    masked = mask("\n".join(visible(text, keep="\t") for text in excerpt)).split("\n")
    return tuple(clipped(line, _LINE_CHARS) for line in masked)
