"""Diagnoses a log that is too large to be read whole from windows on it.

`windowed` takes windows from wherever they come. A far side that is asked once chooses them by
itself: head, tail and what stands around lines that hold one of `FAR_NEEDLES`
(faults/catalogue.py), rare kinds of lines first. On this side a `Scout` chooses better, since it
judges every line that was found:

1. Search the whole log for `FAR_NEEDLES` and `NEAR_NEEDLES` and feed the lines that are found into
   a `Scout`, in order.
2. `spans(scout, size_bytes)` names what to read: head, neighbourhoods of lines that can matter,
   tail; few and bounded, however many lines were found.
3. Read each span and pass its bytes through `window`, which leaves out everything beyond 200 lines
   around the line that was found, and numbers the first line.
4. `windowed(windows, scout)` is the evidence; `choosing.choose` names the cause.

The verdict is that of the whole log where the needles find what matters in the middle of it.
Without a scout nothing is known of what lies between windows: a failure that the job survived for
some steps looks like its end unless the windows show those steps, and gradients are not followed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest

from jobmond.analysis.benign import NOTHING, Benign
from jobmond.analysis.diagnoser import ENDS, Diagnoser, Evidence
from jobmond.analysis.noting import NAN, SPIKE
from jobmond.analysis.scout import Scout, Spot

AROUND_LINES = 200


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a log is read. `around_bytes` is read before and after a line that was found;
    neighbourhoods add up to `middle_bytes`. Logs of up to `whole_bytes` are read whole.
    """

    whole_bytes: int = 4 << 20
    head_bytes: int = 256 << 10
    tail_bytes: int = 1 << 20
    around_bytes: int = 32 << 10
    middle_bytes: int = 2 << 20


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes to read: `start` inclusive, `end` exclusive. `found` are the lines it is read for; with
    none it is the head or the tail.
    """

    start: int
    end: int
    found: tuple[Spot, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """Bytes of a log, from byte `offset` on.

    `line` is the number (from 1, LF only) of the line in which the first byte stands, which may be
    the middle of it; None where that is not known: then lines found in it have no number.
    `line_offset` is where that line begins; where that is not known, a diagnosis in the rest of it
    has the byte of its own text instead.
    """

    offset: int
    data: bytes
    line: int | None = None
    line_offset: int | None = None


def spans(scout: Scout, size_bytes: int, limits: Limits = LIMITS) -> tuple[Span, ...]:
    """What to read of a log of `size_bytes`, in the order of the log; spans do not overlap."""
    if size_bytes <= limits.whole_bytes:
        return (Span(0, size_bytes),)
    head = Span(0, min(limits.head_bytes, size_bytes))
    tail = Span(max(head.end, size_bytes - limits.tail_bytes), size_bytes)
    middle: list[Span] = []
    for spot in scout.spots():
        start = max(head.end, spot.offset - limits.around_bytes)
        end = min(tail.start, spot.offset + limits.around_bytes)
        if spot.offset >= tail.start or start >= end:
            continue
        joined = _joined([*middle, Span(start, end, (spot,))])
        if sum(span.end - span.start for span in joined) <= limits.middle_bytes:
            middle = joined
    return (head, *middle, tail)


def _joined(parts: Iterable[Span]) -> list[Span]:
    """Spans that touch as one."""
    joined: list[Span] = []
    for part in sorted(parts, key=lambda span: (span.start, span.end)):
        if joined and part.start <= joined[-1].end:
            before = joined[-1]
            found = tuple(sorted({*before.found, *part.found}, key=lambda spot: spot.offset))
            joined[-1] = Span(before.start, max(before.end, part.end), found)
        else:
            joined.append(part)
    return joined


def window(
    span: Span, data: bytes, *, lines: int | None = None, line_offset: int | None = None
) -> Window:
    """What was read of a span, without what is far from the lines it is read for.

    For the tail `lines` is how many newlines the whole log has; without it lines of the tail
    have no number. `line_offset` is where the line begins in which the span does.
    """
    if not span.found:
        number = None if lines is None else lines - data.count(b"\n") + 1
        return Window(span.start, data, 1 if span.start == 0 else number, line_offset)
    first = max(0, span.found[0].offset - span.start)  # the head may reach beyond it
    begin = first
    for _ in range(AROUND_LINES + 1):
        begin = data.rfind(b"\n", 0, begin)
        if begin < 0:
            break
    begin += 1
    end = max(0, span.found[-1].offset - span.start)
    for _ in range(AROUND_LINES):
        end = data.find(b"\n", end) + 1
        if not end:
            break
    number = span.found[0].line
    if number is not None:
        number -= data.count(b"\n", begin, first)
    offset = span.start + begin
    return Window(offset, data[begin : end or len(data)], number, offset if begin else line_offset)


def windowed(
    windows: Iterable[Window], scout: Scout | None = None, *, benign: Benign = NOTHING
) -> Evidence:
    """The evidence of the log of which these are windows; memory stays flat.

    Windows may overlap and come in any order; the last byte of the last one is taken for the end
    of the log. `scout` knows what stands between them: whether steps went on, whether gradients
    exploded.
    """
    scout = scout or Scout()
    diagnoser = Diagnoser(benign, scout.advances)
    ordered = sorted(windows, key=lambda one: one.offset)
    end = 0
    for each, after in zip_longest(ordered, ordered[1:]):
        data, line, offset, begun = each.data, each.line, each.offset, each.line_offset
        if offset > end and offset != begun:
            cut, passed = _beginning(data)
            data, offset = data[cut:], offset + cut
            line = None if line is None else line + passed
            begun = offset if passed else begun
        end = max(end, each.offset + len(each.data))
        if after is not None and after.offset > end:
            data = data[: max(data.rfind(b"\n"), data.rfind(b"\r")) + 1]
        diagnoser.feed(data, offset=offset, line=line, line_offset=begun)
    return _completed(diagnoser.evidence(), scout)


def _beginning(data: bytes) -> tuple[int, int]:
    """Where the first whole line or painted piece begins, and whether a line was passed for it."""
    cut = data.find(b"\n")
    back = data.find(b"\r", 0, cut if cut >= 0 else len(data))
    if back >= 0:
        return back + 1, 0
    return (cut + 1, 1) if cut >= 0 else (len(data), 0)


def _completed(found: Evidence, scout: Scout) -> Evidence:
    """What only the scout knows of a log that was not read whole."""
    if not found.gaps:
        return found
    events = [
        each
        for each in found.events
        if each.fault is not SPIKE and (each.fault is not NAN or each.place > scout.healed)
    ]
    spike = scout.lasting_spike()
    if spike is not None and not any(each.fault is NAN for each in events):
        events = sorted([*events, spike], key=lambda each: each.place)
    ended = min((each.place for each in events if each.fault.role in ENDS), default=None)
    reborn = scout.reborn if ended is not None and (scout.reborn or 0) > ended else None
    return replace(
        found,
        events=tuple(events),
        born=max(found.born, reborn or 0),
        benign=max(found.benign, scout.benign),
    )
