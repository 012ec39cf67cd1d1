"""One value of Slurm's text output at a time. Whatever cannot be read is None, never a guess."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from jobmond.analysis.visible import readable, visible

_NOTHING = frozenset({"", "(null)", "None", "N/A", "NONE", "Unknown", "NOT_SET", "None assigned"})
_ID = re.compile(r"([1-9]\d{0,18})(?:_(\d{1,10})|\+(\d{1,6}))?", re.ASCII)
_LISTED = re.compile(r"([1-9]\d{0,18})(?:_(?:(\d{1,10})|\[([^\]]*)\]?)|\+(\d{1,6}))?", re.ASCII)
_SPAN = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?", re.ASCII)
_CLOCK = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,2})(?:\.\d+)?", re.ASCII)
_EXIT = re.compile(r"(\d{1,10}):(\d{1,10})", re.ASCII)
_NO_TASK_YET = "4294967294"  # the unsigned -2 that stands for %a of a pending array
_LATEST = 253402300799  # the last second datetime can hold
_HIGHEST_SIGNAL = 64  # 0:125 is Slurm's mark for an out-of-memory kill, not a signal


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks of `[2-9%2]` or `[0-1,3]`. `whole` is false where Slurm cut the text with `...`."""

    spans: tuple[range, ...] = ()
    whole: bool = True

    def __contains__(self, task: object) -> bool:
        return any(task in span for span in self.spans)

    def __len__(self) -> int:
        return sum(len(span) for span in self.spans)

    def __iter__(self) -> Iterator[int]:
        for span in self.spans:
            yield from span


@dataclass(frozen=True, slots=True)
class JobId:
    """`4711`, `4711_3`, `4711_[4-9%2]` or `4711+1`, taken apart."""

    master: str
    task: int | None = None
    waiting: TaskSet | None = None
    component: int | None = None

    @property
    def single(self) -> bool:
        return self.task is None and self.waiting is None and self.component is None


def asked_id(text: str) -> JobId | None:
    """An id as people give it (`4711`, `4711_3`, `4711+1`); None for any other form."""
    match = _ID.fullmatch(text)
    if match is None:
        return None
    master, task, component = match.groups()
    return JobId(master, _number(task), None, _number(component))


def listed_id(text: str) -> JobId | None:
    """An id as squeue's %i and sacct's JobID write it; None for any other form."""
    match = _LISTED.fullmatch(text)
    if match is None:
        return None
    master, task, waiting, component = match.groups()
    tasks = None if waiting is None else task_set(waiting)
    return JobId(master, _number(task), tasks, _number(component))


def task_set(text: str) -> TaskSet:
    """`2-9%2`, `0-1,3`, `0-20:4`; what cannot be read is left out and `whole` is false."""
    spans: list[range] = []
    whole = True
    for piece in text.partition("%")[0].split(","):
        match = _SPAN.fullmatch(piece)
        if match is None:
            whole = False
            continue
        first = int(match[1])
        spans.append(range(first, int(match[2] or first) + 1, max(1, int(match[3] or 1))))
    return TaskSet(tuple(spans), whole)


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def words(raw: bytes) -> str | None:
    """Free text made safe to show; None where Slurm says that there is none."""
    text = visible(readable(raw))
    return None if text.strip() in _NOTHING else text


def title(raw: bytes) -> str | None:
    """A job's name: a job may really be called `None` or `Unknown`."""
    return visible(readable(raw)) or None


def epoch(raw: bytes) -> int | None:
    """Epoch seconds, or `2026-11-29T15:54:22` taken as UTC; None for `Unknown` and the like."""
    text = raw.decode("ascii", "replace").strip()
    if text.isascii() and text.isdigit():
        seconds = int(text) if len(text) <= 12 else 0
        return seconds if 0 < seconds <= _LATEST else None
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) or None
    except ValueError:
        return None


def instant(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def duration_s(raw: bytes) -> int | None:
    """`1-02:03:04`, `3:04`; None for `UNLIMITED`, `NOT_SET`, `INVALID`."""
    match = _CLOCK.fullmatch(raw.decode("ascii", "replace").strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def count(raw: bytes) -> int | None:
    text = raw.decode("ascii", "replace").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def exit_pair(raw: bytes) -> tuple[int, int] | None:
    """`137:0` as (137, 0): what the script returned, and the signal."""
    match = _EXIT.fullmatch(raw.decode("ascii", "replace").strip())
    return None if match is None else (int(match[1]), int(match[2]))


def signal_of(pair: tuple[int, int] | None) -> int | None:
    return pair[1] if pair and 0 < pair[1] <= _HIGHEST_SIGNAL else None


def usable_path(raw: bytes | None) -> str | None:
    """An absolute path with every pattern expanded, or None.

    Slurm does not expand `~`, leaves `%N` and the like as they are, and shows a pending array's
    task as 4294967294. A path that cannot be shown as it is cannot be asked for either.
    """
    if raw is None or not raw.startswith(b"/") or b"%" in raw:
        return None
    text = visible(readable(raw))
    if _NO_TASK_YET in text or text.encode() != raw:
        return None
    return text


def last_line(raw: bytes, *, limit: int = 300) -> str:
    """The last line with something on it, safe to show: where Slurm's tools say what is wrong."""
    lines = [line for line in raw.splitlines() if line.strip()]
    return visible(readable(lines[-1].strip()))[:limit] if lines else ""
