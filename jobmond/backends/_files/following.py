"""What is new in a log file: the part of the far-side script that finds it, and its answer read.

Only lines that hold a needle travel. The far side numbers them by byte, and counts what it looked
at: fewer bytes than there should be are no answer.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobmond.analysis.segments import SEGMENT_BYTES, Cutter
from jobmond.backends._files import prints
from jobmond.backends._files.prints import PRINT_BYTES
from jobmond.model.metrics import Segment
from jobmond.model.observation import Follow, LogNews, LogTail

# What travels of one file at most: more than the longest segment, so that each look gets on.
SHIP_BYTES = 4 * 2**20
_LEAST_BYTES = SEGMENT_BYTES + 65536
# Up to that a window is not worth the program that measures what it costs, and costs all it can.
_LARGE_BYTES = 16 * 2**10

# A file is the one known where its first bytes, and some before its end at the look before, have
# the sum they had; its inode is not asked for, because file servers renumber. {close} ends the
# window without a line feed, so that its open last segment comes with the number at which it
# begins; it is another random word than {{mark}}, because other people of the host can see it
# while grep runs. A window that begins inside a segment too long to keep skips the rest of that.
# A file of which fewer bytes came than it is known by has not become another: its file system
# hangs, and it is left for later. The ends of all logs come before what is new in any: up to half
# of the budget is kept for them.
SCRIPT = """\
exec 4>&1
numbered={numbered}
if [ "$numbered" = no ] &&
  [ "$(printf 'b\\ra' | tr '\\r' '\\n' | grep -abF a 2>/dev/null)" = 2:a ]; then
  numbered=yes
fi
begin() {{
  timeout -k 1 {each_s} head -c "$1" -- "$path" 2>/dev/null
}}
piece() {{
  timeout -k 1 {each_s} tail -c "+$(($1 + 1))" -- "$path" 2>/dev/null | head -c "$2"
}}
command -v cksum >/dev/null 2>&1 || cksum() {{ echo "$f_print"; }}
known_place() {{
  unread=
  [ "$size" -ge "$f_offset" ] && [ "$size" -ge $((f_at + f_near)) ] || return 1
  found=$({{ begin "$f_head"; piece "$f_at" "$f_near"; }} | cksum)
  if [ "$found" = "$f_print" ]; then return 0; fi
  [ "${{found#* }}" = "${{f_print#* }}" ] || unread=1
  return 1
}}
hung() {{
  clock
  [ $((now - begun)) -ge {each_s} ]
}}
matching() {{
  {{ piece $((from + skip)) $((window - skip)); printf '%s\\n' {close}; }} |
    tr '\\r' '\\n' | grep -abF -e "$f_needles" -e {close} | head -c "$cap"
}}
follow() {{
  index=$1
  if [ "$size $mtime $inode" = "$f_stamp" ]; then
    say same "$index"
    return
  fi
  kept=$owed
  if [ "$kept" -gt {half} ]; then kept={half}; fi
  if [ $((left - kept)) -lt {least} ] || [ "$scan" -le 0 ]; then
    say later "$index"
    return
  fi
  clock
  begun=$now
  if [ "$now" -ge "$stop" ]; then
    say later "$index"
    return
  fi
  from=0 marks=0 skip=0
  if [ -n "$f_print" ]; then
    if known_place; then
      from=$f_offset
    elif [ -n "$unread" ]; then
      say later "$index"
      return
    else
      marks=1
    fi
  fi
  cap={ship}
  if [ $((left - kept)) -lt "$cap" ]; then cap=$((left - kept)); fi
  window=$((size - from))
  if [ "$window" -gt "$f_max" ]; then window=$f_max; fi
  if [ "$window" -gt "$scan" ]; then window=$scan; fi
  if [ "$numbered" = no ] && [ "$window" -gt "$cap" ]; then window=$cap; fi
  if [ "$f_torn" = yes ] && [ "$marks" = 0 ] && [ "$numbered" = yes ]; then
    skip=$(piece "$from" "$window" | tr '\\r' '\\n' | head -n 1 | wc -lc | tr -s ' \\t' ' ')
    skip=${{skip# }}
    if [ "${{skip%% *}}" = 0 ]; then marks=2; fi
    skip=${{skip##* }}
  fi
  if hung; then
    say later "$index"
    return
  fi
  scan=$((scan - window))
  say news "$index" "$from" "$window" "$size" "$skip" "$marks"
  if [ "$offset" -gt 0 ] && {{ [ "$from" = 0 ] || [ "$f_head" -lt {print} ]; }}; then
    begin {print}
  fi
  if [ "$numbered" = no ]; then
    say raw "$index"
    piece "$from" "$window"
    say end "$index"
    left=$((left - window))
    return
  fi
  say lines "$index"
  if [ "$window" -le {large} ]; then
    matching
    left=$((left - 3 * window))
    say end "$index"
    return
  fi
  moved=$({{ matching | dd bs=65536 >&4; }} 2>&1)
  moved=${{moved##*out?}}
  moved=${{moved%% *}}
  case $moved in
    '' | *[!0-9]*) moved=$cap ;;
  esac
  left=$((left - moved))
  say end "$index"
}}
"""


def script(close: str, *, each_s: int, numbered: bool, half: int) -> str:
    """The functions that `look` needs to follow a file. `numbered`: grep is known to number lines,
    and is not tried. `half` of the budget is what news may leave to ends of logs at most.
    """
    return SCRIPT.format(
        close=close,
        each_s=each_s,
        numbered="yes" if numbered else "no",
        half=half,
        least=_LEAST_BYTES,
        ship=SHIP_BYTES,
        large=_LARGE_BYTES,
        print=PRINT_BYTES,
    )


class Words:
    """Sets of needles as shell variables; most files of a sweep share one."""

    def __init__(self) -> None:
        self._names: dict[tuple[bytes, ...], str] = {}

    def name(self, needles: tuple[bytes, ...]) -> str:
        """The variable that holds `needles`, one a line."""
        return self._names.setdefault(needles, f"needles_{len(self._names)}")

    def assignments(self) -> bytes:
        """The script's lines that set the variables. A needle holds no line feed or NUL."""
        return b"".join(
            name.encode() + b"='" + b"\n".join(needles).replace(b"'", b"'\\''") + b"'\n"
            for needles, name in self._names.items()
        )


def arguments(follow: Follow | None, words: Words) -> str:
    """What `look` is told about following; nothing where nobody asked."""
    if follow is None:
        return ""
    place = follow.place or {}
    stamp = " ".join(str(place.get(name, "")) for name in ("size", "mtime", "inode"))
    given = (
        str(max(1, follow.max_bytes)),
        stamp if place.get("whole") else "",
        str(int(place.get("offset", 0))),
        "yes" if place.get("torn") else "no",
        *prints.arguments(place),
    )
    return " ".join(map(shlex.quote, given)) + f' "${words.name(follow.needles)}"'


@dataclass(frozen=True, slots=True)
class Missing:
    """What was said of the news is not all of it."""

    why: str


_NUMBERS = re.compile(rb"(\d{1,20}) (\d{1,20}) (\d{1,20}) (\d{1,20}) ([0-3])")


@dataclass(frozen=True, slots=True)
class _Window:
    """The part of the file that was looked at.

    `skip` are the bytes at its beginning that belong to a segment whose beginning was delivered
    before (`torn`: where they are not known, that one is still to be left out). `stuck`: nothing
    else is in it. `again`: it is another file than the one known.
    """

    start: int
    length: int
    size: int
    skip: int
    again: bool
    stuck: bool
    torn: bool

    @property
    def begin(self) -> int:
        return self.start + self.skip

    @property
    def end(self) -> int:
        return self.start + self.length


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer: the numbers of `news`, how the file begins (where that was needed), and the
    lines (or, raw, the bytes).
    """

    numbers: bytes
    head: bytes
    body: bytes


def read_news(said: Answered, close: bytes, follow: Follow, tail: LogTail) -> LogNews | Missing:
    """The news in numbered lines that end with `close`; what is less than that is `Missing`.

    `tail` is what the same look said of the file and its end.
    """
    window = _window(said.numbers, follow)
    if window is None:
        return Missing("nothing arrived")
    printed = _printed(said, window, follow, tail)
    if printed is None:
        return Missing("how the file begins did not arrive")
    lines = said.body.split(b"\n")
    whole = len(lines) > 1 and lines[-1] == b"" and lines[-2].endswith(close)
    if not whole:
        return _cut_short(lines, printed, window, tail, len(said.body))
    number, _, opened = lines[-2].removesuffix(close).partition(b":")
    if not number.isdigit() or window.begin + int(number) + len(opened) != window.end:
        return Missing(f"{window.length} bytes were there to read, {len(said.body)} arrived")
    last = _opened(window, int(number), opened, follow.needles)
    endless = window.stuck or len(opened) >= SEGMENT_BYTES
    at = window.end if endless else window.end - len(opened)
    put = _put(printed, at, window, tail, torn=endless)
    return _news(put, (*_segments(lines[:-2], window), *last), window, len(said.body))


def raw_news(said: Answered, follow: Follow, tail: LogTail) -> LogNews | Missing:
    """The same where the far side has no grep that numbers lines: everything travelled."""
    window, body = _window(said.numbers, follow), said.body
    if window is None:
        return Missing("nothing arrived")
    printed = _printed(said, window, follow, tail)
    if printed is None:
        return Missing("how the file begins did not arrive")
    if len(body) != window.length:
        return Missing(f"{window.length} bytes were asked for, {len(body)} arrived")
    cutter = Cutter(window.start)
    found = list(cutter.feed(body))
    opened = cutter.open()
    endless = len(opened.raw) >= SEGMENT_BYTES or (window.torn and not found)
    if opened.raw:
        found.append(opened._replace(closed=endless))
    segments = [s for s in found if not (window.torn and s.offset == window.start)]
    at = window.end if endless else opened.offset
    put = _put(printed, at, window, tail, torn=endless)
    return _news(put, segments, window, len(body))


def _window(numbers: bytes, follow: Follow) -> _Window | None:
    found = _NUMBERS.fullmatch(numbers)
    if found is None:
        return None
    start, length, size, skip, marks = (int(n) for n in found.groups())
    torn = bool((follow.place or {}).get("torn")) and not marks & 1
    return _Window(start, length, size, skip, bool(marks & 1), bool(marks & 2), torn)


def _opened(
    window: _Window, number: int, raw: bytes, needles: Sequence[bytes]
) -> tuple[Segment, ...]:
    """The segment at the end of the window that nothing has ended yet, if it matters."""
    if not raw or not (not needles or any(needle in raw for needle in needles)):
        return ()
    kept = raw[:SEGMENT_BYTES]
    return (Segment(window.begin + number, kept, closed=len(raw) >= SEGMENT_BYTES),)


def _segments(lines: Iterable[bytes], window: _Window) -> Iterator[Segment]:
    for line in lines:
        number, _, raw = line.partition(b":")
        yield Segment(window.begin + int(number), raw[:SEGMENT_BYTES])


def _cut_short(
    lines: Sequence[bytes],
    printed: Mapping[str, Any],
    window: _Window,
    tail: LogTail,
    moved: int,
) -> LogNews | Missing:
    """More lines than may travel: what came whole counts, the rest comes next time."""
    if moved < _LEAST_BYTES:
        return Missing(f"only {moved} bytes arrived, and no end")
    torn = len(lines) == 1  # one segment longer than all that may travel
    came = lines if torn else lines[:-1]
    number, _, raw = came[-1].partition(b":")
    offset = window.begin + int(number) + len(raw) + (0 if torn else 1)
    put = _put(printed, offset, window, tail, torn=torn)
    return _news({**put, "whole": False}, _segments(came, window), window, moved)


def _news(
    place: Mapping[str, Any], segments: Iterable[Segment], window: _Window, moved: int
) -> LogNews:
    behind = window.size - (window.end if place["whole"] else place["offset"])
    return LogNews(place, tuple(segments), window.again, behind, moved)


def _printed(
    said: Answered, window: _Window, follow: Follow, tail: LogTail
) -> Mapping[str, Any] | None:
    """By what the file is known next time."""
    return prints.printed(None if window.again else follow.place, said.head, tail)


def _put(
    printed: Mapping[str, Any], offset: int, window: _Window, tail: LogTail, *, torn: bool
) -> Mapping[str, Any]:
    return {
        **printed,
        "offset": offset,
        "torn": torn,
        "inode": tail.inode,
        "size": tail.size_bytes,
        "mtime": int(tail.mtime_at.timestamp()),
        "whole": window.end == window.size,
    }
