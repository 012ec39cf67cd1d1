"""Logs of jobs that write several files: the ends of the newest of each sort, one after the other.

They are joined under headings like those of `tail`, by which whoever reads them tells them apart.
"""

import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jobmond.analysis.visible import readable, visible
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.model.observation import (
    Absent,
    Examined,
    LogAsk,
    LogPart,
    LogTail,
    Read,
    Reading,
    Unavailable,
)
from jobmond.ports import Transport

# Patterns are constants of this program; only regular files are opened, for a FIFO would block.
_PRELUDE = """\
LC_ALL=C
export LC_ALL
command -v timeout >/dev/null 2>&1 || timeout() {{ shift 3; "$@"; }}
say() {{ printf '\\n%s %s\\n' {mark} "$*"; }}
newest() {{
  found=
  for one in "$@"; do
    [ -f "$one" ] && [ -r "$one" ] && [ -s "$one" ] || continue
    if [ -z "$found" ] || [ "$one" -nt "$found" ]; then found=$one; fi
  done
}}
show() {{
  about=$(stat -L -c '%s %Y' -- "$found" 2>/dev/null) || return 0
  size=${{about% *}} bytes=$2
  if [ "$size" -lt "$bytes" ]; then bytes=$size; fi
  say file "$1" "$size" "${{about#* }}" "$bytes"
  printf '%s' "$found"
  say data "$1"
  timeout -k 1 10 tail -c "$bytes" -- "$found" 2>/dev/null
}}
"""


@dataclass(slots=True)
class _Piece:
    """The end of one file."""

    path: str
    size: int
    mtime_at: datetime
    wanted: int
    data: bytes = b""


class JoinedLogs:
    """Reads what lies in the folders that jobs work in.

    `sorts` are patterns below that folder, the sort that comes first is shown first; a sort may
    have several patterns.
    """

    def __init__(self, transport: Transport, sorts: Sequence[Sequence[str]]) -> None:
        self._transport = transport
        self._sorts = sorts

    async def read_tails(
        self, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[LogTail]]:
        """See `jobmond.ports.LogSource`."""
        asked = [ask for ask in asks if ask.workdir and ask.workdir.startswith("/")]
        found: dict[str, Reading[LogTail]] = {ask.native_id: Absent() for ask in asks}
        if not asked:
            return found
        mark = secrets.token_hex(16)
        script = _PRELUDE.format(mark=mark) + "\n".join(
            self._look(i, ask) for i, ask in enumerate(asked)
        )
        sorts = len(self._sorts)
        room = sum(sorts * (self._each(ask) + 8192) + 8192 for ask in asked) + 65536
        try:
            answer = await self._transport.run(
                f"{script}\nsay end end\nexit 0\n".encode(), timeout_s=timeout_s, max_bytes=room
            )
        except (TransientTransportError, NeedsPersonError) as error:
            return {ask.native_id: Unavailable(str(error)) for ask in asks}
        pieces = _pieces(answer.stdout, mark)
        for i, ask in enumerate(asked):
            found[ask.native_id] = self._reading(
                ask, None if pieces is None else pieces.get(i, []), now
            )
        return found

    def _each(self, ask: LogAsk) -> int:
        """What the end of one file may cost: more where the job ended badly."""
        each = max(1024, ask.tail_bytes // len(self._sorts))
        return each if ask.examine is None else max(each, ask.examine.tail_bytes)

    def _look(self, i: int, ask: LogAsk) -> str:
        each = self._each(ask)
        folder = shlex.quote(ask.workdir or "")
        looks = []
        for sort in self._sorts:
            patterns = " ".join(f"{folder}/{pattern}" for pattern in sort)
            looks.append(f'newest {patterns}\n[ -z "$found" ] || show {i} {each}')
        return "\n".join(looks)

    def _reading(
        self, ask: LogAsk, pieces: Sequence[_Piece] | None, now: datetime
    ) -> Reading[LogTail]:
        if pieces is None:
            return Unavailable("the logs did not arrive whole")
        if not pieces:
            return Absent(tuple(f"{ask.workdir}/{p}" for sort in self._sorts for p in sort)[:6])
        if any(len(piece.data) < piece.wanted for piece in pieces):
            return Unavailable("fewer bytes arrived than were asked for")
        name = [visible(piece.path).rpartition("/")[2] for piece in pieces]
        parts = [
            b"==> %b <==\n%b\n" % (title.encode(), piece.data.rstrip(b"\n"))
            for title, piece in zip(name, pieces, strict=True)
        ]
        tail = LogTail(
            path=pieces[0].path if len(pieces) == 1 else pieces[0].path.rpartition("/")[0],
            size_bytes=sum(piece.size for piece in pieces),
            inode=0,
            mtime_at=max(piece.mtime_at for piece in pieces),
            offset=0,
            tail=b"\n".join(parts),
            joined=True,
            examined=() if ask.examine is None else tuple(_examined(piece) for piece in pieces),
        )
        return Read(tail, now)


def _examined(piece: _Piece) -> Examined:
    """One file by itself; of a large one only the end, whose lines nobody has numbered."""
    start = piece.size - len(piece.data)
    part = LogPart(start, piece.data, 1 if start == 0 else None)
    return Examined(piece.path, piece.size, (part,), searched=start == 0)


_FILE = re.compile(rb"file (?P<which>\d+) (?P<size>\d+) (?P<mtime>\d+) (?P<bytes>\d+)")
_DATA = re.compile(rb"data (?P<which>\d+)")


def _pieces(stdout: bytes, mark: str) -> dict[int, list[_Piece]] | None:
    """The ends of files by which job they belong to; None where the answer is cut short."""
    blocks = re.split(rb"\n%b (?=(?:file|data|end) )" % mark.encode(), stdout)
    if blocks[-1].strip() != b"end end":
        return None
    found: dict[int, list[_Piece]] = {}
    for block in blocks[1:-1]:
        head, _, body = block.partition(b"\n")
        if file := _FILE.fullmatch(head):
            at = datetime.fromtimestamp(int(file["mtime"]), UTC)
            piece = _Piece(readable(body), int(file["size"]), at, int(file["bytes"]))
            found.setdefault(int(file["which"]), []).append(piece)
        elif (data := _DATA.fullmatch(head)) and found.get(int(data["which"])):
            found[int(data["which"])][-1].data = body
    return found
