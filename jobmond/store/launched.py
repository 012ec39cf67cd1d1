"""What `jobmonctl run` wrote down about the processes it launched: a JSON object a file, and logs.

The folder is ours alone. A file that is a link, somebody else's or open to others was not written
by `jobmonctl run` and is passed over.
"""

import contextlib
import json
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_LARGEST_BYTES = 1 << 20
_RECORD = re.compile(r"pid-[1-9][0-9]*-[0-9a-fA-F-]{32,36}:[0-9]+\.json")
_OURS = re.compile(r"[1-9][0-9]*-[0-9]+\.log|pid-.*\.tmp")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Launched:
    """One process. `birth` is `<boot id>:<start ticks>`; `ended_at` is None while it is not known
    to have ended; `body` is the record as it was written."""

    path: Path
    pid: int
    birth: str
    log: Path | None
    ended_at: datetime | None
    written_at: datetime
    body: Mapping[str, Any]

    @property
    def native_id(self) -> str:
        return f"pid-{self.pid}"

    @property
    def identity(self) -> tuple[str, str]:
        """Native id and birth: the incarnation."""
        return self.native_id, self.birth


@dataclass(frozen=True, slots=True)
class Keep:
    """How long records and logs stay. Those of ended processes that nobody tracks go after
    `longest`, and beyond the newest `most` already after `shortest`."""

    longest: timedelta = timedelta(days=7)
    shortest: timedelta = timedelta(days=1)
    most: int = 500


def launched(folder: Path) -> tuple[Launched, ...]:
    """The records in `folder`, in the order they were last written; none where there is none."""
    found = []
    for path in _entries(folder):
        if _RECORD.fullmatch(path.name):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                found.append(_read(path))
    return tuple(sorted(found, key=lambda one: (one.written_at, one.path.name)))


def recent(folder: Path, since: datetime) -> tuple[Launched, ...]:
    """The records of processes that live, or that were last heard of since then."""
    return tuple(one for one in launched(folder) if _since(one) >= since or _lives(one))


def forget(folder: Path, wanted: Collection[tuple[str, str]], *, keep: Keep, now: datetime) -> int:
    """Remove what is old: records with their logs, and logs and drafts that no record names.

    `wanted` are the incarnations that are tracked or still being explained; nothing of theirs is
    touched, nor of a process that lives, nor a log that was written to lately. The number of
    records removed.
    """
    records = launched(folder)
    old = [one for one in _old(records, keep, now) if one.identity not in wanted]
    gone = [one for one in old if not _young(one.log, now - keep.shortest) and not _lives(one)]
    for one in gone:
        # The log first: a crash in between leaves a record whose turn comes again.
        for path in (one.log, one.path):
            if path is not None and path.parent == folder:
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
    named = {one.log for one in records}
    for path in _entries(folder):
        stray = _OURS.fullmatch(path.name) and path not in named
        if stray and not _young(path, now - keep.longest):
            path.unlink(missing_ok=True)
    return len(gone)


def _old(records: Sequence[Launched], keep: Keep, now: datetime) -> Iterator[Launched]:
    ended = sorted((r for r in records if r.ended_at), key=_since, reverse=True)
    surplus = {one.path for one in ended[keep.most :]}
    for one in records:
        age = now - _since(one)
        if age > keep.longest or (one.path in surplus and age > keep.shortest):
            yield one


def _since(one: Launched) -> datetime:
    return one.ended_at or one.written_at


def _entries(folder: Path) -> Iterable[Path]:
    """Plain files of ours in a folder of ours."""
    try:
        held = folder.stat()
    except OSError:
        return
    if held.st_uid != os.geteuid() or held.st_mode & 0o022:
        return
    for path in list(folder.iterdir()):
        with contextlib.suppress(OSError):
            kind = path.lstat()
            ours = kind.st_uid == os.geteuid() and not kind.st_mode & 0o022
            if stat.S_ISREG(kind.st_mode) and ours:
                yield path


def _read(path: Path) -> Launched:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        body = json.loads(file.read(_LARGEST_BYTES))
        written_at = datetime.fromtimestamp(os.fstat(descriptor).st_mtime, UTC)
    pid, birth = int(body["pid"]), str(body["birth"])
    if path.name != f"pid-{pid}-{birth}.json":
        raise ValueError("a record is called like its process")
    ended_at = datetime.fromisoformat(body["ended_at"]) if body.get("ended_at") else None
    if ended_at is not None and ended_at.tzinfo is None:
        raise ValueError("an instant has an offset")
    log = Path(body["log"]) if body.get("log") else None
    return Launched(path, pid, birth, log, ended_at, written_at, body)


def _young(path: Path | None, since: datetime) -> bool:
    """Whether the file was written to since then."""
    try:
        return path is not None and path.lstat().st_mtime >= since.timestamp()
    except OSError:
        return False


def _lives(one: Launched) -> bool:
    """Whether the process is still there; a later one with its number has another birth."""
    try:
        told = Path(f"/proc/{one.pid}/stat").read_text(encoding="utf-8", errors="replace")
        ticks = told.rpartition(")")[2].split()[19]
        return one.birth == f"{_BOOT_ID.read_text(encoding='ascii').strip()}:{ticks}"
    except (OSError, IndexError):
        return False
