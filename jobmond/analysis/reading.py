"""Reading a log from beginning to end, in pieces of any size, whatever trainer wrote it."""

import re
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from jobmond.analysis.logstate import LogState
from jobmond.analysis.segments import Cutter
from jobmond.model.metrics import Memory, Segment
from jobmond.ports import MetricParser


@dataclass(slots=True)
class Candidate:
    """One dialect the log may be in, and what the log says read that way."""

    parser: MetricParser
    state: LogState
    memory: Memory = field(default_factory=dict)
    hints: set[bytes] = field(default_factory=set)

    @classmethod
    def of(cls, parser: MetricParser, *, thin: bool = True) -> "Candidate":
        """Nothing read yet."""
        state = LogState(parser.own_steps, parser.bucket)
        state.track.thin = thin
        return cls(parser, state)

    @property
    def grown(self) -> bool:
        """Whether anything was read that this dialect understands as training."""
        return self.state.bar is not None or self.state.records > 0

    def proved_by(self, segment: Segment) -> bool:
        """Whether this segment can only come from this trainer."""
        return self.parser.proof.search(segment.raw) is not None


class LogReader:
    """Follows one log (or several that are lives of one run).

    Until a segment proves the dialect the log is read in every dialect at once; hints say which
    is shown meanwhile. Feeding a log in pieces, or only those of its lines that hold a needle,
    gives what reading it at once gives.
    """

    def __init__(
        self,
        parsers: Iterable[MetricParser],
        *,
        judge: Callable[[LogState], None] | None = None,
        keep_all: bool = False,
    ) -> None:
        """With one parser that is the dialect. `judge` sees states before records settle;
        `keep_all` keeps every metric's whole series.
        """
        self.candidates = [Candidate.of(parser, thin=not keep_all) for parser in parsers]
        self._judge = judge
        self.relatives: tuple[MetricParser, ...] = ()
        self.cutter = Cutter()
        self.settle(len(self.candidates) == 1)

    def settle(self, settled: bool) -> None:
        """From here on only what matters to the candidates is looked at."""
        self._settled = settled
        parsers = [candidate.parser for candidate in self.candidates]
        self._needles = needles_of(parsers, hints=not settled)
        self._wanted = re.compile(b"|".join(map(re.escape, self._needles))).search

    @property
    def settled(self) -> bool:
        """Whether the dialect is proved (or was given)."""
        return self._settled

    @property
    def needles(self) -> tuple[bytes, ...]:
        """What a segment must hold to matter from here on."""
        return self._needles

    def feed(self, data: bytes) -> None:
        """The next bytes of the log."""
        for segment in self.cutter.feed(data):
            self.take(segment)

    def take(self, segment: Segment) -> bool:
        """One segment; the only way in where the log was filtered before. Whether it says
        anything about training.
        """
        if not self._wanted(segment.raw):
            return False
        if self._settled:
            self._refine(segment)
            return self._read(self.candidates[0], segment)
        for candidate in self.candidates:
            for hint in candidate.parser.hints:
                if hint in segment.raw:
                    candidate.hints.add(hint)
        proved = next((c for c in self._ranked() if c.proved_by(segment)), None)
        read = [
            self._read(candidate, segment)
            for candidate in (self.candidates if proved is None else (proved,))
        ]
        if proved is not None:
            if not proved.parser.derived:
                self.relatives = tuple(
                    c.parser
                    for c in self.candidates
                    if c.parser.derived and c.parser.proof is proved.parser.proof
                )
            self.candidates = [proved]
            self.settle(True)
        return any(read)

    def _refine(self, segment: Segment) -> None:
        """What looked like the plain trainer may show later who is built on it; the events are
        the same, only the canonical names differ.
        """
        plain = self.candidates[0].parser.hints
        for parser in self.relatives:
            if any(hint in segment.raw for hint in parser.hints if hint not in plain):
                self.candidates[0].parser = parser
                self.relatives = ()

    def another(self) -> None:
        """What follows is another file: the run's next life."""
        for candidate in self.candidates:
            candidate.state.begin(self._judge)
            candidate.memory.clear()
        self.cutter = Cutter()

    def finish(self) -> Candidate | None:
        """Read what is open as far as it is complete. Only for the end: what follows could be
        read twice.
        """
        if self.cutter.open().raw:
            self.take(self.cutter.open())
        best = self.best
        if best is not None and self._judge is not None:
            self._judge(best.state)
        return best

    def peek(self) -> Candidate | None:
        """What `finish` would give, with nothing changed: reading can go on."""
        return deepcopy(self).finish()

    @property
    def best(self) -> Candidate | None:
        """The dialect that is proved, else the one most hints speak for."""
        if self._settled:
            return self.candidates[0]
        ranked = self._ranked()
        return ranked[0] if ranked and ranked[0].hints else None

    def _read(self, candidate: Candidate, segment: Segment) -> bool:
        understood = False
        for event in candidate.parser.read(segment, candidate.memory):
            understood = True
            candidate.state.take(event, candidate.parser, self._judge if self._settled else None)
        return understood

    def _ranked(self) -> list[Candidate]:
        return sorted(self.candidates, key=lambda c: (-len(c.hints), not c.grown, c.parser.derived))


def needles_of(parsers: Sequence[MetricParser], *, hints: bool) -> tuple[bytes, ...]:
    """The needles (and hints) of several dialects, without those that hold another."""
    words = {needle for parser in parsers for needle in parser.needles}
    if hints:
        words |= {hint for parser in parsers for hint in parser.hints}
    return tuple(sorted(word for word in words if not any(w != word and w in word for w in words)))
