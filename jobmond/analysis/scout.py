"""Finds the places of a large log around which it has to be read for failures.

A log is too large to be read whole, and the line that matters may stand anywhere in it. A search
for a few fixed strings (`FAR_NEEDLES`) finds the lines that can matter; of these, thousands are
expected. What is left here are few places, and what the lines between them say about whether the
job went on.
"""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jobmond.analysis.blocks import EXCEPTION, HEADER
from jobmond.analysis.diagnoser import birth
from jobmond.analysis.faults.catalogue import FAR_NEEDLES, match_exception
from jobmond.analysis.faults.fault import Role
from jobmond.analysis.ledger import Event
from jobmond.analysis.noting import LINE_CHARS, SPIKE, Look, event, line_event
from jobmond.analysis.pieces import PIECE_BYTES, Piece
from jobmond.analysis.pulse import SURVIVED, Advances, Gradients, Marks, finite, may_be_nan, nan_key
from jobmond.analysis.saying import Saying, saying
from jobmond.analysis.visible import readable

# Besides what is far: which lines print the size of a gradient, and where a file joins another.
NEAR_NEEDLES = (b"_norm", b"==> ")
_KEPT = 24  # places of one kind from the beginning, and as many from the end: as events are kept
_RECORD_BYTES = 1_000
_HEAD_BYTES = 400  # of a painted piece, in which the step stands
_OPEN = 64  # speakers whose traceback is open
_SECTION = re.compile(rb"==> [^\n]{1,200} <==")
_RANKS = {
    Role.VERDICT: 0,
    Role.ROOT: 1,
    Role.SYMPTOM: 2,
    Role.CONFIRMATION: 3,
    Role.CONSEQUENCE: 4,
    Role.BENIGN: 5,
}


@dataclass(frozen=True, slots=True)
class Spot:
    """A painted piece to read around: the byte at which it begins, and the number (from 1) of the
    line it stands in, None where nobody counted.
    """

    offset: int
    line: int | None


@dataclass(slots=True)
class _Kind:
    rank: int
    first: list[Spot] = field(default_factory=list)
    last: deque[Spot] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def add(self, spot: Spot) -> None:
        if len(self.first) < _KEPT:
            self.first.append(spot)
        else:
            self.last.append(spot)


class Scout:
    """Feed it the lines that hold a needle (more do no harm), in order; then ask for `spots`."""

    def __init__(self) -> None:
        self.birth = b""  # stands in the first line of each life of the log, and hardly elsewhere
        self.healed = -1  # the byte at which a metric was a number again last
        self.reborn: int | None = None  # the byte at which the last life begins
        self.advances = Advances()
        self.benign = 0
        self.spike: Event | None = None
        self._marks = Marks()
        self._gradients = Gradients()
        self._kinds: dict[str, _Kind] = {}
        self._headers: dict[str, Spot] = {}
        self._nan: tuple[Spot, re.Pattern[bytes]] | None = None
        self._sections = False
        self._step: int | None = None

    def meet(self, head: bytes) -> None:
        """The first bytes of the log show how its lives begin, to those who can search for it."""
        begins = birth(head.split(b"\n", 1)[0])
        self.birth = begins if begins and head.count(begins) == 1 else b""

    def take(self, raw: bytes, offset: int, line: int | None) -> None:
        """One line without its newline. Any bytes are accepted; time is linear."""
        at = offset
        for piece in raw.split(b"\r") if b"\r" in raw else (raw,):
            self.look(piece, Spot(at, line), line_offset=offset)
            at += len(piece) + 1

    def look(self, raw: bytes, spot: Spot, *, line_offset: int, step: int | None = None) -> None:
        """One painted piece of a line that begins at `line_offset`. `step` is where the training
        is, in the words of a piece that somebody else understood: a long one is a record and no
        failure.
        """
        piece = Piece(raw[:PIECE_BYTES], spot.line, spot.offset, line_offset)
        raw = piece.raw
        self._pulse(piece, step)
        record = step is not None and len(raw) > _RECORD_BYTES
        if not (b"nan" in raw or b"NaN" in raw if record else _holds_needle(raw)):
            return
        said = saying(raw)
        if may_be_nan(raw):
            self._not_a_number(readable(raw).strip() if said.glued else said.text, spot)
        if HEADER[:15] in said.text:
            self._header(said, spot)
        elif not said.quoted:
            self._line(piece, said, spot)

    def spots(self) -> tuple[Spot, ...]:
        """The places to read around, those that can decide the most first.

        What the job went on after for some steps is left out: it decides nothing.
        """
        for spot in self._headers.values():
            self._keep("traceback", Role.ROOT, spot)
        self._headers.clear()
        found = [(0, self._nan[0])] if self._nan else []
        for kind in sorted(self._kinds.values(), key=lambda kind: kind.rank):
            alive = [spot for spot in (*kind.first, *kind.last) if self._stands(spot)]
            found.extend((kind.rank, spot) for spot in _outermost(alive))
        return tuple(dict.fromkeys(spot for _, spot in found))

    def lasting_spike(self) -> Event | None:
        """A gradient norm that exploded and stayed large to the end."""
        return self.spike if self._gradients.lasting() else None

    def _stands(self, spot: Spot) -> bool:
        return self._sections or self.advances.between(spot.offset, 1 << 62) <= SURVIVED

    def _pulse(self, piece: Piece, step: int | None) -> None:
        """Signs of life and of divergence."""
        raw = piece.raw
        self._advance(raw, piece.offset, step)
        if self.birth and self.birth in raw:
            self.reborn = piece.line_offset
        if self._nan and self._nan[1].search(raw):
            self._nan, self.healed = None, piece.offset
        if _SECTION.match(raw):
            self._sections = True
        if b"norm" in raw:
            self._gradients.scan(raw, piece.offset)
            if self._gradients.spike is not None and self.spike is None:
                short = replace(piece, raw=raw[:LINE_CHARS])
                self.spike = event(short, saying(short.raw), SPIKE, "grad_norm")

    def _advance(self, raw: bytes, offset: int, step: int | None) -> None:
        if step is not None:
            if step != self._step:
                self.advances.add(offset)
            self._step = step
            return
        before = self._marks.count
        self._marks.scan(raw, 0, _HEAD_BYTES, until=before + SURVIVED)
        for _ in range(self._marks.count - before):
            self.advances.add(offset)

    def _not_a_number(self, text: str, spot: Spot) -> None:
        key = nan_key(text[:LINE_CHARS])
        if key is not None:
            self._nan = (self._nan[0] if self._nan else spot, finite(key))

    def _header(self, said: Saying, spot: Spot) -> None:
        open_one = self._headers.pop(said.source, None)
        if open_one is not None:
            self._keep("traceback", Role.ROOT, open_one)
        if len(self._headers) >= _OPEN:
            source = next(iter(self._headers))
            self._keep("traceback", Role.ROOT, self._headers.pop(source))
        self._headers[said.source] = spot

    def _line(self, piece: Piece, said: Saying, spot: Spot) -> None:
        header = self._headers.get(said.source)
        if header is not None and EXCEPTION.match(said.text[:400]):
            del self._headers[said.source]
            fault = match_exception(said.text[:LINE_CHARS])
            self._keep(f"{fault.id} thrown", fault.role, header)
            return
        look = Look(said)
        found = line_event(piece, said, look.fault())
        if found is not None:
            self._keep(found.fault.id, found.fault.role, spot)

    def _keep(self, name: str, role: Role, spot: Spot) -> None:
        if role is Role.BENIGN:
            self.benign += 1
            return
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = _Kind(_RANKS[role])
        kind.add(spot)


def _holds_needle(raw: bytes) -> bool:
    # A regular expression of all of them takes a hundred times as long.
    for needle in FAR_NEEDLES:  # noqa: SIM110 (a generator takes twice as long)
        if needle in raw:
            return True
    return False


def _outermost(spots: Sequence[Spot]) -> list[Spot]:
    """First, last, second, last but one …"""
    half = (len(spots) + 1) // 2
    mixed: list[Spot] = []
    for turn in range(half):
        mixed += [spots[turn], spots[-1 - turn]]
    return mixed
