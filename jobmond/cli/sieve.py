"""A log of any size as a stream: only lines that hold a needle are looked at in Python."""

import os
import re
import resource
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from jobmond.analysis.faults.catalogue import FAR_NEEDLES
from jobmond.analysis.reading import LogReader
from jobmond.analysis.scout import NEAR_NEEDLES, Scout, Spot
from jobmond.analysis.segments import Cutter
from jobmond.model.metrics import Segment

BLOCK_BYTES = 8 << 20
TAIL_BYTES = 256 << 10
_FIRST_BYTES = 512 << 10  # the dialect shows early; while it is open every line costs more
_SMALL_BYTES = 64 << 10  # starting a process costs more than searching this little
_GREP_MEMORY_BYTES = 64 << 20  # grep holds a whole line; one without an end must not eat the host
_SPECIAL = re.compile(r"([\\.\[\]*^$+?{}()|])")


@dataclass(slots=True)
class Sums:
    """What a log amounts to: size, line feeds, and its last bytes."""

    size_bytes: int = 0
    lines: int = 0
    tail: bytes = b""


class Sieve:
    """Reads a stream through grep where there is one, else by searching; the same comes out."""

    def __init__(self, grep: str | None, scout: Scout | None = None) -> None:
        """`grep` is the program's path; None to search without it. `scout` gets the lines that
        can matter to a diagnosis.
        """
        self._grep = grep
        self._scout = scout
        self._at = 0  # the byte up to which the reader has come
        self._passed = 0  # newlines before that

    def read(
        self,
        source: IO[bytes],
        reader: LogReader,
        limit: int | None = None,
        *,
        file: bool = False,
        also: Callable[[bytes], None] | None = None,
    ) -> Sums:
        """Feed the whole stream (or its first `limit` bytes) into `reader`, and every byte of
        what is read here into `also`.

        With `file`, `source` is an unbuffered file opened at its beginning; once the dialect is
        known, grep reads the rest of it by itself.
        """
        sums, carry = Sums(), b""
        self._at = self._passed = 0
        for chunk in chunks(source, limit):
            if also is not None:
                also(chunk)
            if self._scout is not None and not sums.size_bytes:
                self._scout.meet(chunk)
            sums.size_bytes += len(chunk)
            sums.lines += chunk.count(b"\n")
            sums.tail = (sums.tail + chunk[-TAIL_BYTES:])[-TAIL_BYTES:]
            carry = self._block(carry + chunk if carry else chunk, reader)
            if file and limit is None and reader.settled and self._direct(source, reader, sums):
                carry = b""
        self._feed(carry, reader)
        return sums

    def _direct(self, source: IO[bytes], reader: LogReader, sums: Sums) -> bool:
        """Let grep read what is left of a file of which `reader` has read whole lines, and go on
        where it stopped; whether it was asked at all.
        """
        found = os.fstat(source.fileno()) if is_file(source) else None
        if self._grep is None or found is None or found.st_size - sums.size_bytes < _SMALL_BYTES:
            return False
        tail = os.pread(source.fileno(), TAIL_BYTES, found.st_size - TAIL_BYTES)
        stop = found.st_size - TAIL_BYTES + tail.rfind(b"\n") + 1
        if reader.cutter.open().raw or b"\n" not in tail:
            return False
        source.seek(reader.cutter.offset)
        complete = self._grepped(source, reader, stop)
        at, sums.lines = reader.cutter.offset, self._passed
        source.seek(at)
        if not complete:
            self._grep = None
            before = max(0, at - TAIL_BYTES)
            sums.size_bytes, sums.tail = at, os.pread(source.fileno(), at - before, before)
            return True
        sums.lines += sum(chunk.count(b"\n") for chunk in chunks(source, found.st_size - at))
        sums.size_bytes, sums.tail = found.st_size, tail
        reader.cutter, self._at, self._passed = Cutter(stop), stop, sums.lines
        self._feed(tail[stop - found.st_size :] if stop < found.st_size else b"", reader)
        return True

    def _grepped(self, source: IO[bytes], reader: LogReader, stop: int) -> bool:
        """Take the lines before `stop`: whether that was done. Where grep gave up, reading goes on
        from the reader's offset.
        """
        start, before = reader.cutter.offset, self._passed
        with subprocess.Popen(
            self._command(self._needles(reader)),
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C"},
            preexec_fn=_modest,  # noqa: PLW1509  (this program has no threads here)
        ) as process:
            assert process.stdout is not None  # noqa: S101  (a pipe was asked for)
            for said in process.stdout:
                number, offset, line = said.split(b":", 2)
                at = start + int(offset)
                if at >= stop:
                    process.terminate()
                    return True
                self._take(at, before + int(number), line.removesuffix(b"\n"), reader)
                self._at, self._passed = at + len(line), before + int(number)
                reader.cutter = Cutter(self._at)
        return process.returncode in (0, 1)

    def _needles(self, reader: LogReader) -> tuple[bytes, ...]:
        if self._scout is None:
            return reader.needles
        extra = (self._scout.birth,) if self._scout.birth else ()
        return (*reader.needles, *FAR_NEEDLES, *NEAR_NEEDLES, *extra)

    def _take(self, offset: int, number: int, line: bytes, reader: LogReader) -> None:
        for segment in _segments(offset, line):
            known = reader.take(segment)
            if self._scout is not None:
                step = reader.candidates[0].state.step if known and reader.settled else None
                spot = Spot(segment.offset, number)
                self._scout.look(segment.raw, spot, line_offset=offset, step=step)

    def _feed(self, data: bytes, reader: LogReader) -> None:
        """What is not known to be whole lines goes through the cutter."""
        if self._scout is not None and data:
            at = self._at
            for place, line in enumerate(data.split(b"\n")):
                self._scout.take(line, at, self._passed + place + 1)
                at += len(line) + 1
        self._at += len(data)
        self._passed += data.count(b"\n")
        reader.feed(data)

    def _block(self, data: bytes, reader: LogReader) -> bytes:
        """Read whole lines; what is left of the last one. A line longer than a block goes
        through the cutter, which keeps only as much of it as can matter.
        """
        start = 0
        if reader.cutter.open().raw:
            start = data.find(b"\n") + 1 or len(data)
            self._feed(data[:start], reader)
        stop = data.rfind(b"\n", start) + 1
        if stop > start:
            base, block = reader.cutter.offset, data[start:stop]
            for offset, number, line in self._lines(block, self._needles(reader)):
                self._take(base + offset, self._passed + number, line, reader)
            reader.cutter = Cutter(base + len(block))
            self._at += len(block)
            self._passed += block.count(b"\n")
            start = stop
        rest = data[start:]
        if len(rest) < BLOCK_BYTES:
            return rest
        self._feed(rest, reader)
        return b""

    def _lines(self, block: bytes, needles: Sequence[bytes]) -> Iterator[tuple[int, int, bytes]]:
        if self._grep is None or len(block) < _SMALL_BYTES:
            yield from searched(block, re.compile(b"|".join(map(re.escape, needles))).search)
            return
        found = subprocess.run(
            self._command(needles),
            input=block,
            capture_output=True,
            check=False,
            env={"LC_ALL": "C"},
        )
        if found.returncode not in (0, 1):
            self._grep = None
            yield from self._lines(block, needles)
            return
        for said in found.stdout.split(b"\n"):
            number, colon, rest = said.partition(b":")
            if colon:
                offset, _, line = rest.partition(b":")
                yield int(offset), int(number), line

    def _command(self, needles: Sequence[bytes]) -> list[str]:
        # One pattern of alternatives is faster than as many fixed strings (GNU grep 3.8).
        pattern = "|".join(_SPECIAL.sub(r"\\\1", needle.decode()) for needle in needles)
        return [self._grep or "grep", "-nabE", "-e", pattern]


def searched(
    block: bytes, search: Callable[[bytes, int], re.Match[bytes] | None]
) -> Iterator[tuple[int, int, bytes]]:
    """The lines of a block in which `search` finds something: offset, number from 1, line."""
    at, number = 0, 1
    while found := search(block, at):
        start = block.rfind(b"\n", 0, found.start()) + 1
        end = block.find(b"\n", found.end())
        end = end if end >= 0 else len(block)
        number += block.count(b"\n", at, start)
        yield start, number, block[start:end]
        at, number = end + 1, number + 1


def _segments(offset: int, line: bytes) -> Iterator[Segment]:
    if b"\r" not in line:
        yield Segment(offset, line)
        return
    for piece in line.split(b"\r"):
        yield Segment(offset, piece)
        offset += len(piece) + 1


def chunks(source: IO[bytes], limit: int | None) -> Iterator[bytes]:
    """The stream, or its first `limit` bytes, in blocks that grow."""
    left, size = limit, _FIRST_BYTES
    while left is None or left > 0:
        chunk = source.read(size if left is None else min(size, left))
        if not chunk:
            return
        size = min(2 * size, BLOCK_BYTES)
        left = None if left is None else left - len(chunk)
        yield chunk


def is_file(source: IO[bytes]) -> bool:
    """Whether it is a regular file, and can be read again."""
    try:
        return stat.S_ISREG(os.fstat(source.fileno()).st_mode)
    except OSError:
        return False


def _modest() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_GREP_MEMORY_BYTES, _GREP_MEMORY_BYTES))
