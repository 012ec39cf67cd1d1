"""One job, several logs: which of them says why it failed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from jobmond.analysis.choosing import Word, choose
from jobmond.analysis.diagnoser import Evidence
from jobmond.analysis.faults.catalogue import BY_ID, GENERIC
from jobmond.analysis.faults.fault import Fault, Role
from jobmond.model.outcome import Diagnosis
from jobmond.model.state import State


class Part(StrEnum):
    """Whose log it is."""

    SERVER = "server"
    RANK = "rank"
    OUT = "out"
    ERR = "err"
    CLIENT = "client"
    LAUNCHER = "launcher"


_SHAPES = (
    (Part.SERVER, r"(?:^|[/_.-])(?:server|vllm|sglang|trtllm|nim|deploy\w*|engine)(?=[/_.-]|\d|$)"),
    (Part.CLIENT, r"(?:^|[/_.-])(?:client|eval\w*|harness)(?=[/_.-]|\d|$)"),
    (Part.RANK, r"rank[_.-]?\d+|attempt_\d+/\d+/|(?:^|[/_.-])task[_.-]?\d+|_\d+_\d+\.(?:out|log)$"),
    (Part.LAUNCHER, r"(?:^|[/_.-])(?:sbatch|launcher|torchrun|submit\w*)(?=[/_.-]|\d|$)"),
    (Part.ERR, r"\.err$|(?:^|[/_.-])stderr(?:[_.-]|$)|\.e\d+$"),
)  # fmt: skip
_PARTS = tuple((part, re.compile(shape)) for part, shape in _SHAPES)

# What a client says when the other side is gone; the other side knows why.
_OF_CLIENTS = frozenset({"network", "engine-dead", "judge", "unknown", "python-exception"})
_ORDER = {Role.VERDICT: 0, Role.ROOT: 10, Role.SYMPTOM: 20, Role.CONSEQUENCE: 30}
_LAST = 99
_STOPPED = 65  # symptoms from this weight on say only that somebody ended it
_TIES = (Part.SERVER, Part.RANK, Part.ERR, Part.OUT, Part.CLIENT, Part.LAUNCHER)


@dataclass(frozen=True, slots=True)
class Log:
    """One log of a job and what it says by itself."""

    path: str
    part: Part
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Found:
    """The cause, and the log that proves it; None where no log was given."""

    diagnosis: Diagnosis | None
    log: Log | None


def part_of(path: str) -> Part:
    """Whose log a path is, by the names that launchers give."""
    name = "/".join(path.lower().rsplit("/", 3)[-3:])
    return next((part for part, shape in _PARTS if shape.search(name)), Part.OUT)


def choose_over(logs: Sequence[Log], word: Word | None = None) -> Found:
    """The cause over all logs of a job, in the words of the log that proves it best.

    What somebody outside names comes first, then what a program names; a server that broke comes
    before the clients that miss it, a rank before its launcher. Of equal ones the first given
    stands, so give ranks in their order. `word` is the scheduler's.
    """
    word = word or Word()
    alone = Word(State.FAILED) if word.failed else Word()
    judged = [(choose(log.evidence, alone), log) for log in logs]
    broken = any(log.part is Part.SERVER and _broke(found) for found, log in judged)
    ranked = sorted(judged, key=lambda one: _key(*one, server_broke=broken))
    if not ranked:
        return Found(choose(_NOTHING, word), None)
    _, log = ranked[0]
    found = choose(log.evidence, word)
    if found is not None and found.victims is None and log.part is Part.RANK:
        others = sum(one.part is Part.RANK and _hurt(one, said) for said, one in judged) - 1
        found = replace(found, victims=others if others > 0 else None)
    return Found(found, log)


_NOTHING = Evidence(
    events=(), marks=0, sections=0, born=0, benign=0, victims=None, tail=b"", size_bytes=0
)


def _fault(found: Diagnosis) -> Fault | None:
    name = (found.fingerprint or "").partition(":")[0]
    known = {"nan-metric": "nan-said", "gradient-explosion": "nan-said"}
    return BY_ID.get(known.get(name, name)) or (GENERIC if "exception" in found.cause else None)


def _broke(found: Diagnosis | None) -> bool:
    """Whether it says why it went down, or at least that it did so by itself."""
    fault = _fault(found) if found is not None else None
    if fault is None or fault.role is Role.CONSEQUENCE or fault.role is Role.CONFIRMATION:
        return False
    return fault.role is not Role.SYMPTOM or fault.weight < _STOPPED


def _key(found: Diagnosis | None, log: Log, *, server_broke: bool) -> tuple[int, int, int]:
    tie = _TIES.index(log.part)
    fault = _fault(found) if found is not None else None
    if found is None or fault is None:
        return (_LAST + (found is None), 0, tie)
    order = _ORDER.get(fault.role, _LAST)
    weight = fault.weight if fault.role is Role.SYMPTOM else 0
    if fault is GENERIC:
        weight = 1  # an exception nobody knows says less than one that names its reason
    if server_broke and log.part is not Part.SERVER and found.cause in _OF_CLIENTS:
        order = max(order, _ORDER[Role.CONSEQUENCE])
    elif log.part is Part.SERVER and fault.role is Role.SYMPTOM and fault.weight < _STOPPED:
        order = _ORDER[Role.ROOT] + 1
    return (order, weight, tie)


def _hurt(log: Log, found: Diagnosis | None) -> bool:
    return found is not None or any(not event.caught for event in log.evidence.events)
