"""Processes without a service manager: started, frozen, found again and killed by /proc.

A lab's processes do not stay its children: slurmstepds re-parent to PID 1, and a job may
empty its environment. So "ours" is the union of four signs: a recorded pid, a mark in the
environment, a throw-away user's uid, and descent from any of these.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.live.waiting import wait_for

PROC = Path("/proc")
_MAX_SCANS = 100


@dataclass(frozen=True, slots=True)
class Process:
    """One row of the process table; `started` is in clock ticks since boot."""

    pid: int
    parent: int
    state: str
    started: int
    uid: int
    name: str

    @property
    def alive(self) -> bool:
        """False for a zombie: PID 1 of a container may reap seconds late."""
        return self.state not in "ZX"


def read_process(pid: int) -> Process | None:
    """The row of `pid`, or None when there is no such process (any more)."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(errors="replace")
        status = (PROC / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return None
    name, _, rest = stat.partition("(")[2].rpartition(")")
    fields = rest.split()
    # Not the owner of /proc/PID: that is root for every process that changed its uid.
    uid = next((line.split()[1] for line in status.splitlines() if line.startswith("Uid:")), "0")
    return Process(
        pid=pid,
        parent=int(fields[1]),
        state=fields[0],
        started=int(fields[19]),
        uid=int(uid),
        name=name,
    )


def table() -> dict[int, Process]:
    """Every process of this machine by pid."""
    rows = (read_process(int(entry.name)) for entry in PROC.iterdir() if entry.name.isdigit())
    return {row.pid: row for row in rows if row is not None}


def descendants(roots: Iterable[int], rows: Mapping[int, Process]) -> set[int]:
    """`roots` that exist, and everything that descends from them."""
    children: dict[int, list[int]] = {}
    for row in rows.values():
        children.setdefault(row.parent, []).append(row.pid)
    found = {pid for pid in roots if pid in rows}
    stack = list(found)
    while stack:
        for child in children.get(stack.pop(), ()):
            if child not in found:
                found.add(child)
                stack.append(child)
    return found


@dataclass(frozen=True, slots=True)
class Signs:
    """What makes a process one of a lab's: `marks` are whole `NAME=value` environment entries."""

    marks: frozenset[bytes]
    uids: frozenset[int] = frozenset()


def owned(signs: Signs, roots: Collection[int] = ()) -> set[int]:
    """Pids of the living processes that carry a sign; never this process or its ancestors."""
    rows = {pid: row for pid, row in table().items() if row.alive}
    seeds = {
        pid
        for pid, row in rows.items()
        if pid in roots or row.uid in signs.uids or signs.marks & _environment(pid)
    }
    mine = _ancestry(os.getpid(), rows)
    return descendants(seeds - mine, rows) - mine


def _ancestry(pid: int, rows: Mapping[int, Process]) -> set[int]:
    line: set[int] = set()
    while pid in rows and pid not in line:
        line.add(pid)
        pid = rows[pid].parent
    return line


def _environment(pid: int) -> set[bytes]:
    try:
        return set((PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    except OSError:
        return set()


def send(pids: Iterable[int], what: signal.Signals) -> None:
    """Signal each of `pids`; one that is gone already is no error."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, what)


def freeze_tree(root: int) -> set[int]:
    """SIGSTOP `root` and its descendants, parents first; gives the pids that stand still.

    A parent can fork between the look and the stop, so the tree is read until it stays the same.
    """
    stopped: set[int] = set()
    for _ in range(_MAX_SCANS):
        new = descendants([root], table()) - stopped
        if not new:
            break
        send(sorted(new), signal.SIGSTOP)
        stopped |= new
    return stopped


def thaw_tree(root: int) -> None:
    """SIGCONT `root` and its descendants."""
    send(descendants([root], table()), signal.SIGCONT)


def kill_all(signs: Signs, roots: Collection[int] = (), timeout_s: float = 20.0) -> None:
    """SIGKILL everything that carries a sign until nothing does.

    Raises TimeoutError when something is left after `timeout_s`: that would be a leak.
    """

    def none_left() -> bool:
        left = owned(signs, roots)
        send(left, signal.SIGKILL)
        return not left

    wait_for(none_left, timeout_s, what="the lab's processes to be gone")


def listening(port: int) -> bool:
    """Whether something on 127.0.0.1 accepts connections at `port`.

    Read from the kernel's table: a trial connection would show up in the far side's counts.
    """
    wanted = f"0100007F:{port:04X}"
    rows = (line.split() for line in (PROC / "net" / "tcp").read_text().splitlines()[1:])
    return any(row[1] == wanted and row[3] == "0A" for row in rows)


def identity(pid: int) -> str:
    """Pid and start: a pid alone comes back."""
    row = read_process(pid)
    return f"{pid} {row.started if row and row.alive else 'gone'}"


def same_process(note: str) -> bool:
    """Whether the process whose `identity` is `note` still lives."""
    pid = note.split(" ", maxsplit=1)[0]
    return pid.isdigit() and not note.endswith("gone") and note == identity(int(pid))


class Daemon:
    """One foreground daemon in its own session; its output goes to `output`.

    `note` keeps its identity for whoever cleans up later: sshd overwrites its own environment.
    `as_user` drops privileges for a daemon that refuses root.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        output: Path,
        note: Path,
        env: Mapping[str, str],
        as_user: str | None = None,
    ) -> None:
        self.name = name
        self._argv = list(argv)
        self._output = output
        self._note = note
        self._env = dict(env)
        self._as_user = as_user
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its pid; raises RuntimeError when it is not running."""
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"{self.name} is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """True also while it is frozen."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it unless it runs; says nothing about being ready."""
        if self.running:
            return
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._env,
                start_new_session=True,
                user=self._as_user,
                group=self._as_user,
                extra_groups=None if self._as_user is None else [],
            )
        self._note.write_text(identity(self._process.pid))

    def stop(self, timeout_s: float = 10.0) -> None:
        """SIGTERM, and SIGKILL when that did nothing within `timeout_s`; thaws it first."""
        if not self.running:
            return
        thaw_tree(self.pid)
        self._end(signal.SIGTERM, timeout_s)

    def kill(self) -> None:
        """SIGKILL the daemon alone: what it started lives on, as after a real crash."""
        self._end(signal.SIGKILL, 10.0)

    def freeze(self) -> None:
        """SIGSTOP it with all that descends from it."""
        freeze_tree(self.pid)

    def thaw(self) -> None:
        """Undo `freeze`."""
        thaw_tree(self.pid)

    def children(self) -> set[int]:
        """Living descendants of the daemon, without itself."""
        if not self.running:
            return set()
        rows = {pid: row for pid, row in table().items() if row.alive}
        return descendants([self.pid], rows) - {self.pid}

    def _end(self, how: signal.Signals, timeout_s: float) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout_s)
