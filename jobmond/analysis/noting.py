"""Lines and tracebacks of a log turned into events, each judged by the catalogue."""

import re
from dataclasses import replace

from jobmond.analysis.blocks import Block, Thrown
from jobmond.analysis.faults.catalogue import (
    BY_ID,
    GENERIC,
    match_exception,
    match_line,
    triggered,
)
from jobmond.analysis.faults.fault import Fault, Role
from jobmond.analysis.ledger import Event, Ledger
from jobmond.analysis.pieces import Piece
from jobmond.analysis.pulse import may_be_nan
from jobmond.analysis.saying import Saying

NAN = replace(
    BY_ID["nan-said"],
    id="nan-metric",
    needles=(),
    pattern=None,
    source="metric records of trainers",
    yes=(),
    no=(),
)
SPIKE = replace(NAN, id="gradient-explosion", cause="grad-explosion")
UNFINISHED = replace(GENERIC, id="unfinished-traceback", role=Role.SYMPTOM, weight=85)

LINE_CHARS = 2_000

_THREAD = re.compile(r"^Exception in thread |Task exception was never retrieved|^future: <Task")
_HARMLESS = re.compile(r"^Exception ignored in|^--- Logging error ---")
# A server says these of one request, and goes on.
_REQUEST = re.compile(
    r"Exception in ASGI application|Error in (?:preprocessing|applying|parsing|tokenizing) |"
    r"Error (?:while )?(?:processing|handling) (?:the )?request|"
    r"Exception on /\S{0,200} \[(?:GET|POST|PUT|DELETE)\]"
)
_ENGINE = re.compile(r"EngineCore|\((?:Worker_(?:TP|PP|DP)|VllmWorker)|Scheduler hit an exception")
_STOPPED = re.compile(
    r"Sending process (\d+) closing signal|^srun: error: (\S+): tasks? ([\d,\[\]-]+): Terminated"
)
_KILLING = re.compile(r"Killing subprocess (\d+)")
_LISTED = re.compile(r"^\s*exitcode\s*: -?\d+ \(pid: (\d+)\)")
_ROOT = re.compile(r"failed \(exitcode: -?\d+\) local_rank: \d+ \(pid: (\d+)\)")
# Lines that differ in numbers only and are still not all the same to us.
_COUNTED = re.compile(
    r"Sending process|Killing subprocess|exitcode|srun: error|==>|\.(?:log|out|err|txt)\b"
)
_CONFIG = re.compile(
    r"^\s*(?:[\"']?[\w.-]{1,60}[\"']?\s*[:=]\s*[\[{\"'].*[\"'\]}],?$|#)|^\s{2,}[\w.-]{1,60}: .*#"
)
_QUIET = frozenset({"DEBUG", "INFO", "WARNING"})


class Look:
    """What the catalogue says about one line, asked at most once."""

    def __init__(self, said: Saying) -> None:
        self._said = said
        self._asked = False
        self._fault: Fault | None = None
        self.close = False

    def hit(self) -> bool:
        """Whether a trigger stands in the line."""
        return triggered(self._said.text)

    def fault(self) -> Fault | None:
        """The entry that the line matches."""
        if not self._asked:
            self._asked = True
            self._fault, self.close = match_line(self._said.text[:LINE_CHARS])
        return self._fault

    def speaks(self) -> bool:
        """Whether the line says something of its own about a failure."""
        fault = self.fault() if self.hit() else None
        return fault is not None and fault.role is not Role.BENIGN

    def dull(self, raw: bytes) -> bool:
        """Whether all lines that differ from this one in numbers only say nothing either."""
        return not self.close and not may_be_nan(raw) and not _COUNTED.search(self._said.text)


def line_event(piece: Piece, said: Saying, fault: Fault | None) -> Event | None:
    """The event of a line outside of tracebacks; None where its writer shrugged it off."""
    text = said.text[:LINE_CHARS]
    if fault is None:
        return None
    if said.level in _QUIET and not fault.any_level:
        return None
    if fault.role in (Role.ROOT, Role.SYMPTOM) and _CONFIG.search(text):
        return None
    return event(piece, said, fault)


def event(piece: Piece, said: Saying, fault: Fault, key: str | None = None) -> Event:
    """An event of one line."""
    text = said.text[:LINE_CHARS]
    return Event(
        fault=fault,
        text=text,
        line=piece.line,
        first_line=piece.line,
        offset=piece.line_offset,
        place=piece.offset,
        end=piece.offset + len(piece.raw),
        excerpt=(f"{said.source} {text}" if said.source else text,),
        source=said.source,
        engine=_ENGINE.search(said.source) is not None,
        logged=said.level is not None,
        key=key,
    )


def block_event(block: Block) -> Event:
    """The event of a traceback."""
    fault, thrown = _judged(block)
    lead = block.lead
    if lead is not None and _HARMLESS.search(lead.text):
        fault = BY_ID["teardown"]
    announced = lead is not None and (
        lead.level == "WARNING"
        or BY_ID["recovered"].matches(lead.text, exception=False)
        or _REQUEST.search(lead.text[:LINE_CHARS]) is not None
    )
    return Event(
        fault=fault,
        text=thrown.text[:LINE_CHARS] if thrown else "a traceback that the log does not finish",
        line=thrown.line if thrown else block.first_line,
        first_line=block.first_line,
        offset=block.offset,
        place=block.place,
        end=block.end,
        excerpt=block.excerpt,
        source=block.source,
        frame=thrown.frame if thrown else None,
        exception=True,
        thread=lead is not None and _THREAD.search(lead.text) is not None,
        caught=announced and not block.main,
        engine=_ENGINE.search(f"{block.source} {block.intro}") is not None,
    )


def count_stopped(text: str, ledger: Ledger) -> None:
    """Notes the processes that a launcher says it stopped."""
    for found in _STOPPED.finditer(text):
        ledger.note(ledger.stopped, found[1] or f"{found[2]} {found[3]}")
    for found in _KILLING.finditer(text):
        ledger.note(ledger.killed, found[1])
    root = _ROOT.search(text)
    if root:
        ledger.roots.setdefault(root[1], None)
    listed = _LISTED.search(text)
    if listed:
        ledger.note(ledger.listed, listed[1])


def victims(ledger: Ledger) -> int | None:
    """How many processes went down because of another; None where the log counts none."""
    if ledger.killed:
        return max(0, len(ledger.killed) - 1) or None
    root = next(iter(ledger.roots), "")
    return len((ledger.stopped | ledger.listed) - {root}) or None


def _judged(block: Block) -> tuple[Fault, Thrown | None]:
    """Which of the exceptions of a block names its cause, and as what."""
    if not block.thrown:
        return UNFINISHED, None
    judged: list[tuple[Fault, Thrown]] = []
    for index, thrown in enumerate(block.thrown):
        if "RayTaskError(" in thrown.text[:60] and index + 1 < len(block.thrown):
            continue
        fault = match_exception(thrown.text[:LINE_CHARS])
        if fault is GENERIC and thrown.more:
            fault = match_exception("\n".join((thrown.text[:LINE_CHARS], *thrown.more)))
        judged.append((fault, thrown))
    return min(judged, key=lambda item: _order(item[0]))


def _order(fault: Fault) -> int:
    if fault.role is Role.BENIGN:
        return 0
    if fault is GENERIC:
        return 3
    # Of a chain the first that names a cause: what is raised from it says less.
    return 4 if fault.role in (Role.CONSEQUENCE, Role.CONFIRMATION) else 1
