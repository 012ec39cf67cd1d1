"""The one script that reads output files, from where they were read to, and the launcher's map."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from jobmond.analysis.visible import readable, visible

# Only regular files are opened: a FIFO would block. `follow` shows what came after a byte of the
# same file; of another file under the name, or one that shrank, it shows the beginning.
_PRELUDE = """\
LC_ALL=C
export LC_ALL
command -v timeout >/dev/null 2>&1 || timeout() {{ shift 3; "$@"; }}
say() {{ printf '\\n%s %s\\n' {mark} "$*"; }}
follow() {{
  about=$(stat -L -c '%s %Y %i %F' -- "$2" 2>&1) || {{
    say lacks "$1"
    printf '%.300s' "$about"
    return
  }}
  case $about in
    *' regular file' | *' regular empty file') ;;
    *) say lacks "$1"; printf 'it is no file'; return ;;
  esac
  [ -r "$2" ] || {{ say lacks "$1"; printf 'Permission denied'; return; }}
  set -- "$1" "$2" "$3" "$4" $about
  from=$4
  if [ "$7" != "$3" ] || [ "$5" -lt "$from" ]; then from=0; fi
  count=$(($5 - from))
  if [ "$count" -gt {most} ]; then count={most}; fi
  say file "$1" "$5" "$6" "$7" "$from" "$count"
  [ "$count" -eq 0 ] ||
    timeout -k 1 10 tail -c "+$((from + 1))" -- "$2" 2>/dev/null | head -c "$count"
}}
map() {{
  [ -f "$1" ] && [ -r "$1" ] || return 0
  say map 0
  timeout -k 1 10 tail -c {map_bytes} -- "$1" 2>/dev/null
}}
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An output file, and where its reading stands (inode 0: it was never read)."""

    path: str
    inode: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class More:
    """What came of a file: `data` begins at `offset`; `size` is all there is."""

    size: int
    mtime_at: datetime
    inode: int
    offset: int
    data: bytes


@dataclass(slots=True)
class Answered:
    """Files by their place among those wanted (a text says why there is none), and the map."""

    files: dict[int, More | str] = field(default_factory=dict)
    map: bytes = b""


def ask(
    wanted: Sequence[Wanted], maps: Sequence[str], *, mark: str, most: int, map_bytes: int
) -> bytes:
    """The script for these files and maps."""
    lines = [_PRELUDE.format(mark=mark, most=most, map_bytes=map_bytes)]
    lines += [
        f"follow {i} {shlex.quote(one.path)} {one.inode} {one.offset}"
        for i, one in enumerate(wanted)
    ]
    lines += [f"map {_path(path)}" for path in maps]
    return "\n".join([*lines, "say end end", "exit 0", ""]).encode()


def _path(path: str) -> str:
    """Quoted; a home folder is that of whoever the script runs as."""
    head, slash, rest = path.partition("/")
    if head == "~":
        return f'"$HOME"{slash}{shlex.quote(rest)}'
    if head == "$NEMORUN_HOME":
        return f'"${{NEMORUN_HOME:-$HOME/.nemo_run}}"{slash}{shlex.quote(rest)}'
    return shlex.quote(path)


_FILE = re.compile(
    rb"file (?P<which>\d+) (?P<size>\d+) (?P<mtime>\d+) (?P<inode>\d+) (?P<from>\d+) (?P<n>\d+)"
)
_LACKS = re.compile(rb"lacks (?P<which>\d+)")


def answered(stdout: bytes, mark: str) -> Answered | None:
    """What the script printed; None where it was cut short."""
    blocks = re.split(rb"\n%b (?=(?:file|lacks|map|end) )" % mark.encode(), stdout)
    if blocks[-1].strip() != b"end end":
        return None
    found = Answered()
    for block in blocks[1:-1]:
        head, _, body = block.partition(b"\n")
        if file := _FILE.fullmatch(head):
            found.files[int(file["which"])] = _more(file, body)
        elif lacks := _LACKS.fullmatch(head):
            found.files[int(lacks["which"])] = _why(body)
        elif head == b"map 0":
            found.map += body + b"\n"
    return found


def _more(file: re.Match[bytes], body: bytes) -> More | str:
    if len(body) != int(file["n"]):
        return "fewer bytes came than there are"
    at = datetime.fromtimestamp(int(file["mtime"]), UTC)
    return More(int(file["size"]), at, int(file["inode"]), int(file["from"]), body)


def _why(body: bytes) -> str:
    said = visible(readable(body).strip())
    for known in ("No such file", "Not a directory"):
        if known in said:
            return "it is not there"
    return "it may not be read" if "Permission denied" in said else said[:200]
