"""Asking one cluster: one poll a kind, then one script for all logs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from jobmond.analysis.settle import Found, Move
from jobmond.model.job import Job
from jobmond.model.observation import (
    Ask,
    LogAsk,
    LogTail,
    Poll,
    Reading,
    Sighting,
    Unavailable,
    Unreachable,
)
from jobmond.model.state import TERMINAL, Kind, PostMortem, State
from jobmond.ports import Clock
from jobmond.sweep.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Answers:
    """What the sources of one cluster said. `trouble` is set where one did not, or only in part."""

    sightings: Mapping[tuple[Kind, str], Sighting]
    found: tuple[Found, ...]
    calls: Mapping[str, int]
    trouble: str | None = None
    needs_login: bool = False
    remedy: str | None = None
    complaints: tuple[str, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether the far side answered anything: a host that did not is not asked for logs."""
        return self.trouble is None or any(
            not isinstance(s, Unreachable) for s in self.sightings.values()
        )


async def ask(
    cluster: Cluster,
    jobs: Sequence[Job],
    *,
    since: datetime,
    clock: Clock,
    anyway: bool = False,
) -> Answers:
    """Poll each source once about `jobs` and, where it can, about others since `since`.

    A source with no job to ask about is left alone, unless it is there to discover, or `anyway`.
    """
    deadline = clock.monotonic() + cluster.budget_s
    polls: list[tuple[Kind, Poll]] = []
    for kind, backend in cluster.backends.items():
        mine = [_ask(j) for j in jobs if j.kind is kind]
        if not (mine or anyway or (backend.discovers and cluster.discover)):
            continue
        left = max(1.0, deadline - clock.monotonic())
        poll = await backend.poll(mine, since=since, now=clock.now(), timeout_s=left)
        polls.append((kind, poll))
    return _joined(polls)


def _ask(job: Job) -> Ask:
    # A log that a person named is the one to read, whatever the source calls the job's output.
    facts = job.facts
    if job.choices.log_path:
        facts = replace(facts, log_path=job.choices.log_path)
    return Ask(
        native_id=job.native_id,
        birth=job.birth,
        added_at=job.added_at,
        submitted_at=job.facts.submitted_at,
        state=job.state if job.first_seen_at else None,
        facts=facts,
    )


def _joined(polls: Iterable[tuple[Kind, Poll]]) -> Answers:
    sightings: dict[tuple[Kind, str], Sighting] = {}
    found: list[Found] = []
    calls: dict[str, int] = {}
    complaints: list[str] = []
    trouble: Poll | None = None
    for kind, poll in polls:
        sightings.update({(kind, i): s for i, s in poll.sightings.items()})
        found.extend(Found(kind, native_id, seen) for native_id, seen in poll.found)
        complaints.extend(poll.complaints)
        for name, count in poll.calls.items():
            calls[name] = calls.get(name, 0) + count
        if poll.trouble is not None and (trouble is None or poll.needs_login):
            trouble = poll
    return Answers(
        sightings,
        tuple(found),
        calls,
        trouble=trouble.trouble if trouble else None,
        needs_login=trouble.needs_login if trouble else False,
        remedy=trouble.remedy if trouble else None,
        complaints=tuple(complaints),
    )


RUNNING_TAIL_BYTES = 4096


def log_asks(moves: Sequence[Move], *, tail_bytes: int) -> list[LogAsk]:
    """Which logs to read: those of ended jobs that want explaining first, then running ones.

    `tail_bytes` is what an ended job's log may cost; a running one's last lines are enough.
    """
    asks: list[LogAsk] = []
    for job in (move.job for move in log_readers(moves).values()):
        size = tail_bytes if job.state in TERMINAL else min(tail_bytes, RUNNING_TAIL_BYTES)
        path = job.choices.log_path or job.facts.log_path
        asks.append(LogAsk(job.native_id, path, job.facts.workdir, size))
    return asks


def log_readers(moves: Iterable[Move]) -> dict[str, Move]:
    """By native id, the most urgent first: the one incarnation whose log is read in a sweep."""
    readers: dict[str, Move] = {}
    for move in sorted(moves, key=_urgency):
        if _readable(move):
            readers.setdefault(move.job.native_id, move)
    return readers


def _urgency(move: Move) -> int:
    if move.job.post_mortem is PostMortem.PENDING:
        return 0
    return 1 if move.transition is not None else 2


def _readable(move: Move) -> bool:
    job = move.job
    if job.stale or job.state in (State.PENDING, State.UNKNOWN):
        return False
    if job.state in TERMINAL:
        ended_now = move.transition is not None and move.restarted_as != job.ref
        return ended_now or job.post_mortem is PostMortem.PENDING
    return True


async def read_logs(
    cluster: Cluster, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
) -> Mapping[str, Reading[LogTail]]:
    """One reading for each ask; none at all where nothing was asked."""
    if not asks:
        return {}
    if timeout_s <= 0:
        return {a.native_id: Unavailable("budget") for a in asks}
    return await cluster.logs.read_tails(asks, now=now, timeout_s=timeout_s)
