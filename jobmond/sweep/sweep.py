"""One sweep of one cluster: load, ask, decide, commit. The only place that awaits and decides."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from jobmond.analysis import notices
from jobmond.analysis.followed import NO_TOOLS, Followed, Tools
from jobmond.analysis.health import changed, health_after, may_contact
from jobmond.analysis.owed_news import followup_news
from jobmond.analysis.owing import verified
from jobmond.analysis.settle import Classify, Found, Move, asked_about, classed, settled
from jobmond.analysis.steady import steadied
from jobmond.analysis.tried import Tried
from jobmond.model.commit import ClusterSnapshot, JobChange, SweepCommit
from jobmond.model.job import ClusterHealth, Job
from jobmond.model.observation import LogTail, Read, Reading, Seen
from jobmond.model.state import TERMINAL, ClusterStatus, Kind, PostMortem, State
from jobmond.model.training import Place, Training
from jobmond.ports import Clock
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.conclude import Conclusion, Setting, Terms, concluded, news_deliveries
from jobmond.sweep.follow import followers
from jobmond.sweep.observe import Answers, ask, log_asks, log_readers, read_logs
from jobmond.sweep.past import Archives, past_of
from jobmond.sweep.steadiness import Steadiness
from jobmond.sweep.telling import say, say_denied
from jobmond.sweep.trees import NO_TREES, Trees, look_at_trees

Call = Callable[..., Awaitable[Any]]

# Accounting and our clock may disagree a little; what is known already is never adopted twice.
ADOPT_SLACK = timedelta(minutes=5)


class Memory(Archives, Protocol):
    """The part of the store that a sweep needs."""

    def snapshot(self, cluster: str, *, correct_since: datetime) -> ClusterSnapshot: ...
    def known(
        self, cluster: str, kind: Kind, native_ids: Sequence[str]
    ) -> frozenset[tuple[str, str | None]]: ...
    def commit(self, commit: SweepCommit) -> None: ...
    def places(self, ids: Sequence[int]) -> Mapping[int, Place]: ...
    def readings(self, ids: Sequence[int]) -> Mapping[int, bytes]: ...
    def trees(self, ids: Sequence[int]) -> Mapping[int, bytes]: ...


@dataclass(frozen=True, slots=True)
class Result:
    """What one sweep of one cluster did. `contacted` is false where it was left alone.

    `found` are living jobs of its users that nobody tracks, `waiting` all that are PENDING.
    `idle`: nothing was to be asked about, so `status` proves nothing.
    """

    cluster: str
    at: datetime
    status: str
    jobs: int
    changes: int
    error: str | None = None
    remedy: str | None = None
    contacted: bool = True
    idle: bool = False
    found: tuple[Found, ...] = ()
    waiting: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a cluster gave: answers, what became of each job, logs, and what is new in
    those that are followed, by native id.
    """

    answers: Answers
    moves: Sequence[Move]
    readings: Mapping[str, Reading[LogTail]]
    read: Mapping[str, Followed] = field(default_factory=dict)
    trees: Trees = NO_TREES

    @property
    def moved_bytes(self) -> int:
        """What the logs cost on the way."""
        tails = [r.value for r in self.readings.values() if isinstance(r, Read)]
        parts = (part for t in tails for one in t.examined for part in one.parts)
        tailed = sum(len(t.tail) + (t.news.moved_bytes if t.news else 0) for t in tails)
        return tailed + sum(len(part.data) for part in parts)


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Sweeps clusters. `call` runs a store method in the writer's thread."""

    memory: Memory
    call: Call
    clock: Clock
    classify: Classify
    terms: Terms
    unknown_for: timedelta = timedelta(hours=24)
    correct_for: timedelta = timedelta(hours=24)
    tools: Tools = NO_TOOLS
    steadiness: Steadiness = field(default_factory=Steadiness)

    async def sweep(self, cluster: Cluster, *, asked: bool = False) -> Result:
        """One sweep of `cluster`; `asked` by a person overrides back-off and needs-login."""
        started_at = self.clock.now()
        past = await self._past(cluster, started_at)
        if not cluster.active:
            return await self._switched_off(cluster, past, started_at)
        if not await _may_contact(cluster, past.health, now=started_at, asked=asked):
            return _left_alone(cluster, past, started_at)
        if asked:
            cluster.retry_login()
        answered_at = (past.health.last_ok_at if past.health else None) or started_at
        since = min(answered_at, started_at)  # a clock that was set back has been later already
        deadline = self.clock.monotonic() + cluster.budget_s
        pollable = list(asked_about(past.jobs).values())
        # A log that cannot be read proves nothing unless the cluster answers otherwise.
        wanted = any(j.post_mortem is PostMortem.PENDING for j in past.jobs)
        answers = await ask(
            cluster,
            pollable,
            since=since - ADOPT_SLACK,
            clock=self.clock,
            anyway=asked or wanted,
        )
        moves = await self._settled(cluster, past, answers)
        left_s = deadline - self.clock.monotonic()
        look = await self._with_logs(cluster, answers, moves, left_s=left_s)
        if answers.reached:
            readers = log_readers(look.moves)
            trees = await look_at_trees(
                cluster, readers, self.memory, self.call, owed=past.owed, logs=look.readings,
                clock=self.clock, deadline=deadline,
            )  # fmt: skip
            look = replace(look, answers=trees.answered(answers), trees=trees)
        return await self._commit(cluster, past, look, started_at)

    async def _past(self, cluster: Cluster, now: datetime) -> ClusterSnapshot:
        past: ClusterSnapshot = await self.call(
            self.memory.snapshot, cluster.name, correct_since=now - self.correct_for
        )
        since = self.steadiness.look(self.clock)
        if since is None:
            return past
        return replace(past, jobs=tuple(steadied(job, since, now) for job in past.jobs))

    async def _with_logs(
        self, cluster: Cluster, answers: Answers, moves: Sequence[Move], *, left_s: float
    ) -> Look:
        """One script for all logs, and what is new in them folded into what was read before."""
        if not answers.reached:
            return Look(answers, moves, {})
        readers = log_readers(moves)
        logs = await followers(
            readers,
            self.memory,
            self.call,
            tools=self.tools,
            max_bytes=cluster.log_read_bytes,
        )
        asks = log_asks(
            readers, logs.ask, tail_bytes=cluster.tail_bytes, failed_bytes=cluster.failed_bytes
        )
        readings = await read_logs(cluster, asks, now=self.clock.now(), timeout_s=left_s)
        read = await logs.folded(readings, self.memory, self.call, now=self.clock.now())
        told: dict[int | None, Training | None] = {
            m.job.id: read[i].training for i, m in readers.items() if m.job.id and i in read
        }
        moved = [self._read_as(m, read, readers, told) for m in moves]
        return Look(answers, moved, readings, read)

    def _read_as(
        self,
        move: Move,
        read: Mapping[str, Followed],
        readers: Mapping[str, Move],
        told: Mapping[int | None, Training | None],
    ) -> Move:
        """With what its log says, or that of the life it continues while it has none."""
        job = move.job
        if readers.get(job.native_id) is move and job.native_id in read:
            training = read[job.native_id].training
        elif job.predecessor in told and job.state is State.PENDING:
            training = told[job.predecessor]
        else:
            return move
        return replace(move, job=classed(replace(job, training=training), self.classify))

    async def _settled(
        self, cluster: Cluster, past: ClusterSnapshot, answers: Answers
    ) -> tuple[Move, ...]:
        found = await self._unknown(cluster.name, answers.found)
        first_contact = past.health is None or past.health.last_ok_at is None
        moves = await asyncio.to_thread(
            settled,
            cluster.name,
            past.jobs,
            answers.sightings,
            found,
            adopt=cluster.discover,
            adopt_ended=not first_contact,  # what ended before we watched is no news
            lives=past.lives,
            classify=self.classify,
            now=self.clock.now(),
            unknown_for=self.unknown_for,
        )
        return await self._told_before(cluster.name, moves)

    async def _told_before(self, cluster: str, moves: Sequence[Move]) -> tuple[Move, ...]:
        """`moves` without the word about incarnations whose end was told in an earlier tracking.

        Somebody who adds an id once more, and means the job that has ended, gets no second alarm.
        """
        fresh = [m.job for m in moves if m.before and m.before.birth is None and m.job.birth]
        told = await self._known(cluster, {(job.kind, job.native_id) for job in fresh})
        again = {job.id for job in fresh if (job.kind, job.native_id, job.birth) in told}
        return tuple(replace(m, silent=True) if m.job.id in again else m for m in moves)

    async def _unknown(self, cluster: str, found: Sequence[Found]) -> list[Found]:
        """What was found and is no incarnation that was tracked before."""
        known = await self._known(cluster, {(f.kind, f.native_id) for f in found})
        return [f for f in found if (f.kind, f.native_id, f.seen.birth) not in known]

    async def _known(
        self, cluster: str, named: Collection[tuple[Kind, str]]
    ) -> set[tuple[Kind, str, str | None]]:
        known: set[tuple[Kind, str, str | None]] = set()
        for kind in {kind for kind, _ in named}:
            ids = sorted(native_id for one, native_id in named if one is kind)
            pairs = await self.call(self.memory.known, cluster, kind, ids)
            known |= {(kind, native_id, birth) for native_id, birth in pairs}
        return known

    async def _commit(
        self, cluster: Cluster, past: ClusterSnapshot, look: Look, started_at: datetime
    ) -> Result:
        answers, moves, readings = look.answers, look.moves, look.readings
        now = self.clock.now()
        before = await past_of(
            cluster.name, moves, self.memory, self.call, terms=self.terms, now=now
        )
        conclusion: Conclusion = await asyncio.to_thread(
            concluded,
            moves,
            readings,
            Setting(
                self.terms,
                now,
                answered=answers.trouble is None,
                benign=cluster.benign,
                leave=cluster.leave,
                trees=look.trees,
                infra_lines=cluster.infra_lines,
                tried=Tried(past.completed, past.probes),
                owed=past.owed,
                steady_since=self.steadiness.since,
                past=before,
            ),
            look.read,
        )
        calls = {**answers.calls, **look.trees.calls}
        if readings:
            calls["logs"] = calls.get("logs", 0) + 1
        health = _health(cluster, past.health, answers, now)
        noted, cleaned = verified(past.owed, look.trees.remains, now=now)
        told = [followup_news(one, at=now) for one in cleaned]
        other = changed(past.health, health)
        about = [notices.cluster_news(past.health, health, at=now)] if other else []
        first, last = (news_deliveries(n, self.terms.sinks, now) for n in (about, told))
        await self.call(
            self.memory.commit,
            SweepCommit(
                cluster=cluster.name,
                started_at=started_at,
                at=now,
                health=health,
                changes=conclusion.changes,
                news=(*about, *conclusion.news, *told),
                deliveries=(*first, *conclusion.deliveries, *last),
                opened=conclusion.opened,
                closed=(*conclusion.closed, *cleaned),
                noted=noted,
                completed=conclusion.completed,
                calls=calls,
                logins=cluster.new_logins(),
                moved_bytes=look.moved_bytes,
            ),
        )
        say(cluster, answers, moves)
        say_denied(cluster, moves, conclusion.changes)
        return Result(
            cluster.name,
            now,
            health.status,
            jobs=sum(1 for m in moves if m.job.tracked),
            changes=len(conclusion.news),
            error=health.error,
            remedy=health.remedy,
            idle=not any(calls.values()),
            found=_untracked(answers.found, moves),
            waiting=_waiting(answers),
        )

    async def _switched_off(self, cluster: Cluster, past: ClusterSnapshot, now: datetime) -> Result:
        health = _as(cluster, past.health, ClusterStatus.INACTIVE, now=now)
        fresh = [j for j in past.jobs if j.tracked and not j.stale]
        if past.health is None or _told(past.health) != _told(health) or fresh:
            changes = tuple(JobChange(replace(j, stale=True)) for j in fresh)
            await self.call(
                self.memory.commit,
                SweepCommit(cluster.name, now, now, health=health, changes=changes),
            )
        return Result(cluster.name, now, health.status, _tracked(past.jobs), 0, contacted=False)


def _told(health: ClusterHealth) -> tuple[str, str | None]:
    return health.status, health.notes


async def _may_contact(
    cluster: Cluster, health: ClusterHealth | None, *, now: datetime, asked: bool
) -> bool:
    if may_contact(health, now=now, asked=asked):
        return True
    waits = health is not None and health.status == ClusterStatus.NEEDS_LOGIN
    return waits and await cluster.acted()


def _left_alone(cluster: Cluster, past: ClusterSnapshot, now: datetime) -> Result:
    health = past.health
    return Result(
        cluster.name,
        now,
        health.status if health else ClusterStatus.UNREACHABLE,
        _tracked(past.jobs),
        0,
        error=health.error if health else None,
        remedy=health.remedy if health else None,
        contacted=False,
    )


def _untracked(found: Iterable[Found], moves: Iterable[Move]) -> tuple[Found, ...]:
    tracked = {(m.job.kind, m.job.native_id) for m in moves if m.job.tracked}
    return tuple(
        f for f in found if f.seen.state not in TERMINAL and (f.kind, f.native_id) not in tracked
    )


def _waiting(answers: Answers) -> tuple[Found, ...]:
    asked = (
        Found(kind, native_id, seen)
        for (kind, native_id), seen in answers.sightings.items()
        if isinstance(seen, Seen)
    )
    return tuple(f for f in (*asked, *answers.found) if f.seen.state is State.PENDING)


def _tracked(jobs: Iterable[Job]) -> int:
    return sum(1 for j in jobs if j.tracked)


def _health(
    cluster: Cluster, before: ClusterHealth | None, answers: Answers, now: datetime
) -> ClusterHealth:
    status = ClusterStatus.OK
    if answers.needs_login:
        status = ClusterStatus.NEEDS_LOGIN
    elif answers.trouble is not None:
        status = ClusterStatus.UNREACHABLE
    return _as(cluster, before, status, error=answers.trouble, remedy=answers.remedy, now=now)


def _as(
    cluster: Cluster,
    before: ClusterHealth | None,
    status: ClusterStatus,
    *,
    error: str | None = None,
    remedy: str | None = None,
    now: datetime,
) -> ClusterHealth:
    return health_after(
        before,
        name=cluster.name,
        kind=cluster.kind,
        notes=cluster.notes,
        status=status,
        error=error,
        remedy=remedy,
        backoff=cluster.backoff,
        backoff_max=cluster.backoff_max,
        now=now,
    )
