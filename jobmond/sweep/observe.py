"""Asking one cluster: one poll a kind, then one script for all logs.

Jobs that have jobs in SLURM of their own (nel, the launcher) are asked about first, so that SLURM
is asked about those in the same question as about all others.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from jobmond.analysis.beside import beside
from jobmond.analysis.discreet import discreet_seen
from jobmond.analysis.ends import wants_explaining
from jobmond.analysis.faults.catalogue import FAR_NEEDLES
from jobmond.analysis.links import LINKED, Others, joined, last_seen, link_asks, linked, merged
from jobmond.analysis.settle import Found, Move
from jobmond.model.job import Job
from jobmond.model.observation import (
    Ask,
    Examine,
    Follow,
    LogAsk,
    LogTail,
    Part,
    Poll,
    Reading,
    Seen,
    Sighting,
    Unavailable,
    Unreachable,
)
from jobmond.model.state import TERMINAL, Bucket, Kind, PostMortem, State
from jobmond.ports import Clock
from jobmond.sweep.cluster import Cluster

# Of a sweep's time, what a launcher that has jobs in SLURM may take: SLURM must be asked as well.
LINKED_SHARE = 0.4


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
    links: dict[str, Ask] = {}
    for kind in sorted(cluster.backends, key=lambda kind: kind not in LINKED):
        backend = cluster.backends[kind]
        mine = {j.native_id: _ask(j) for j in jobs if j.kind is kind}
        asks = list({**links, **mine}.values() if kind is Kind.SLURM else mine.values())
        near = kind in LINKED and bool(jobs)
        if not (asks or anyway or near or (backend.discovers and cluster.discover)):
            continue
        left = max(1.0, deadline - clock.monotonic())
        given = left * LINKED_SHARE if kind in LINKED else left
        poll = await backend.poll(asks, since=since, now=clock.now(), timeout_s=given)
        polls.append((kind, poll))
        links |= _links(kind, jobs, poll, clock.now())
    answers, now = _joined(polls), clock.now()
    return await asyncio.to_thread(lambda: _discreet(joined_up(answers, jobs, now)))


def _discreet(answers: Answers) -> Answers:
    """`answers` as they may be kept: people put secrets into names and command lines."""
    sightings = {
        key: discreet_seen(one) if isinstance(one, Seen) else one
        for key, one in answers.sightings.items()
    }
    found = tuple(replace(one, seen=discreet_seen(one.seen)) for one in answers.found)
    return replace(answers, sightings=sightings, found=found)


def _links(kind: Kind, jobs: Sequence[Job], poll: Poll, now: datetime) -> dict[str, Ask]:
    """What SLURM is to be asked about the jobs of `kind`, by SLURM id."""
    if kind not in LINKED:
        return {}
    parts = [part for _, seen in poll.found for part in seen.parts]
    for job in jobs:
        if job.kind is kind:
            own = poll.sightings.get(job.native_id)
            parts += merged(job.parts, own.parts if isinstance(own, Seen) else (), now)
    return {ask.native_id: ask for ask in link_asks(parts, now)}


def joined_up(answers: Answers, jobs: Sequence[Job], now: datetime) -> Answers:
    """`answers` with SLURM's word about what is known to be SLURM's; its jobs are no finds."""
    strangers = {f.native_id: f.seen for f in answers.found if f.kind is Kind.SLURM}
    others = Others.of(strangers.items())
    slurm: dict[str, Sighting] = {**strangers}
    slurm |= {i: s for (kind, i), s in answers.sightings.items() if kind is Kind.SLURM}
    sightings = dict(answers.sightings)
    parts: list[Part] = []
    for job in (job for job in jobs if job.kind in LINKED):
        own = sightings.get((job.kind, job.native_id))
        if own is not None:
            whole = joined(own, job.parts, slurm, before=last_seen(job), others=others, now=now)
            sightings[job.kind, job.native_id] = whole
            parts += whole.parts if isinstance(whole, Seen) else job.parts
    found = [
        replace(one, seen=whole)
        for one in answers.found
        if one.kind in LINKED
        and isinstance(whole := joined(one.seen, (), slurm, others=others, now=now), Seen)
    ]
    belongs = linked([*parts, *(part for one in found for part in one.seen.parts)])
    found += [f for f in answers.found if f.kind not in LINKED and f.native_id not in belongs]
    return replace(answers, sightings=sightings, found=tuple(found))


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
        parts=job.parts,
        command=job.choices.nel_command,
        home=job.choices.nel_home,
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
ALL_TAILS_BYTES = 2**24  # of those that are not read to their end yet, where there are many


def log_asks(
    readers: Mapping[str, Move],
    follow: Callable[[Job], Follow | None],
    *,
    tail_bytes: int,
    failed_bytes: int,
) -> list[LogAsk]:
    """Which logs to read: those of ended jobs that want explaining first, then running ones.

    `tail_bytes` is what the end of a log may cost; of a running one that is read as it grows the
    last lines are enough, of one that ended badly more is wanted than its end, up to
    `failed_bytes`.
    """
    asks: list[LogAsk] = []
    share = max(4 * RUNNING_TAIL_BYTES, ALL_TAILS_BYTES // max(1, len(readers)))
    for move in readers.values():
        job = move.job
        wanted = follow(job)
        behind = wanted is not None and not (wanted.place or {}).get("whole")
        spoken = job.bucket in (Bucket.EVAL, Bucket.DATAGEN)  # engines tell of minutes in it
        whole = job.state in TERMINAL or spoken
        size = tail_bytes if whole else share if behind else RUNNING_TAIL_BYTES
        path = job.choices.log_path or job.facts.log_path
        size = min(size, tail_bytes)
        # A launcher's file is on this host; what its jobs wrote elsewhere counts once they ended.
        near = job.kind is Kind.LAUNCHER and job.state not in TERMINAL
        folder = None if near else job.facts.workdir
        ask = LogAsk(job.native_id, path, folder, size, wanted, kind=job.kind)
        if wants_explaining(move):
            wide = Examine.within(failed_bytes, FAR_NEEDLES, beside(job))
            # Where a log is no file nobody can be sent to look around in it: more of its end.
            served = job.kind in (Kind.KUBERNETES, Kind.IRIS)
            more = {"tail_bytes": max(size, wide.tail_bytes)} if served else {"examine": wide}
            ask = replace(ask, **more)
        asks.append(ask)
    return asks


def log_readers(moves: Iterable[Move]) -> dict[str, Move]:
    """By native id, the most urgent first: the one incarnation whose log is read in a sweep."""
    readers: dict[str, Move] = {}
    for move in sorted(moves, key=_urgency):
        if _readable(move):
            readers.setdefault(move.job.native_id, move)
    return readers


def _urgency(move: Move) -> tuple[int, float]:
    """Of equal ones that which was read longest ago: with room for a few each has its turn, also
    where every sweep is a program of its own.
    """
    read_at = move.job.log.read_at
    waited = read_at.timestamp() if read_at is not None else 0.0
    if move.job.post_mortem is PostMortem.PENDING:
        return 0, waited
    return (1 if move.transition is not None else 2), waited


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
