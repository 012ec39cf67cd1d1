"""The one script that looks at processes, and what its answer says."""

import json
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from jobmond.analysis.mask import mask
from jobmond.analysis.visible import readable, visible
from jobmond.ports import Answer

TAIL_BYTES = 65_536
_MARK = b"=jobmond="
_COMMAND_CHARS = 2_000


class Unreadable(Exception):
    """The script gave no whole answer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One process to look at: its number, its log as last known, and whether a record of its end
    is worth waiting for."""

    pid: int
    log_path: str | None
    awaited: bool


@dataclass(frozen=True, slots=True)
class Host:
    """`ticks_per_s` is the unit of start times, counted from `booted_at`."""

    boot_id: str
    ticks_per_s: int
    booted_at: datetime
    name: str
    user: str
    root: bool


@dataclass(frozen=True, slots=True)
class Stat:
    """`/proc/PID/stat`: name of the program, state letter, start, wait status once it is dead."""

    program: str
    state: str
    start_ticks: int
    wait_status: int | None


@dataclass(frozen=True, slots=True)
class Record:
    """What `jobmonctl run` wrote about one process."""

    birth: str
    name: str | None = None
    command: str | None = None
    log: str | None = None
    workdir: str | None = None
    user: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None

    @property
    def closed(self) -> bool:
        return self.exit_code is not None or self.signal is not None


@dataclass(frozen=True, slots=True)
class Log:
    """The end of a dead process's log, its whole size and who owns the file."""

    path: str
    size_bytes: int
    owner: str
    tail: bytes


@dataclass(frozen=True, slots=True)
class Process:
    """What the script saw. Without `stat` the process is gone, or `hidden` where it only cannot
    be looked at. Paths are absolute; None where they could not be read.
    """

    stat: Stat | None = None
    hidden: str | None = None
    user: str | None = None
    workdir: str | None = None
    out: str | None = None
    err: str | None = None
    command: str | None = None
    records: tuple[Record, ...] = ()
    log: Log | None = None
    complaints: tuple[str, ...] = field(default=())


# A user without a name, as in many a container, goes by the number.
# Frames begin with a word that nobody outside this script knows, so that no file can fake one.
# Processes are looked at before records are read: who writes its end and dies in between is seen
# to have ended, never to be gone. Where a process is dead and its record still open, the one who
# has to close it gets `$patience` seconds.
_SCRIPT = r"""
LC_ALL=C; export LC_ALL
frame() { printf '\n%s %s\n' "$mark" "$*"; }
owner() {
  o=$(stat -c %U "$1" 2>/dev/null) || return
  [ "$o" != UNKNOWN ] || o=$(stat -c %u "$1" 2>/dev/null)
  printf '%s\n' "$o"
}
look() {
  s=$(cat "/proc/$1/stat" 2>/dev/null)
  if [ -z "$s" ]; then
    frame "$1 gone"; kill -0 "$1" 2>&1
    dead="$dead $1"; return
  fi
  frame "$1 stat"; printf '%s' "$s"
  case "${s##*) }" in [ZXx]*) dead="$dead $1";; esac
  frame "$1 user"; owner "/proc/$1"
  frame "$1 workdir"; readlink "/proc/$1/cwd" 2>/dev/null
  frame "$1 out"; [ -f "/proc/$1/fd/1" ] && readlink "/proc/$1/fd/1" 2>/dev/null
  frame "$1 err"; [ -f "/proc/$1/fd/2" ] && readlink "/proc/$1/fd/2" 2>/dev/null
  frame "$1 command"; head -c 8192 "/proc/$1/cmdline" 2>/dev/null
}
is_dead() { case " $dead " in *" $1 "*) return 0;; esac; return 1; }
await() {
  is_dead "$1" || return
  for r in "$runs/pid-$1-$boot:"*.json; do
    [ -f "$r" ] && ! grep -q '"ended_at": "' "$r" && open=1
  done
}
record() {
  for r in "$runs/pid-$1-"*.json; do
    if [ -f "$r" ]; then frame "$1 record"; head -c 131072 "$r"; fi
  done
}
tail_of() {
  [ -f "$2" ] && [ ! -L "$2" ] && [ -r "$2" ] || return 1
  frame "$1 log_path"; printf '%s' "$2"
  frame "$1 log_stat"; stat -c %s "$2"; owner "$2"
  frame "$1 log"; tail -c "$tail_bytes" "$2"
}
log() {
  is_dead "$1" || return
  [ -n "$2" ] && tail_of "$1" "$2" && return
  for r in "$runs/pid-$1-"*.json; do
    [ -f "$r" ] || continue
    l=$(sed -n 's/.*"log": "\([^"\\]*\)".*/\1/p' "$r" | head -n 1)
    [ -n "$l" ] && tail_of "$1" "$l" && return
  done
}
[ -r /proc/self/stat ] || { echo '/proc is not mounted' >&2; exit 3; }
if [ -e "$runs" ] && [ ! -r "$runs" ]; then echo "$runs cannot be read" >&2; exit 3; fi
boot=$(cat /proc/sys/kernel/random/boot_id) || exit 3
frame '- host'
printf '%s\n' "$boot"; getconf CLK_TCK; sed -n 's/^btime //p' /proc/stat
uname -n; me=$(id -un 2>/dev/null) || me=$(id -u); printf '%s\n' "$me"; id -u
dead=
"""


def script(asked: Sequence[Asked], *, runs: str, patience_s: int) -> bytes:
    """The script that looks at every process of `asked`."""
    mark = _MARK.decode() + secrets.token_hex(16)
    steps = [
        f"mark={mark}",
        f"runs={shlex.quote(runs)}",
        f"tail_bytes={TAIL_BYTES}",
        _SCRIPT,
        *(f"look {one.pid}" for one in asked),
        f"patience={patience_s}",
        'while [ "$patience" -gt 0 ]; do',
        "open=",
        *(f"await {one.pid}" for one in asked if one.awaited),
        '[ -z "$open" ] && break',
        "sleep 1; patience=$((patience - 1))",
        "done",
        *(f"record {one.pid}" for one in asked),
        *(f"log {one.pid} {shlex.quote(one.log_path or '')}" for one in asked),
        "frame '- end'",
    ]
    return ("\n".join(steps) + "\n").encode("utf-8", "surrogateescape")


def read(answer: Answer) -> tuple[Host, Mapping[int, Process]]:
    """The host and each process by number.

    Raises:
        Unreadable: the script failed, or its answer is not whole.
    """
    if answer.exit_code != 0:
        said = readable(answer.stderr).strip().split("\n")[-1]
        raise Unreadable(f"looking at /proc failed ({answer.exit_code}): {visible(said)}")
    frames = list(_frames(answer.stdout))
    if not frames or frames[-1][:2] != ("-", "end"):
        raise Unreadable("looking at /proc gave no whole answer")
    host: Host | None = None
    parts: dict[int, list[tuple[str, bytes]]] = {}
    for owner, name, content in frames:
        if owner == "-":
            host = _host(content) if name == "host" else host
        else:
            parts.setdefault(int(owner), []).append((name, content))
    if host is None:
        raise Unreadable("looking at /proc gave no whole answer")
    return host, {pid: _process(pid, found) for pid, found in parts.items()}


def _frames(stdout: bytes) -> Iterator[tuple[str, str, bytes]]:
    begin = stdout.find(b"\n" + _MARK)
    if begin < 0:
        return
    mark = stdout[begin : begin + 1 + len(_MARK) + 32]
    for chunk in stdout[begin:].split(mark + b" ")[1:]:
        head, _, content = chunk.partition(b"\n")
        owner, _, name = head.decode("ascii", "replace").partition(" ")
        yield owner, name, content


def _host(content: bytes) -> Host:
    try:
        boot_id, ticks, booted, name, user, uid = readable(content).strip().split("\n")
        return Host(
            boot_id=boot_id,
            ticks_per_s=int(ticks),
            booted_at=datetime.fromtimestamp(int(booted), UTC),
            name=visible(name),
            user=visible(user),
            root=uid == "0",
        )
    except ValueError as error:
        raise Unreadable(f"this host describes itself in a way not understood: {error}") from error


def _process(pid: int, parts: Sequence[tuple[str, bytes]]) -> Process:
    process = Process()
    log: dict[str, bytes] = {}
    words: dict[str, str | None] = {}
    for name, content in parts:
        if name == "record":
            process = _with_record(process, pid, content)
        elif name.startswith("log"):
            log[name] = content
        elif name == "stat":
            process = replace(process, stat=_stat(content))
        elif name == "gone":
            process = replace(process, hidden=_hidden(content))
        elif name == "command":
            process = replace(process, command=_command(content))
        else:
            words[name] = _word(content)
    return replace(
        process,
        log=_log(log),
        user=words.get("user"),
        workdir=words.get("workdir"),
        out=words.get("out"),
        err=words.get("err"),
    )


def _stat(content: bytes) -> Stat | None:
    # The name of the program is in parentheses and may hold anything, more of them included.
    head, _, rest = content.rpartition(b")")
    fields = rest.split()
    try:
        return Stat(
            program=visible(readable(head.partition(b"(")[2])),
            state=fields[0].decode("ascii"),
            start_ticks=int(fields[19]),
            wait_status=int(fields[49]) if len(fields) > 49 else None,
        )
    except (ValueError, IndexError):
        return None


def _hidden(content: bytes) -> str | None:
    """Why a process without an entry in /proc is not known to be gone."""
    said = readable(content).strip()
    if not said:
        return "it lives, but /proc does not show it"
    if "no such process" in said.lower():
        return None
    return f"it cannot be looked at: {visible(said.rpartition(': ')[2])}"


def _command(content: bytes) -> str | None:
    words = [readable(word) for word in content.rstrip(b"\0").split(b"\0")]
    return _shown(words) if content.strip(b"\0\n") else None


def _shown(words: Sequence[str]) -> str:
    return visible(mask(shlex.join(words)))[:_COMMAND_CHARS]


def _word(content: bytes) -> str | None:
    return visible(readable(content.removesuffix(b"\n"))) or None


def _log(parts: Mapping[str, bytes]) -> Log | None:
    try:
        size, owner = readable(parts["log_stat"]).split()
        return Log(readable(parts["log_path"]), int(size), owner, parts["log"])
    except (KeyError, ValueError):
        return None


def _with_record(process: Process, pid: int, content: bytes) -> Process:
    try:
        record = _record(json.loads(content))
    except (ValueError, TypeError, KeyError):
        said = f"the record of pid-{pid} cannot be read and is left out"
        return replace(process, complaints=(*process.complaints, said))
    return replace(process, records=(*process.records, record))


def _record(body: Any) -> Record:
    if not isinstance(body, Mapping):
        raise TypeError("a record is an object")
    command = body.get("command")
    return Record(
        birth=str(body["birth"]),
        name=_text(body.get("name")),
        command=_shown([str(word) for word in command]) if command else None,
        log=_text(body.get("log")),
        workdir=_text(body.get("workdir")),
        user=_text(body.get("user")),
        started_at=_instant(body.get("started_at")),
        ended_at=_instant(body.get("ended_at")),
        exit_code=_number(body.get("exit_code")),
        signal=_number(body.get("signal")),
    )


def _text(value: object) -> str | None:
    return visible(value) if isinstance(value, str) and value else None


def _number(value: object) -> int | None:
    return None if value is None else int(str(value))


def _instant(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    at = datetime.fromisoformat(value)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)


def started_at(stat: Stat, host: Host) -> datetime:
    """When a process began, to about a second."""
    since_boot = timedelta(seconds=stat.start_ticks / host.ticks_per_s)
    return (host.booted_at + since_boot).replace(microsecond=0)
