"""Reads a log for failures, in whole or in windows, whatever the size of the reads."""

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from jobmond.analysis.benign import NOTHING, Benign
from jobmond.analysis.blocks import Block, BlockReader
from jobmond.analysis.faults.catalogue import triggered
from jobmond.analysis.faults.fault import Role
from jobmond.analysis.ledger import Event, Expected, Ledger
from jobmond.analysis.noting import (
    LINE_CHARS,
    NAN,
    SPIKE,
    Look,
    block_event,
    count_stopped,
    event,
    line_event,
    victims,
)
from jobmond.analysis.pieces import Cutter, Hits, Piece
from jobmond.analysis.pulse import SURVIVED, Advances, Gradients, Marks, finite, nan_key
from jobmond.analysis.saying import Saying, saying
from jobmond.analysis.visible import readable

# Where a file was joined to another in this log.
_SECTION = re.compile(
    r"^(?:==> .{1,200} <==|={3,} ?\S{1,120}\.(?:log|out|err|txt) ?={3,}"
    r"|-{3,} ?\S{1,120}\.(?:log|out|err|txt) ?-{3,})$"
)
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_DULL = 20_000  # templates of lines that say nothing
_LEAD_BYTES = 4_096
_TAIL_BYTES = 65_536
_BIRTH = re.compile(rb"[^\d\x00-\x1f]{12,80}")
_BIRTHS = 4
_WAITED_FOR = frozenset({Role.ROOT, Role.SYMPTOM, Role.VERDICT, Role.CONFIRMATION})
ENDS = frozenset({Role.VERDICT, Role.CONFIRMATION})
_HERE = "benign on this cluster"


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a log says about failures, before anybody else is asked.

    `marks` counts the steps that had advanced when it ended, as far as somebody waited for them.
    `born` is the byte at which the last life in it begins. `tail` holds its last bytes. `gaps`
    counts the stretches that were not read. `expected` are kinds of lines that are benign.
    """

    events: tuple[Event, ...]
    marks: int
    sections: int
    born: int
    benign: int
    victims: int | None
    tail: bytes
    size_bytes: int
    gaps: int = 0
    expected: tuple[Expected, ...] = ()


class Diagnoser:
    """Takes a log's bytes in order; `evidence` may be asked once, at the end.

    `feed` without `offset` goes on where the last bytes ended. An offset beyond that is a gap:
    what was open ends, the rest of a line that the window cuts is left out, and line numbers are
    unknown unless `line` gives the number of the first line of `data`, which then begins a line.
    What overlaps is skipped. Lines that are `benign` there are counted and are never a cause.
    """

    def __init__(self, benign: Benign = NOTHING, advances: Advances | None = None) -> None:
        """`advances` knows the steps that advance in gaps."""
        self._benign = benign
        self._advances = advances
        self._cutter = Cutter(self._block)
        self._blocks = BlockReader()
        self._marks = Marks()
        self._gradients = Gradients()
        self._ledger = Ledger()
        self._line: int | None = 1
        self._line_offset = 0
        self._next = 0  # byte after the last that was fed
        self._lead = b""
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._waiting = 0  # marks that the newest event waits for
        self._nan: re.Pattern[bytes] | None = None  # what would show that it is over
        self._section = 0
        self._gaps = 0
        self._dull: set[bytes] = set()
        self._birth: bytes | None = None  # how a life of this log begins
        self._births: list[int] = []  # the first bytes at which that stands
        self._last_birth = -1
        self._born = 0  # the byte at which that line begins
        self._ended: int | None = None

    def feed(
        self,
        data: bytes,
        *,
        offset: int | None = None,
        line: int | None = None,
        line_offset: int | None = None,
    ) -> None:
        """More bytes. Any bytes are accepted. After a gap `line_offset` is where the first line
        begins of which `data` may hold only the rest.
        """
        if offset is not None and offset < self._next:
            data = data[self._next - offset :]
        elif offset is not None and offset > self._next:
            data = self._gap(data, offset, line)
            if line_offset is not None and line is not None:
                self._line_offset = line_offset
        self._cutter.feed(data)
        self._next += len(data)

    def evidence(self) -> Evidence:
        """What was found. The log ends here."""
        self._finish()
        events = self._ledger.events()
        diverged = any(each.fault is NAN for each in events)
        if diverged or self._gradients.lasting() is None:
            events = [each for each in events if each.fault is not SPIKE]
        return Evidence(
            events=tuple(events),
            marks=self._marks.count,
            sections=self._section,
            born=self._lived(),
            benign=self._ledger.benign,
            victims=victims(self._ledger),
            tail=b"".join(self._tail)[-_TAIL_BYTES:],
            size_bytes=self._next,
            gaps=self._gaps,
            expected=tuple(self._ledger.expected.values()),
        )

    def _finish(self) -> None:
        self._cutter.close()
        self._blocks.close()
        self._take_blocks()

    def _gap(self, data: bytes, offset: int, line: int | None) -> bytes:
        self._cutter.close()
        self._blocks.close()
        self._take_blocks(whole=False)
        start = 0
        if line is None:
            start = data.find(b"\n") + 1 or len(data)
        self._gaps += 1
        self._marks.lose()
        if self._advances is not None:
            self._marks.count += self._advances.between(self._next, offset + start)
        self._cutter = Cutter(self._block, offset + start)
        self._line, self._line_offset = line, offset + start
        self._lead = b""
        self._tail.clear()
        self._tail_bytes = 0
        self._next = offset + start
        return data[start:]

    def _block(self, body: bytes, base: int) -> None:
        """Reads one run of whole pieces."""
        self._spikes(body, base)
        hits, at, size, newline = Hits(body), 0, len(body), -1
        while at < size:
            if not self._blocks.open:
                hit = hits.after(at)
                if hit >= size:
                    break
                start = max(body.rfind(b"\n", at, hit) + 1, at)
                start = max(body.rfind(b"\r", start, hit) + 1, start)
                self._skip(body, at, start, base)
                at = start
            if newline < at:
                newline = body.find(b"\n", at)
                newline = size if newline < 0 else newline
            end = body.find(b"\r", at, newline)
            end = newline if end < 0 else end
            self._piece(body, at, end, base)
            self._skip(body, end, min(end + 1, size), base)
            at = end + 1
        self._skip(body, at, size, base)
        self._lives(body, base)
        self._lead = (self._lead + body)[-_LEAD_BYTES:]
        self._remember(body[-_TAIL_BYTES:])

    def _remember(self, part: bytes) -> None:
        self._tail.append(part)
        self._tail_bytes += len(part)
        while self._tail_bytes - len(self._tail[0]) >= _TAIL_BYTES:
            self._tail_bytes -= len(self._tail.popleft())

    def _skip(self, body: bytes, start: int, end: int, base: int) -> None:
        """Passes over bytes that hold nothing; counts their lines and signs of life."""
        if start >= end:
            return
        if end - start > 1:
            self._alive(body, start, end)
        newlines = body.count(b"\n", start, end)
        if newlines:
            if self._line is not None:
                self._line += newlines
            self._line_offset = base + body.rfind(b"\n", start, end) + 1

    def _alive(self, body: bytes, start: int, end: int) -> None:
        if self._marks.count < self._waiting:
            self._marks.scan(body, start, end, until=self._waiting)
        if self._nan and self._nan.search(body, start, end):
            self._ledger.forget(NAN.id)
            self._nan = None

    def _lives(self, body: bytes, base: int) -> None:
        """A line like the log's first, after something ended: the log goes on with a new life."""
        if self._birth is None and base == 0:
            line = body.split(b"\n", 1)[0]
            self._birth = birth(line)
        if not self._birth:
            return
        found = body.find(self._birth)
        while found >= 0 and len(self._births) < _BIRTHS:
            self._births.append(base + found)
            found = body.find(self._birth, found + 1)
        found = body.rfind(self._birth)
        if found >= 0:
            self._last_birth = base + found
            self._born = base + body.rfind(b"\n", 0, found) + 1

    def _lived(self) -> int:
        """Where the last life begins, if another one ended before. What stands in many lines
        before anything ended begins no life.
        """
        ended = self._ended
        if ended is None or self._last_birth <= ended:
            return 0
        common = len(self._births) == _BIRTHS and self._births[-1] < ended
        return 0 if common else self._born

    def _piece(self, body: bytes, at: int, end: int, base: int) -> None:
        raw = body[at:end]
        inside = self._blocks.open
        template = b"" if inside else raw.translate(_DIGITS)
        if not inside and (template in self._dull or not raw.strip(b"\0 \t")):
            self._alive(body, at, end)
            return
        said = saying(raw)
        piece = Piece(raw, self._line, base + at, self._line_offset)
        self._section += _SECTION.match(said.text) is not None
        look = Look(said)
        begins = self._blocks.begins(said)
        if begins or inside:
            lead = self._before(body, at, said.source) if begins else None
            self._blocks.marks = self._marks.count
            if begins:
                self._waiting = self._marks.count + SURVIVED
            taken = self._blocks.take(piece, said, lead, look.speaks)
            self._take_blocks()
            if taken:
                return
        self._alive(body, at, end)
        if begins or said.quoted or (inside and not look.hit()):
            return
        self._note(piece, said, look)
        if not inside and look.dull(raw):
            if len(self._dull) >= _DULL:
                self._dull.clear()
            self._dull.add(template)

    def _before(self, body: bytes, at: int, source: str) -> Saying | None:
        """What the same speaker said just before."""
        text = body[max(0, at - _LEAD_BYTES) : at]
        if len(text) < _LEAD_BYTES:
            text = (self._lead + text)[-_LEAD_BYTES:]
        looked, end = 0, len(text)
        while end > 0 and looked < 3:
            start = max(text.rfind(b"\n", 0, end), text.rfind(b"\r", 0, end)) + 1
            part, end = text[start:end], start - 1
            if not part.strip():
                continue
            looked += 1
            said = saying(part)
            if said.source == source and not said.glued:
                return said
        return None

    def _note(self, piece: Piece, said: Saying, look: Look) -> None:
        text = said.text[:LINE_CHARS]
        fault = look.fault()
        count_stopped(text, self._ledger)
        painted = said if not said.glued else replace(said, text=readable(piece.raw).strip())
        key = nan_key(painted.text[:LINE_CHARS])
        if key is not None:
            self._nan = finite(key)
            self._add_line(event(piece, painted, NAN, key), piece)
            return
        found = line_event(piece, said, fault)
        if found is not None:
            self._add_line(found, piece)

    def _take_blocks(self, *, whole: bool = True) -> None:
        """Blocks that came to their end; if not `whole` it is the window that cut them."""
        for block in self._blocks.closed():
            if not whole and not block.thrown:
                continue
            left = self._causes(block)
            if left is None:
                said = block.thrown[-1]
                self._ledger.rule_out(_HERE, said.text, said.line)
            else:
                self._add(block_event(left), block.marks)

    def _causes(self, block: Block) -> Block | None:
        """The block without exceptions that are benign here; None where it has no other."""
        left = tuple(
            thrown
            for thrown in block.thrown
            if not self._benign.line(thrown.text, f"{block.source} {thrown.text}")
        )
        if left == block.thrown:
            return block
        return replace(block, thrown=left) if left else None

    def _add_line(self, found: Event, piece: Piece) -> None:
        if self._benign.line(readable(piece.raw), found.text):
            self._ledger.rule_out(_HERE, found.text, found.line)
        else:
            self._add(found)

    def _add(self, found: Event, marks: int | None = None) -> None:
        count = self._marks.count if marks is None else marks
        self._ledger.add(replace(found, marks=count, section=self._section))
        if found.fault.role in _WAITED_FOR and found.key is None:
            self._waiting = self._marks.count + SURVIVED
        if found.fault.role in ENDS:
            self._ended = min(found.place, found.place if self._ended is None else self._ended)

    def _spikes(self, body: bytes, base: int) -> None:
        before = self._gradients.spike
        self._gradients.scan(body, base)
        spike = self._gradients.spike
        if spike is None or spike is before:
            return
        at = spike.offset - base
        line_start = body.rfind(b"\n", 0, at) + 1
        start = max(body.rfind(b"\r", line_start, at) + 1, line_start)
        piece = Piece(
            raw=body[start : start + LINE_CHARS].split(b"\n", 1)[0].split(b"\r", 1)[0],
            line=None if self._line is None else self._line + body.count(b"\n", 0, at),
            offset=base + start,
            line_offset=base + line_start if line_start else self._line_offset,
        )
        self._add_line(event(piece, saying(piece.raw), SPIKE, "grad_norm"), piece)


def birth(line: bytes) -> bytes:
    """What of the first line of a log stands in the first line of each of its lives; empty where
    that cannot be told.
    """
    first = None if triggered(readable(line)) else _BIRTH.search(line)
    return first[0] if first else b""


def diagnose_chunks(chunks: Iterable[bytes]) -> Evidence:
    """The evidence of a whole log that comes in reads of any size; memory stays flat."""
    diagnoser = Diagnoser()
    for chunk in chunks:
        diagnoser.feed(chunk)
    return diagnoser.evidence()
