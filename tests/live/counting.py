"""What the far side was asked, as the far side counts it.

Three witnesses: a wrapper before each Slurm command on the PATH of every ssh session (exact, by
user and command line), `sdiag` (RPCs at slurmctld) and `sacctmgr show stats` (RPCs at slurmdbd).
A wrapper before `stat`, which only the script that reads logs calls, tells how often that one ran.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

COMMANDS = ("squeue", "sacct", "scontrol", "sinfo", "sbatch", "scancel", "sacctmgr", "sdiag")

_END = "\x1e"
_BETWEEN = "\x1f"
# One write per call: appends of parallel commands do not mix. IFS joins "$*" by its first byte.
_WRAPPER = """\
#!/bin/sh
lab={lab}
user=$(id -un)
IFS='\x1f'
printf '%s\x1e' "{name}\x1f$*" >>"$lab/calls/$user"
unset IFS
[ ! -x "$lab/faults/$user/{name}" ] || exec "$lab/faults/$user/{name}" "$@"
exec {real} "$@"
"""
# One script looks at many files: sshd gives each command a session of its own, and its number
# (the sixth field; no blank in the name before it) tells one script from the next.
_LOOK = """\
#!/bin/sh
read -r _ _ _ _ _ session _ <"/proc/$$/stat"
printf '%s\n' "$session" >>{lab}/looks/"$(id -un)"
exec {real} "$@"
"""


@dataclass(frozen=True, slots=True)
class Call:
    """One command line of a user; `command` is the bare name."""

    command: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """What one user asked of the far side; subtract an earlier one to get what came since.

    `sessions` are the commands and shells that ran over the logins' connections.
    `failed_logins` named the user and were not let in. `log_scripts` looked at files.
    """

    logins: int = 0
    failed_logins: int = 0
    sessions: int = 0
    log_scripts: int = 0
    commands: Mapping[str, int] = field(default_factory=dict)

    @property
    def squeue(self) -> int:
        return self.commands.get("squeue", 0)

    @property
    def sacct(self) -> int:
        return self.commands.get("sacct", 0)

    @property
    def scontrol(self) -> int:
        return self.commands.get("scontrol", 0)

    def __sub__(self, earlier: Counts) -> Counts:
        return Counts(
            logins=self.logins - earlier.logins,
            failed_logins=self.failed_logins - earlier.failed_logins,
            sessions=self.sessions - earlier.sessions,
            log_scripts=self.log_scripts - earlier.log_scripts,
            commands=grown(self.commands, earlier.commands),
        )


def grown(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """How much each count grew; names that did not move are left out."""
    return {name: n - before.get(name, 0) for name, n in now.items() if n != before.get(name, 0)}


def install_wrappers(folder: Path) -> None:
    """Write the wrappers to `folder`/bin and the places of their notes beside it."""
    binaries = folder / "bin"
    for made in (folder, binaries, folder / "calls", folder / "faults", folder / "looks"):
        made.mkdir(mode=0o755)
    for notes in ("calls", "looks"):
        (folder / notes).chmod(0o1777)  # every user notes its own
    for name in COMMANDS:
        if real := shutil.which(name):
            install_wrapper(folder, name, real)
    looking = binaries / "stat"
    real = shlex.quote(shutil.which("stat") or "stat")
    looking.write_text(_LOOK.format(lab=shlex.quote(str(folder)), real=real))
    looking.chmod(0o755)


def install_wrapper(folder: Path, name: str, real: str) -> Path:
    """Write the wrapper that notes a call of `name` and goes on as `real`."""
    wrapper = folder / "bin" / name
    wrapper.write_text(
        _WRAPPER.format(lab=shlex.quote(str(folder)), name=name, real=shlex.quote(real))
    )
    wrapper.chmod(0o755)
    return wrapper


def scripts_among(looks: str) -> int:
    """How many scripts looked at files, by the sessions that were noted, one a line."""
    sessions = looks.split()
    return sum(1 for at, one in enumerate(sessions) if one != "".join(sessions[at - 1 : at]))


def parse_calls(text: str) -> list[Call]:
    """The notes of the wrappers, oldest first."""
    rows = (row.split(_BETWEEN) for row in text.split(_END)[:-1])
    return [Call(row[0], tuple(row[1:]) if row[1:] != [""] else ()) for row in rows]


_SECTION = re.compile(r"^\s*Remote Procedure Call statistics by (?P<by>message type|user)")
# `REQUEST_JOB_INFO ( 2003) count:5 ave_time:…` here, `DBD_GET_JOBS_COND ( 1444) count:5 …` there
_ROW = re.compile(r"^\s*(?P<name>\S+)\s*\(\s*-?\d+\)\s+count:(?P<count>\d+)")


def parse_sdiag(text: str, *, by: str) -> dict[str, int]:
    """RPC counts of sdiag's section `message type` or `user`."""
    section = ""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        if match := _SECTION.match(line):
            section = match["by"]
        elif line.strip() and not line[0].isspace():
            section = ""
        elif section == by and (match := _ROW.match(line)):
            counts[match["name"]] = int(match["count"])
    return counts


def parse_dbd_stats(text: str) -> dict[str, int]:
    """RPC counts by message type of `sacctmgr show stats`."""
    return {
        match["name"]: int(match["count"])
        for match in map(_ROW.match, text.splitlines())
        if match and match["name"].startswith("DBD_")
    }
