"""The script that looks at job logs, all of a cluster's in one go."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from jobmond.backends._files import examining, following
from jobmond.backends._files.prints import PRINT_BYTES
from jobmond.model.observation import LogAsk

# `look INDEX BYTES PATH WORKDIR ID [FOLLOW…]` looks at one file. Only regular files are ever
# opened: a FIFO would block, a device never ends. {mark} is random, so no file can hold it.
_PRELUDE = """\
LC_ALL=C
export LC_ALL
timeout -k 1 1 true 2>/dev/null || timeout() {{ shift 3; "$@"; }}
left={budget} scan={scan} owed={owed}
clock() {{
  if read -r now _ 2>/dev/null </proc/uptime; then now=${{now%%.*}}; else now=$(date +%s); fi
}}
clock
stop=$((now + {stop_s}))
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
elsewhere() {{
  for dir in {log_dirs}; do
    listed "$dir" "$1"
    if [ -n "$newest" ]; then return; fi
  done
}}
known() {{
  about=$(timeout -k 1 {each_s} stat -L -c '%s %Y %i %F' -- "$1" 2>&1)
}}
look() {{
  owed=$((owed - $2))
  clock
  if [ "$now" -ge "$stop" ]; then
    say late "$1"
    return
  fi
  path=$3 seen=
  about='No such file'
  if [ -z "$path" ] || ! known "$path"; then
    case $about in
      *'No such file'* | *'Not a directory'*) ;;
      *'Permission denied'*) denied "$1" "$path"; return ;;
      *) why "$1" "${{about:-the file system does not answer}}"; return ;;
    esac
    listed "$4" "$5"
    if [ -z "$newest" ]; then elsewhere "$5"; fi
    path=$newest
    if [ -z "$path" ] || ! known "$path"; then
      say absent "$1"
      return
    fi
  fi
  f_max=${{6-}} f_stamp=${{7-}} f_offset=${{8-}} f_torn=${{9-}}
  f_print=${{10-}} f_head=${{11-}} f_at=${{12-}} f_near=${{13-}} f_needles=${{14-}}
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
  seen=$path
  if [ -n "$f_max" ]; then follow "$index"; fi
}}
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one script may bring home and look through, and how long it may look at one file.

    `log_dirs` are looked into, one level, where a log is neither where it should be nor in its
    job's working directory. `numbered`: the far side's grep is known to number lines by byte.
    """

    budget_bytes: int = 32 * 2**20
    scan_bytes: int = 2**30
    each_s: int = 10
    log_dirs: tuple[str, ...] = ()
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Marks:
    """Two random words: `mark` frames the answer, `close` ends numbered lines."""

    mark: str
    close: str


def look_script(marks: Marks, asks: Sequence[LogAsk], limits: Limits, *, timeout_s: float) -> bytes:
    """The script that looks at every file. Paths travel quoted, in the script."""
    prelude = _PRELUDE.format(
        mark=marks.mark,
        budget=limits.budget_bytes,
        scan=limits.scan_bytes,
        # One that is begun at the last moment may hang twice before it is given up.
        stop_s=max(1, int(timeout_s) - 2 * limits.each_s - 3),
        owed=sum(map(_tail_bytes, asks)),
        each_s=limits.each_s,
        log_dirs=" ".join(map(shlex.quote, limits.log_dirs)),
    )
    if any(ask.follow for ask in asks):
        prelude += following.script(
            marks.close,
            each_s=limits.each_s,
            numbered=limits.numbered,
            half=limits.budget_bytes // 2,
        )
    if any(ask.examine for ask in asks):
        prelude += examining.script(marks.close, each_s=limits.each_s)
    words = following.Words()
    lines = [line for i, ask in enumerate(asks) for line in _commands(i, ask, words)]
    looks = ("\n".join(lines) + "\nexit 0\n").encode()
    return prelude.encode() + words.assignments() + looks


def _commands(index: int, ask: LogAsk, words: following.Words) -> Iterator[str]:
    yield (
        f"look {index} {_tail_bytes(ask)} {shlex.quote(absolute(ask))} "
        f"{shlex.quote(folder(ask))} {shlex.quote(ask.native_id)} "
        f"{following.arguments(ask.follow, words)}".rstrip()
    )
    if ask.examine is not None:
        yield examining.command(index, ask.examine, words.name(ask.examine.needles))


def _tail_bytes(ask: LogAsk) -> int:
    """By its end a file that is followed is known again."""
    return max(0, ask.tail_bytes, PRINT_BYTES if ask.follow else 0)


def folder(ask: LogAsk) -> str:
    """The working directory; nothing where it is not known."""
    return ask.workdir if ask.workdir and ask.workdir.startswith("/") else ""


def absolute(ask: LogAsk) -> str:
    """The path, against the working directory where it is relative; `~` is never expanded."""
    if not ask.path or ask.path.startswith("/"):
        return ask.path or ""
    workdir = folder(ask)
    return str(PurePosixPath(workdir) / ask.path) if workdir else ""
