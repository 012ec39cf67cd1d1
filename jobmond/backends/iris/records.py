"""The controller's JSON records, read into values. Pure; anything may be missing or wrong."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from jobmond.analysis.mask import mask
from jobmond.analysis.visible import visible
from jobmond.backends.iris.words import job_word, task_word

_TEXT_CHARS = 500
_WORDS_CHARS = 4000
_LAST_WORDS = ". stderr: "
_DIGITS = re.compile(r"-?[0-9]{1,18}")
_LONGEST_ID = 500


@dataclass(frozen=True, slots=True)
class Record:
    """What the controller says of one job.

    `word` is its state's word, None where it is not one we know (`native` then has it). `birth` is
    the instant of submission in milliseconds, as text. `counts` are tasks by the word of their
    state, None where the record has no counts we can read. `away` says that another cluster
    runs it.
    """

    job_id: str
    word: str | None
    native: str
    birth: str | None
    submitted_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    waits_for: str | None
    failures: int
    preemptions: int
    tasks: int
    counts: Mapping[str, int] | None
    parent: bool
    away: bool


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a job. `attempt` counts from 0; `worker_failures` are attempts lost with their
    worker, `place` is where it runs or ran last."""

    index: str
    word: str | None
    native: str
    exit_code: int | None
    error: str | None
    last_words: str | None
    finished_ms: int | None
    attempt: int
    worker_failures: int
    place: str | None


@dataclass(frozen=True, slots=True)
class Children:
    """The jobs that a job has submitted, by the word of their state; `bad` are failed ones.

    `total` is how many there are, of which only the newest may have been listed.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    bad: tuple[str, ...] = ()
    total: int = 0


def wrong_id(native: str) -> str | None:
    """What is wrong with an id given without its leading slash; None where nothing is."""
    parts = native.split("/")
    if len(native) > _LONGEST_ID or not native.isprintable() or not all(map(str.strip, parts)):
        return f"{native[:80]!r} is no id of an iris job: write user/job, without the first slash"
    if len(parts) < 2:
        return f"{native!r} is no id of an iris job: write user/job, like alice/{native}"
    if len(parts) > 2 and parts[-1].isascii() and parts[-1].isdigit():
        return f"{native!r} is a task of an iris job: give its job, {'/'.join(parts[:-1])!r}"
    return None


def record(raw: object) -> Record | None:
    """The record that `raw` is; None where it does not even say whose it is."""
    if not isinstance(raw, dict) or not isinstance(raw.get("jobId"), str):
        return None
    submitted = _ms(raw.get("submittedAt"))
    native = raw.get("state")
    return Record(
        job_id=raw["jobId"].removeprefix("/"),
        word=job_word(native),
        native=visible(str(native))[:80],
        birth=None if submitted is None else str(submitted),
        submitted_at=_instant(submitted),
        started_at=_instant(_ms(raw.get("startedAt"))),
        finished_at=_instant(_ms(raw.get("finishedAt"))),
        error=_why(raw.get("error")),
        waits_for=_why(raw.get("pendingReason")),
        failures=_number(raw.get("failureCount")) or 0,
        preemptions=_number(raw.get("preemptionCount")) or 0,
        tasks=_number(raw.get("taskCount")) or 0,
        counts=_counts(raw.get("taskStateCounts", {})),
        parent=raw.get("hasChildren") is True,
        away=raw.get("peerStatus", "PEER_STATUS_NONE") not in ("PEER_STATUS_NONE", ""),
    )


def records(raw: object) -> list[Record] | None:
    """The records of a list; None where it is no list."""
    if not isinstance(raw, list):
        return None
    return [one for one in map(record, raw) if one is not None]


def tasks(raw: object) -> tuple[Task, ...]:
    """The tasks of an answer, in its order; what is no task is left out."""
    listed = raw if isinstance(raw, list) else []
    return tuple(_task(one) for one in listed if isinstance(one, dict))


def children(found: Iterable[Record], total: object = None) -> Children:
    """What a job's own jobs are doing."""
    counts: dict[str, int] = {}
    bad = []
    for one in found:
        word = one.word or one.native
        counts[word] = counts.get(word, 0) + 1
        if word in ("failed", "worker_failed", "unschedulable"):
            bad.append(one.job_id)
    return Children(counts, tuple(sorted(bad)), _number(total) or 0)


def _task(raw: Mapping[str, Any]) -> Task:
    attempts = raw.get("attempts")
    tried = [a for a in attempts if isinstance(a, dict)] if isinstance(attempts, list) else []
    name = raw.get("taskId")
    return Task(
        index=visible(name.rpartition("/")[2])[:20] if isinstance(name, str) else "?",
        word=task_word(raw.get("state")),
        native=visible(str(raw.get("state")))[:80],
        exit_code=_number(raw.get("exitCode")),
        error=_why(raw.get("error")),
        last_words=_last_words(raw.get("error")),
        finished_ms=_ms(raw.get("finishedAt")),
        attempt=_number(raw.get("currentAttemptId")) or 0,
        worker_failures=sum(1 for a in tried if a.get("isWorkerFailure") is True),
        place=_place(raw, tried),
    )


def _place(raw: Mapping[str, Any], tried: Sequence[Mapping[str, Any]]) -> str | None:
    last = tried[-1] if tried else {}
    return _text(last.get("nodeName")) or _text(raw.get("workerId"))


def _counts(raw: object) -> Mapping[str, int] | None:
    """Tasks by word; None where a word or a number is none of ours."""
    if not isinstance(raw, dict):
        return None
    found: dict[str, int] = {}
    for native, number in raw.items():
        word, count = task_word(native), _number(number)
        if word is None or count is None or count < 0:
            return None
        found[word] = count
    return found


def _text(raw: object) -> str | None:
    if not isinstance(raw, str):
        return None
    return visible(mask(" ".join(raw[: 8 * _TEXT_CHARS].split())))[:_TEXT_CHARS] or None


def _why(raw: object) -> str | None:
    """A reason without the program's last words after it."""
    return _text(raw.partition(_LAST_WORDS)[0]) if isinstance(raw, str) else None


def _last_words(raw: object) -> str | None:
    """What the program said last, where the error has it."""
    said = raw.partition(_LAST_WORDS)[2] if isinstance(raw, str) else ""
    return visible(mask(said[-_WORDS_CHARS:]), keep="\n\t").strip() or None


def _number(raw: object) -> int | None:
    """A number; Protobuf writes those of 64 bits as text."""
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int):
        return raw if abs(raw) < 10**18 else None
    return int(raw) if isinstance(raw, str) and _DIGITS.fullmatch(raw) else None


def _ms(raw: object) -> int | None:
    found = _number(raw.get("epochMs")) if isinstance(raw, dict) else None
    return found if found is not None and found > 0 else None


def _instant(ms: int | None) -> datetime | None:
    if ms is None:
        return None
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None  # beyond the years of a calendar
