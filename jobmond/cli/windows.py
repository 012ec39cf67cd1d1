"""The evidence of a log file, read whole where it is small, else in few windows."""

import os
from collections.abc import Iterator
from typing import IO

from jobmond.analysis.diagnoser import Evidence, diagnose_chunks
from jobmond.analysis.scout import Scout
from jobmond.analysis.windows import LIMITS, Limits, Window, spans, window, windowed

_CHUNK_BYTES = 1 << 20
_STEP_BYTES = 64 << 10
_LINE_BYTES = 8 << 20  # progress bars that are never followed by a newline can be a line this long


def read_evidence(
    source: IO[bytes], scout: Scout, *, size_bytes: int, lines: int, limits: Limits = LIMITS
) -> Evidence:
    """What the first `size_bytes` of an open file say, which hold `lines` newlines and of which
    `scout` has seen the lines that can matter.
    """
    if size_bytes <= limits.whole_bytes:
        return diagnose_chunks(_whole(source, size_bytes))
    return windowed(_windows(source, scout, size_bytes, lines, limits), scout)


def _whole(source: IO[bytes], size: int) -> Iterator[bytes]:
    at = 0
    while at < size and (chunk := os.pread(source.fileno(), min(_CHUNK_BYTES, size - at), at)):
        at += len(chunk)
        yield chunk


def _windows(
    source: IO[bytes], scout: Scout, size: int, lines: int, limits: Limits
) -> Iterator[Window]:
    for span in spans(scout, size, limits):
        data = os.pread(source.fileno(), span.end - span.start, span.start)
        begun = _line_begin(source, span.start)
        yield window(span, data, lines=lines, line_offset=begun)


def _line_begin(source: IO[bytes], at: int) -> int | None:
    """Where the line begins that holds byte `at`; None where that is very far away."""
    end = at
    while end > max(0, at - _LINE_BYTES):
        start = max(0, end - _STEP_BYTES)
        found = os.pread(source.fileno(), end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0 if end == 0 else None
