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
from jobmond.model.metrics import Segment
from jobmond.model.observation import Follow, LogNews

# What travels of one file at most: more than the longest segment, so that each look gets on.
SHIP_BYTES = 4 * 2**20
_LEAST_BYTES = SEGMENT_BYTES + 65536
_PRINT_BYTES = 1024

# A file is the one known where its first bytes and those before the place are the same; its inode
# is not asked for, because file servers renumber. grep would hold a whole line, but is never
# given more than the window. {close} ends the lines, with the count of what passed; it is another
# random word than {{mark}}, because other people of the host can see it while grep runs.
SCRIPT = """\
exec 4>&1
numbered=no
if [ "$(printf 'b\\ra' | tr '\\r' '\\n' | grep -abF a 2>/dev/null)" = 2:a ]; then numbered=yes; fi
piece() {{
  timeout -k 1 {each_s} tail -c "+$(($1 + 1))" -- "$path" 2>/dev/null | head -c "$2"
}}
print_of() {{
  piece "$1" "$2" | cksum | tr ' ' '-'
}}
known_place() {{
  [ -n "$f_head" ] && [ "$size" -ge "$f_offset" ] || return 1
  [ "$(print_of 0 "${{f_head#*-}}")" = "$f_head" ] || return 1
  [ -z "$f_near" ] && return 0
  near=${{f_near#*-}}
  [ "$(print_of $((f_offset - near)) "$near")" = "$f_near" ]
}}
lesser() {{
  if [ "$1" -lt "$2" ]; then echo "$1"; else echo "$2"; fi
}}
follow() {{
  index=$1
  if [ "$size $mtime $inode" = "$f_stamp" ]; then
    say same "$index"
    return
  fi
  if [ "$left" -lt {least} ] || [ "$scan" -le 0 ] || [ "$(date +%s)" -ge "$stop" ]; then
    say later "$index"
    return
  fi
  from=0 again=0
  if known_place; then
    from=$f_offset
  elif [ -n "$f_head" ]; then
    again=1
  fi
  window=$(lesser $((size - from)) "$(lesser "$f_max" "$scan")")
  cap=$(lesser {ship} "$left")
  if [ "$numbered" = no ]; then window=$(lesser "$window" "$cap"); fi
  scan=$((scan - window))
  last=$(lesser "$window" {segment})
  open=$({{ piece $((from + window - last)) "$last"; printf x; }} |
    tr '\\r' '\\n' | tail -n 1 | wc -c)
  open=$((open - 1))
  place=$((from + window - open))
  if [ "$open" -ge {segment} ]; then place=$((from + window)); fi
  begin=$(lesser "$place" {print})
  say news "$index" "$from" "$window" "$size" "$open" "$again"
  print_of 0 "$begin"
  print_of $((place - begin)) "$begin"
  if [ "$numbered" = no ]; then
    say raw "$index"
    piece "$from" "$window"
    say end "$index"
    left=$((left - window))
    return
  fi
  say lines "$index"
  moved=$({{ {{ piece "$from" "$window"; printf '\\n%s\\n' {close}; }} | tr '\\r' '\\n' |
    grep -abF -e "$f_needles" -e {close} | head -c "$cap" | dd bs=65536 >&4; }} 2>&1)
  moved=${{moved##*out?}}
  moved=${{moved%% *}}
  case $moved in
    '' | *[!0-9]*) moved=$cap ;;
  esac
  left=$((left - moved))
  say end "$index"
}}
"""


def script(close: str, *, each_s: int) -> str:
    """The functions that `look` needs to follow a file."""
    return SCRIPT.format(
        close=close,
        each_s=each_s,
        least=_LEAST_BYTES,
        ship=SHIP_BYTES,
        segment=SEGMENT_BYTES,
        print=_PRINT_BYTES,
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
        str(place.get("head", "")),
        str(place.get("near", "")),
    )
    return " ".join(map(shlex.quote, given)) + f' "${words.name(follow.needles)}"'


@dataclass(frozen=True, slots=True)
class Stamp:
    """What stat said about the file."""

    size_bytes: int
    mtime: int
    inode: int


@dataclass(frozen=True, slots=True)
class Missing:
    """What was said of the news is not all of it."""

    why: str


_NUMBERS = re.compile(rb"(\d{1,20}) (\d{1,20}) (\d{1,20}) (\d{1,20}) ([01])")
_PRINT = re.compile(rb"\d{1,20}-\d{1,20}")


@dataclass(frozen=True, slots=True)
class _Window:
    """The part of the file that was looked at, and where its open last segment is."""

    start: int
    length: int
    size: int
    open: int
    again: bool
    torn: bool  # it begins inside a segment whose beginning was delivered

    @property
    def end(self) -> int:
        return self.start + self.length

    @property
    def place(self) -> int:
        """Where the next look begins."""
        return self.end if self.endless else self.end - self.open

    @property
    def endless(self) -> bool:
        """Whether its last segment is longer than any that is kept whole."""
        return self.open >= SEGMENT_BYTES


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer: the numbers of `news`, two checksums, and the lines (or, raw, the bytes)."""

    numbers: bytes
    prints: bytes
    body: bytes


def read_news(said: Answered, close: bytes, follow: Follow, stamp: Stamp) -> LogNews | Missing:
    """The news in numbered lines that end with `close`; what is less than that is `Missing`."""
    prints, body = said.prints, said.body
    window = _window(said.numbers, follow)
    if window is None:
        return Missing("nothing arrived")
    lines = body.split(b"\n")
    whole = len(lines) > 1 and lines[-1] == b"" and lines[-2].endswith(b":" + close)
    if not whole:
        return _cut_short(lines, prints, window, stamp, len(body))
    if lines[-2] != b"%d:%b" % (window.length + 1, close):
        arrived = lines[-2].partition(b":")[0].decode("ascii", "replace")
        return Missing(f"{window.length} bytes were there to read, {arrived} arrived")
    put = _put(prints, window.place, window, stamp, torn=window.endless)
    return _news(put, _segments(lines[:-2], window), window, len(body))


def raw_news(said: Answered, follow: Follow, stamp: Stamp) -> LogNews | Missing:
    """The same where the far side has no grep that numbers lines: everything travelled."""
    prints, body = said.prints, said.body
    window = _window(said.numbers, follow)
    if window is None:
        return Missing("nothing arrived")
    if len(body) != window.length:
        return Missing(f"{window.length} bytes were asked for, {len(body)} arrived")
    cutter = Cutter(window.start)
    found = list(cutter.feed(body))
    if cutter.open().raw:
        found.append(cutter.open()._replace(closed=window.endless))
    segments = [s for s in found if not (window.torn and s.offset == window.start)]
    put = _put(prints, window.place, window, stamp, torn=window.endless)
    return _news(put, segments, window, len(body))


def _window(numbers: bytes, follow: Follow) -> _Window | None:
    found = _NUMBERS.fullmatch(numbers)
    if found is None:
        return None
    start, length, size, opened, again = (int(n) for n in found.groups())
    torn = bool((follow.place or {}).get("torn")) and not again
    return _Window(start, length, size, opened, bool(again), torn)


def _segments(lines: Iterable[bytes], window: _Window) -> Iterator[Segment]:
    for line in lines:
        number, _, raw = line.partition(b":")
        at = int(number)
        if window.torn and at == 0:
            continue
        ends_open = at + len(raw) == window.length and window.open > 0
        yield Segment(window.start + at, raw[:SEGMENT_BYTES], window.endless or not ends_open)


def _cut_short(
    lines: Sequence[bytes], prints: bytes, window: _Window, stamp: Stamp, moved: int
) -> LogNews | Missing:
    """More lines than may travel: what came whole counts, the rest comes next time."""
    if moved < _LEAST_BYTES:
        return Missing(f"only {moved} bytes arrived, and no end")
    torn = len(lines) == 1  # one segment longer than all that may travel
    came = lines if torn else lines[:-1]
    number, _, raw = came[-1].partition(b":")
    offset = window.start + int(number) + len(raw) + (0 if torn else 1)
    put = _put(prints, offset, window, stamp, torn=torn)
    return _news({**put, "near": "", "whole": False}, _segments(came, window), window, moved)


def _news(
    place: Mapping[str, Any], segments: Iterable[Segment], window: _Window, moved: int
) -> LogNews:
    behind = window.size - (window.end if place["whole"] else place["offset"])
    return LogNews(place, tuple(segments), window.again, behind, moved)


def _put(
    prints: bytes, offset: int, window: _Window, stamp: Stamp, *, torn: bool
) -> Mapping[str, Any]:
    found = [p.decode() if _PRINT.fullmatch(p) else "" for p in prints.split(b"\n")]
    head, near = (*found, "", "")[:2]
    return {
        "offset": offset,
        "head": head,
        "near": near,
        "torn": torn,
        "inode": stamp.inode,
        "size": stamp.size_bytes,
        "mtime": stamp.mtime,
        "whole": window.end == window.size,
    }
