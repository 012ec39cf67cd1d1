"""Bytes of a log into segments, and one segment into text that patterns can match."""

import re
from collections.abc import Iterator
from functools import lru_cache

from jobmond.model.metrics import Segment

# A metrics line has a few kilobytes; what is longer is cut, so that a line without an end costs
# no memory.
SEGMENT_BYTES = 256 * 1024

_ENDS = re.compile(rb"[\r\n]")
_ANSI = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[ -/]+[0-~]|[0-?`-~])?"
)
_RAY = re.compile(
    r"\s*\((?P<actor>[^()\s]{0,200} ?pid=\d+(?:, ip=[\w.:]+)?|raylet(?:, ip=[\w.:]+)?|"
    r"autoscaler[^()]{0,80})\) ?"
)
_RANK = re.compile(r"(?:\[[\w.-]{0,80}:?\d+\]:|stderr:|stdout:) ?")
_REPEATED = re.compile(
    r"\s*\[repeated (\d+)x across cluster\](?: \(Ray deduplicates logs by default\.[^()]*\))?\s*$"
)


class Cutter:
    """Cuts a stream into segments wherever its pieces were torn.

    `offset` is where the segment that is still open begins; reading again from there gives the
    same. Of a segment longer than `SEGMENT_BYTES` only the beginning is kept.
    """

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset
        self._open = bytearray()
        self._skipped = 0

    def feed(self, data: bytes) -> Iterator[Segment]:
        """The segments that `data` closes."""
        start = 0
        for end in _ENDS.finditer(data):
            stop = end.start()
            if self._open or self._skipped:
                self._extend(data[start:stop])
                yield self._take(stop - start)
            else:
                yield Segment(self.offset, data[start : min(stop, start + SEGMENT_BYTES)])
                self.offset += stop - start + 1
            start = stop + 1
        self._extend(data[start:])

    def open(self) -> Segment:
        """What has come of the segment that is not closed yet."""
        return Segment(self.offset, bytes(self._open), closed=False)

    def _extend(self, data: bytes) -> None:
        room = SEGMENT_BYTES - len(self._open)
        self._open += data[:room]
        self._skipped += max(0, len(data) - room)

    def _take(self, _: int) -> Segment:
        segment = Segment(self.offset, bytes(self._open))
        self.offset += len(self._open) + self._skipped + 1
        self._open.clear()
        self._skipped = 0
        return segment


@lru_cache(maxsize=8)
def bare(raw: bytes) -> str:
    """Decoded, without NUL and terminal control sequences; prefixes are still there."""
    if b"\x1b" in raw:
        raw = _ANSI.sub(b"", raw)
    if b"\0" in raw:
        raw = raw.replace(b"\0", b"")
    return raw.decode("utf-8", "replace")


@lru_cache(maxsize=8)
def spoken(raw: bytes) -> tuple[str, str]:
    """Who said it (the Ray actor, or nothing) and what, without any prefix or suffix.

    Trailing blanks stay: they can be part of a record.
    """
    text = bare(raw)
    actor = ""
    while True:
        if (prefix := _RAY.match(text)) is not None:
            actor = actor or prefix["actor"]
        elif (prefix := _RANK.match(text)) is None:
            break
        text = text[prefix.end() :]
    if "[repeated " in text:
        text = _REPEATED.sub("", text)
    return actor, text


def repeats(raw: bytes) -> int:
    """How many lines this one stands for, by Ray's count of what it left out."""
    found = _REPEATED.search(bare(raw)) if b"[repeated " in raw else None
    return 1 + int(found[1][:9]) if found else 1
