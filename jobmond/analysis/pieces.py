r"""A log's bytes as painted pieces: what stands between `\n` or `\r`, wherever reads are cut."""

from collections.abc import Callable
from dataclasses import dataclass

from jobmond.analysis.faults.catalogue import TRIGGERS

PIECE_BYTES = 65_536  # of a piece that are looked at
_NEEDLES = tuple(trigger.encode() for trigger in TRIGGERS)
_STRIDE = PIECE_BYTES // 2
_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Piece:
    """`line` counts LF from 1 (None where that is not known), `offset` is the byte at which the
    piece begins, `line_offset` that of its line.
    """

    raw: bytes
    line: int | None
    offset: int
    line_offset: int


class Hits:
    """The places of all triggers in one block of bytes, in order."""

    def __init__(self, body: bytes) -> None:
        self._body = body = body.lower()
        self._next = [body.find(needle) for needle in _NEEDLES]
        self._alive = [i for i, at in enumerate(self._next) if at >= 0]

    def after(self, at: int) -> int:
        """The first at `at` or later; a number beyond the block where there is none."""
        first, dead = _NEVER, False
        for i in self._alive:
            found = self._next[i]
            if 0 <= found < at:
                found = self._next[i] = self._body.find(_NEEDLES[i], at)
            if found < 0:
                dead = True
            elif found < first:
                first = found
        if dead:
            self._alive = [i for i in self._alive if self._next[i] >= 0]
        return first


class Cutter:
    """Cuts blocks of whole pieces out of reads of any size.

    `take` is called with (bytes, offset) for each block; all but the last end with a separator.
    Of a piece longer than `PIECE_BYTES` only so much is kept and the rest is counted.
    """

    def __init__(self, take: Callable[[bytes, int], None], offset: int = 0) -> None:
        self._take = take
        self._carry = b""
        self._lost = 0  # bytes dropped after the carry
        self._offset = offset  # of the carry

    def feed(self, data: bytes) -> None:
        """The next bytes of the log."""
        if self._lost:
            data = self._find_end(data)
        if not data:
            return
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not cut:
            self._keep(self._carry + data)
            return
        body = self._carry + data[:cut]
        self._pass(body)
        self._offset += len(body)
        self._carry = b""
        self._keep(data[cut:])

    def close(self) -> None:
        """The log ends here."""
        if self._carry:
            self._take(self._carry, self._offset)
        self._offset += len(self._carry) + self._lost
        self._carry, self._lost = b"", 0

    def _pass(self, body: bytes) -> None:
        """Passes `body` on without what is too long in it."""
        start = 0
        for at in range(0, len(body) - _STRIDE, _STRIDE):
            # A piece that is too long fills at least one of these windows.
            if at < start or _separator(body, at, at + _STRIDE) < at + _STRIDE:
                continue
            begin = max(body.rfind(b"\n", start, at), body.rfind(b"\r", start, at)) + 1 or start
            end = _separator(body, at + _STRIDE, len(body))
            if end - begin > PIECE_BYTES:
                self._take(body[start : begin + PIECE_BYTES], self._offset + start)
                start = end
        if start < len(body):
            self._take(body[start:], self._offset + start)

    def _keep(self, rest: bytes) -> None:
        self._carry = rest[:PIECE_BYTES]
        self._lost = len(rest) - len(self._carry)

    def _find_end(self, data: bytes) -> bytes:
        """What follows the end of a piece that was too long; the piece itself is passed on."""
        ends = [at for at in (data.find(b"\n"), data.find(b"\r")) if at >= 0]
        if not ends:
            self._lost += len(data)
            return b""
        end = min(ends)
        self._take(self._carry, self._offset)
        self._offset += len(self._carry) + self._lost + end
        self._carry, self._lost = b"", 0
        return data[end:]


def _separator(body: bytes, start: int, end: int) -> int:
    """Where the first newline or carriage return stands in `body[start:end]`, else `end`."""
    newline = body.find(b"\n", start, end)
    if newline >= 0:
        end = newline
    back = body.find(b"\r", start, end)
    return end if back < 0 else back
