"""One job, several logs: which of them says why it failed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from jobmond.analysis.faults.catalogue import BY_ID, GENERIC
from jobmond.analysis.faults.fault import Fault, Role
from jobmond.model.outcome import Diagnosis


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
class Told:
    """What one log says by itself. `own` is the log that the job is known by; `hurt` says that
    something went wrong in it, be it only because of a peer.
    """

    path: str
    diagnosis: Diagnosis | None
    own: bool = False
    hurt: bool = False


def part_of(path: str) -> Part:
    """Whose log a path is, by the names that launchers give."""
    name = "/".join(path.lower().rsplit("/", 3)[-3:])
    return next((part for part, shape in _PARTS if shape.search(name)), Part.OUT)


def believed(told: Sequence[Told]) -> int | None:
    """Which of all logs of a job to believe; None where there is none.

    What somebody outside names comes first, then what a program names; a server that broke comes
    before the clients that miss it, a rank before its launcher. Of equal ones the first given
    stands, so give ranks in their order.
    """
    broken = any(part_of(one.path) is Part.SERVER and _broke(one.diagnosis) for one in told)
    ranked = sorted(range(len(told)), key=lambda place: _key(told[place], server_broke=broken))
    return ranked[0] if ranked else None


def other_ranks(told: Sequence[Told], chosen: int) -> int | None:
    """How many other ranks went down, where each has a log of its own."""
    if part_of(told[chosen].path) is not Part.RANK:
        return None
    others = (one for place, one in enumerate(told) if place != chosen)
    return sum(one.hurt and part_of(one.path) is Part.RANK for one in others) or None


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


def _key(told: Told, *, server_broke: bool) -> tuple[bool, bool, int, int, bool, int]:
    found, part = told.diagnosis, part_of(told.path)
    fault = _fault(found) if found is not None else None
    nowhere = found is None or (found.line is None and not found.excerpt)
    order, weight = _LAST, 0
    if found is not None and fault is not None:
        order = _ORDER.get(fault.role, _LAST)
        # An exception nobody knows says less than one that names its reason.
        weight = fault.weight if fault.role is Role.SYMPTOM else int(fault is GENERIC)
        if server_broke and part is not Part.SERVER and found.cause in _OF_CLIENTS:
            order = max(order, _ORDER[Role.CONSEQUENCE])
        elif part is Part.SERVER and fault.role is Role.SYMPTOM and fault.weight < _STOPPED:
            order = _ORDER[Role.ROOT] + 1
    unknown = found is None or found.cause == "unknown"
    return (unknown, nowhere, order, weight, not told.own, _TIES.index(part))
