"""Reads the ends of job logs: one script for all of a cluster.

A fetch that failed must never look like an idle job. The far side says how large the file is, and
a reading counts only when exactly as many bytes arrived as were asked for.
"""

import re
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath

from jobmond.analysis.visible import readable, visible
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.model.observation import (
    PERMISSION,
    Absent,
    LogAsk,
    LogTail,
    Read,
    Reading,
    Unavailable,
)
from jobmond.ports import Transport

# `look INDEX BYTES PATH WORKDIR ID` looks at one file. Only regular files are ever opened: a FIFO
# would block, a device never ends. {mark} is random, so no file can hold it.
_PRELUDE = """\
LC_ALL=C
export LC_ALL
command -v timeout >/dev/null 2>&1 || timeout() {{ shift 3; "$@"; }}
left={budget}
stop=$(($(date +%s) + {stop_s}))
say() {{ printf '\\n%s %s\\n' {mark} "$*"; }}
why() {{
  say why "$1"
  printf '%.300s' "$2"
  say end "$1"
}}
denied() {{
  what=file at='' rest=${{2#/}}
  while [ "$what" = file ] && [ "$at" != "$2" ]; do
    case $rest in
      */*) at=$at/${{rest%%/*}} rest=${{rest#*/}} ;;
      *) at=$2 ;;
    esac
    if [ "$at" != "$2" ] && [ ! -x "$at" ]; then what=folder; fi
  done
  say denied "$1"
  timeout -k 1 {each_s} stat -L -c '%U %A' -- "$at" 2>/dev/null || echo
  id -un 2>/dev/null || id -u
  printf '%s\n%.4096s' "$what" "$at"
  say end "$1"
}}
listed() {{
  newest=
  [ -n "$1" ] || return 0
  for one in "$1"/*_"$2".out "$1"/slurm-"$2".out; do
    [ -f "$one" ] || continue
    if [ -z "$newest" ] || [ "$one" -nt "$newest" ]; then newest=$one; fi
  done
}}
known() {{
  about=$(timeout -k 1 {each_s} stat -L -c '%s %Y %i %F' -- "$1" 2>&1)
}}
look() {{
  if [ "$(date +%s)" -ge "$stop" ]; then
    say late "$1"
    return
  fi
  path=$3
  about='No such file'
  if [ -z "$path" ] || ! known "$path"; then
    case $about in
      *'No such file'* | *'Not a directory'*) ;;
      *'Permission denied'*) denied "$1" "$path"; return ;;
      *) why "$1" "${{about:-the file system does not answer}}"; return ;;
    esac
    listed "$4" "$5"
    path=$newest
    if [ -z "$path" ] || ! known "$path"; then
      say absent "$1"
      return
    fi
  fi
  show "$1" "$2" $about
}}
show() {{
  index=$1 bytes=$2 size=$3 mtime=$4 inode=$5
  shift 5
  if [ "$1" != regular ]; then
    if [ "$path" = /dev/null ]; then say absent "$index"; else why "$index" "it is a $*"; fi
    return
  fi
  if [ ! -r "$path" ]; then
    denied "$index" "$path"
    return
  fi
  if [ "$size" -lt "$bytes" ]; then bytes=$size; fi
  if [ "$bytes" -gt "$left" ]; then
    say budget "$index"
    return
  fi
  left=$((left - bytes))
  offset=$((size - bytes))
  say file "$index" "$size" "$mtime" "$inode" "$offset" "$bytes"
  printf '%s' "$path"
  say data "$index"
  if [ "$bytes" -gt 0 ]; then
    timeout -k 1 {each_s} tail -c "+$((offset + 1))" -- "$path" 2>/dev/null | head -c "$bytes"
  fi
  say end "$index"
}}
"""


@dataclass(frozen=True, slots=True)
class Short:
    """Fewer bytes than asked for, or none: tried once more, then unavailable."""

    why: str


class FileReader:
    """Reads logs through `transport`, for every source whose jobs write to files.

    `budget_bytes` bounds what one call brings home; files beyond it are `Unavailable("budget")`
    and come first in the next call. `each_s` bounds one look at one file.
    """

    def __init__(
        self, transport: Transport, *, budget_bytes: int = 32 * 2**20, each_s: int = 10
    ) -> None:
        self._transport = transport
        self._budget_bytes = budget_bytes
        self._each_s = each_s
        self._postponed: frozenset[str] = frozenset()

    async def read_tails(
        self, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[LogTail]]:
        """One reading for each ask; a log that came in part is asked for once more."""
        found: dict[str, Reading[LogTail]] = {
            ask.native_id: Unavailable(f"cannot be asked for: {wrong}")
            for ask in asks
            if (wrong := _unaskable(ask))
        }
        wanted = [ask for ask in asks if ask.native_id not in found]
        wanted.sort(key=lambda ask: ask.native_id not in self._postponed)
        first = await self._look(wanted, now=now, timeout_s=timeout_s * 0.7)
        again = [ask for ask in wanted if isinstance(first[ask.native_id], Short)]
        second = await self._look(again, now=now, timeout_s=timeout_s * 0.3)
        for native_id, reading in {**first, **second}.items():
            found[native_id] = Unavailable(reading.why) if isinstance(reading, Short) else reading
        self._postponed = frozenset(
            native_id for native_id, reading in found.items() if reading == Unavailable("budget")
        )
        return found

    async def _look(
        self, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
    ) -> dict[str, Reading[LogTail] | Short]:
        if not asks:
            return {}
        mark = secrets.token_hex(16)
        script = look_script(
            mark, asks, budget_bytes=self._budget_bytes, each_s=self._each_s, timeout_s=timeout_s
        )
        room = self._budget_bytes + 65536 + 8192 * len(asks)
        try:
            answer = await self._transport.run(script, timeout_s=timeout_s, max_bytes=room)
        except (TransientTransportError, NeedsPersonError) as error:
            return {ask.native_id: Unavailable(str(error)) for ask in asks}
        return readings(answer.stdout, mark, asks, now=now)


def _unaskable(ask: LogAsk) -> str | None:
    texts = (ask.native_id, ask.path or "", ask.workdir or "")
    if any("\0" in text for text in texts):
        return "its path holds a NUL"
    if any(not _encodable(text) for text in texts):
        return "its path is no text"
    return None


def _encodable(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


def look_script(
    mark: str, asks: Iterable[LogAsk], *, budget_bytes: int, each_s: int, timeout_s: float
) -> bytes:
    """The script that looks at every file. Paths travel quoted, in the script."""
    stop_s = max(1, int(timeout_s) - each_s)
    prelude = _PRELUDE.format(mark=mark, budget=budget_bytes, stop_s=stop_s, each_s=each_s)
    lines = [
        f"look {i} {max(0, ask.tail_bytes)} {shlex.quote(_absolute(ask))} "
        f"{shlex.quote(_folder(ask))} {shlex.quote(ask.native_id)}"
        for i, ask in enumerate(asks)
    ]
    return (prelude + "\n".join(lines) + "\nexit 0\n").encode()


def _folder(ask: LogAsk) -> str:
    return ask.workdir if ask.workdir and ask.workdir.startswith("/") else ""


def _absolute(ask: LogAsk) -> str:
    """The path, against the working directory where it is relative; `~` is never expanded."""
    if not ask.path or ask.path.startswith("/"):
        return ask.path or ""
    folder = _folder(ask)
    return str(PurePosixPath(folder) / ask.path) if folder else ""


_HEAD = re.compile(rb"(why|denied|late|absent|budget|file) (\d{1,9})((?: \d{1,20}){5})?\n")


def readings(
    stdout: bytes, mark: str, asks: Sequence[LogAsk], *, now: datetime
) -> dict[str, Reading[LogTail] | Short]:
    """One reading for each ask from what the script printed; whatever is missing is `Short`."""
    found: dict[str, Reading[LogTail] | Short] = {
        ask.native_id: Short("nothing arrived") for ask in asks
    }
    for index, reading in _Looks(stdout, mark.encode(), asks, now):
        if index < len(asks):
            found[asks[index].native_id] = reading
    return found


@dataclass(frozen=True, slots=True)
class _Looks:
    """What one script printed, taken apart in one pass."""

    stdout: bytes
    mark: bytes
    asks: Sequence[LogAsk]
    now: datetime

    def __iter__(self) -> Iterator[tuple[int, Reading[LogTail] | Short]]:
        lead, at = b"\n%b " % self.mark, 0
        while (at := self.stdout.find(lead, at)) >= 0:
            at += len(lead)
            head = _HEAD.match(self.stdout, at)
            if head is None:
                continue
            at, index = head.end(), int(head[2])
            if head[1] == b"file":
                at, reading = self._file(at, index, head[3] or b"")
                yield index, reading
            elif index < len(self.asks):
                yield index, self._word(head[1], at, index)

    def _word(self, kind: bytes, at: int, index: int) -> Reading[LogTail] | Short:
        """A file that was not read, and why."""
        if kind == b"absent":
            return Absent(_looked(self.asks[index]))
        if kind not in (b"why", b"denied"):
            return Unavailable("budget")
        stop = self.stdout.find(self._line("end", index), at)
        if stop < 0:
            return Short("nothing arrived")
        said = self.stdout[at:stop]
        return Unavailable(_denied(said) if kind == b"denied" else _why(said))

    def _file(self, at: int, index: int, numbers: bytes) -> tuple[int, Reading[LogTail] | Short]:
        """The file whose header ends at `at`, and where its answer ends."""
        data, end = self._line("data", index), self._line("end", index)
        begin = self.stdout.find(data, at)
        if begin < 0 or not numbers:
            return at, Short("nothing arrived")
        size, mtime, inode, offset, asked = (int(number) for number in numbers.split())
        path, begin = readable(self.stdout[at:begin]), begin + len(data)
        # By length first: then nothing in the file can be taken for the end of it.
        stop = begin + asked
        if not self.stdout.startswith(end, stop):
            stop = self.stdout.find(end, begin)
            got = len(self.stdout) - begin if stop < 0 else stop - begin
            return begin, Short(f"{size} bytes are there, {asked} were asked for, {got} arrived")
        tail = LogTail(path, size, inode, self._instant(mtime), offset, self.stdout[begin:stop])
        return stop, Read(tail, self.now)

    def _line(self, word: str, index: int) -> bytes:
        return b"\n%b %b %d\n" % (self.mark, word.encode(), index)

    def _instant(self, mtime: int) -> datetime:
        try:
            return datetime.fromtimestamp(mtime, UTC)
        except (OverflowError, OSError, ValueError):
            return self.now  # a clock beyond datetime's years


def _why(said: bytes) -> str:
    return visible(readable(said.strip()))


def _denied(said: bytes) -> str:
    """Who may not read what, and how its owner can let them, as the far side sees it."""
    lines = [visible(readable(line)) for line in said.split(b"\n", 3)]
    if len(lines) != len(("owner and mode", "user", "what", "path")):
        return f"{PERMISSION}denied"
    (owner, _, mode), user, what, path = lines[0].partition(" "), *lines[1:]
    verb, right = ("enter", "x") if what == "folder" else ("read", "r")
    text = f"{PERMISSION}{user} may not {verb} {path}"
    if not owner or owner == user:
        return text
    fix = shlex.join(["setfacl", "-m", f"u:{user}:{right}", path])
    return f"{text} ({mode} {owner}); {owner} can allow it: {fix}"


def _looked(ask: LogAsk) -> tuple[str, ...]:
    """Where the far side looked, for a person to read."""
    folder = _folder(ask)
    places = [_absolute(ask)]
    if folder:
        places += [f"{folder}/*_{ask.native_id}.out", f"{folder}/slurm-{ask.native_id}.out"]
    return tuple(visible(place) for place in places if place)
