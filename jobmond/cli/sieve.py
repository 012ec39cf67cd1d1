"""A log of any size as a stream: only lines that hold a needle are looked at in Python."""

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from jobmond.analysis.reading import LogReader
from jobmond.analysis.segments import Cutter
from jobmond.model.metrics import Segment

BLOCK_BYTES = 8 << 20
TAIL_BYTES = 1 << 20
_SMALL_BYTES = 1 << 20  # starting a process costs more than searching this little
_GREP = ("grep", "-abF")


@dataclass(slots=True)
class Sums:
    """What a log amounts to: size, line feeds, and its last bytes."""

    size_bytes: int = 0
    lines: int = 0
    tail: bytes = b""


class Sieve:
    """Reads a stream through grep where there is one, else by searching; the same comes out."""

    def __init__(self, grep: str | None) -> None:
        """`grep` is the program's path; None to search without it."""
        self._grep = grep

    def read(self, source: BinaryIO, reader: LogReader, limit: int | None = None) -> Sums:
        """Feed the whole stream (or its first `limit` bytes) into `reader`."""
        sums = Sums()
        carry = b""
        for chunk in _chunks(source, limit):
            sums.size_bytes += len(chunk)
            sums.lines += chunk.count(b"\n")
            sums.tail = (sums.tail + chunk[-TAIL_BYTES:])[-TAIL_BYTES:]
            carry = self._block(carry + chunk if carry else chunk, reader)
        reader.feed(carry)
        return sums

    def _block(self, data: bytes, reader: LogReader) -> bytes:
        """Read whole lines; what is left of the last one. A line longer than a block goes
        through the cutter, which keeps only as much of it as can matter.
        """
        start = 0
        if reader.cutter.open().raw:
            start = data.find(b"\n") + 1 or len(data)
            reader.feed(data[:start])
        stop = data.rfind(b"\n", start) + 1
        if stop > start:
            for segment in self._segments(data[start:stop], reader):
                reader.take(segment)
            reader.cutter = Cutter(reader.cutter.offset + stop - start)
            start = stop
        rest = data[start:]
        if len(rest) < BLOCK_BYTES:
            return rest
        reader.feed(rest)
        return b""

    def _segments(self, block: bytes, reader: LogReader) -> Iterator[Segment]:
        base = reader.cutter.offset
        for offset, line in self._lines(block, reader.needles):
            if b"\r" not in line:
                yield Segment(base + offset, line)
                continue
            for piece in line.split(b"\r"):
                yield Segment(base + offset, piece)
                offset += len(piece) + 1  # noqa: PLW2901

    def _lines(self, block: bytes, needles: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        if self._grep is None or len(block) < _SMALL_BYTES:
            yield from searched(block, re.compile(b"|".join(map(re.escape, needles))).search)
            return
        arguments = [self._grep, *_GREP[1:], *(f"-e{needle.decode()}" for needle in needles)]
        found = subprocess.run(
            arguments, input=block, stdout=subprocess.PIPE, check=False, env={"LC_ALL": "C"}
        )
        if found.returncode > 1:
            self._grep = None
            yield from self._lines(block, needles)
            return
        for said in found.stdout.split(b"\n"):
            offset, colon, line = said.partition(b":")
            if colon:
                yield int(offset), line


def searched(
    block: bytes, search: Callable[[bytes, int], re.Match[bytes] | None]
) -> Iterator[tuple[int, bytes]]:
    """The lines of a block in which `search` finds something, with their offsets."""
    at = 0
    while found := search(block, at):
        start = block.rfind(b"\n", 0, found.start()) + 1
        end = block.find(b"\n", found.end())
        end = end if end >= 0 else len(block)
        yield start, block[start:end]
        at = end + 1


def _chunks(source: BinaryIO, limit: int | None) -> Iterator[bytes]:
    left = limit
    while left is None or left > 0:
        chunk = source.read(BLOCK_BYTES if left is None else min(BLOCK_BYTES, left))
        if not chunk:
            return
        left = None if left is None else left - len(chunk)
        yield chunk
