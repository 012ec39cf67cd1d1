"""What `jobmonctl run` writes down about a process, so that its end is known without a daemon.

One JSON object a process, `pid-<pid>-<birth>.json` in the `runs` folder, replaced atomically:
at the start without `exit_code`, `signal` and `ended_at`, at the end with them (the one of code
and signal that does not apply is null). `birth` is `<boot id>:<start ticks>`. What the person
asked for (`description`, `labels`, `bucket`, `type`, `run`) is there for a daemon that starts
later.
"""

import contextlib
import json
import os
import pwd
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from jobmond.reports.times import instant

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Record:
    """One process. `command` is its argument list, instants are RFC 3339."""

    pid: int
    birth: str
    name: str
    command: tuple[str, ...]
    log: str | None
    workdir: str
    user: str
    started_at: str
    description: str | None = None
    labels: tuple[str, ...] = ()
    bucket: str | None = None
    type: str | None = None
    run: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    ended_at: str | None = None

    @property
    def boot_id(self) -> str:
        return self.birth.partition(":")[0]

    @property
    def start_ticks(self) -> int:
        return int(self.birth.partition(":")[2])

    def ended(self, status: int, at: datetime) -> "Record":
        """With the wait status of the process."""
        code = os.waitstatus_to_exitcode(status)
        return replace(
            self,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            ended_at=instant(at),
        )


def birth_of(pid: int) -> str:
    """What tells a process from a later one with the same number.

    A zombie still has it. Raises OSError where the process is gone.
    """
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    # The command's name is in parentheses and may hold anything, more of them included.
    ticks = text.rpartition(")")[2].split()[19]
    return f"{_BOOT_ID.read_text(encoding='ascii').strip()}:{ticks}"


def me() -> str:
    """The Unix user's name, or number where it has none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def write(folder: Path, record: Record) -> Path:
    """Replace the record of this process; it is on disk when this returns.

    Raises:
        OSError: it could not be written; the former one stands.
    """
    path = folder / f"pid-{record.pid}-{record.birth}.json"
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(record), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return path
