"""From what a cluster answered to what became of each job. No logs are needed for that."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from jobmond.analysis.chains import Candidate, Successors, waits_for
from jobmond.analysis.resolve import moved, next_life, resolve
from jobmond.model.job import Choices, Classified, Job
from jobmond.model.observation import Facts, Seen, Sighting
from jobmond.model.outcome import Transition
from jobmond.model.state import TERMINAL, Bucket, Kind, State


class Classify(Protocol):
    """Where a job belongs; `read_as` is the bucket that its log shows."""

    def __call__(
        self, choices: Choices, facts: Facts, native_id: str, read_as: Bucket | None = None, /
    ) -> Classified: ...


@dataclass(frozen=True, slots=True)
class Move:
    """One incarnation before and after a sweep.

    `before` is None for one that was found now. `restarted_as` is the ref that continues it (its
    own after a requeue) and `restarted_in` that job's state: the pair is then told as one restart.
    `silent` says that its transition is part of another job's news. `first_part_failed` says that
    the first of its many parts failed in this sweep. `error` is why the sighting moved nothing.
    """

    before: Job | None
    job: Job
    transition: Transition | None = None
    restarted_as: str | None = None
    restarted_in: State | None = None
    silent: bool = False
    first_part_failed: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A job of the cluster's users that nobody asked about."""

    kind: Kind
    native_id: str
    seen: Seen


def settled(
    cluster: str,
    jobs: Sequence[Job],
    sightings: Mapping[tuple[Kind, str], Sighting],
    found: Sequence[Found],
    *,
    adopt: bool,
    adopt_ended: bool,
    lives: Mapping[str, int],
    classify: Classify,
    now: datetime,
    unknown_for: timedelta,
) -> tuple[Move, ...]:
    """What became of every job.

    `jobs` are those asked about (others, such as ended ones whose log is still wanted, come back
    unmoved). `adopt` tracks what was found: everything alive and, with `adopt_ended`, what has
    ended. `lives` maps run name to its highest life so far.
    """
    moves: list[Move] = []
    owners = asked_about(jobs)
    for job in jobs:
        sighting = sightings.get((job.kind, job.native_id))
        owned = owners.get((job.kind, job.native_id)) is job
        if sighting is None or not (owned or _found_again(job, sighting)):
            moves.append(Move(job, job))
        else:
            moves.extend(_applied(job, sighting, classify, now, unknown_for))
    counter = dict(lives)
    if adopt:
        asked = {(job.kind, job.native_id) for job in jobs}
        moves.extend(
            _first_sight(one, cluster, classify, now) for one in _adopted(found, asked, adopt_ended)
        )
        found = ()
    moves = [_numbered(m, counter) for m in moves]
    return tuple(_with_parts(_chained(moves, found, counter, now), now))


def asked_about(jobs: Sequence[Job]) -> dict[tuple[Kind, str], Job]:
    """The incarnations a sweep asks about: tracked ones, and LOST ones that may be corrected.

    Where a native id has several, the newest owns it; the others are only waiting for their log.
    """
    owners: dict[tuple[Kind, str], Job] = {}
    for job in sorted(jobs, key=lambda j: (j.tracked, j.id)):
        if job.tracked or job.state is State.LOST:
            owners[job.kind, job.native_id] = job
    return owners


def _found_again(job: Job, sighting: Sighting) -> bool:
    """Whether the answer about an id that was added once more is about this lost incarnation."""
    return (
        job.state is State.LOST
        and job.birth is not None
        and isinstance(sighting, Seen)
        and sighting.birth == job.birth
    )


def _applied(
    job: Job, sighting: Sighting, classify: Classify, now: datetime, unknown_for: timedelta
) -> Iterable[Move]:
    result = resolve(job, sighting, now=now, unknown_for=unknown_for)
    newest = result.lives[-1][0]
    if isinstance(sighting, Seen) and sighting.successor is not None:
        yield _goes_on(job, newest, result.lives[-1][1], classify)
        return
    for position, (life, transition) in enumerate(result.lives):
        ended_here = position + 1 < len(result.lives)
        yield Move(
            before=job if position == 0 else None,
            job=classed(life, classify),
            transition=transition,
            restarted_as=newest.ref if ended_here and position == 0 else None,
            restarted_in=newest.state if ended_here and position == 0 else None,
            silent=position > 0 and newest.state not in TERMINAL,
            first_part_failed=_parts_failed(job.facts) == 0 < _parts_failed(life.facts),
            error=result.error,
        )


def _goes_on(before: Job, job: Job, transition: Transition | None, classify: Classify) -> Move:
    """A part was cut off and another job in SLURM takes it up: told as a restart."""
    cut_off = transition is not None and before.state is State.RUNNING
    return Move(
        before=before,
        job=classed(job, classify),
        transition=transition,
        restarted_as=job.successor if cut_off else None,
        restarted_in=job.state if cut_off else None,
    )


def _parts_failed(facts: Facts) -> int:
    return len(facts.tasks.failed) if facts.tasks else 0


def classed(job: Job, classify: Classify) -> Job:
    """Bucket, type and labels as the rules say now; a successor keeps the run it joined."""
    place = classify(job.choices, job.facts, job.native_id, reads_as(job))
    run = job.run if job.predecessor is not None else place.run
    return replace(job, bucket=place.bucket, type=place.type, labels=place.labels, run=run)


def reads_as(job: Job) -> Bucket | None:
    """The bucket that a job's log shows, where its trainer was recognised."""
    return job.training.bucket if job.training is not None and job.training.dialect else None


def _adopted(
    found: Sequence[Found], asked: set[tuple[Kind, str]], ended_too: bool
) -> Iterable[Found]:
    """What was found and is to be tracked."""
    for one in found:
        if (one.kind, one.native_id) not in asked and (ended_too or one.seen.state not in TERMINAL):
            yield one


def _first_sight(one: Found, cluster: str, classify: Classify, now: datetime) -> Move:
    place = classify(Choices(), one.seen.facts, one.native_id)
    blank = Job(
        id=0,
        cluster=cluster,
        kind=one.kind,
        native_id=one.native_id,
        birth=one.seen.birth,
        run=place.run,
        life=0,
        bucket=place.bucket,
        type=place.type,
        labels=place.labels,
        choices=Choices(),
        facts=Facts(),
        state=State.UNKNOWN,
        native="",
        added_at=now,
        discovered=True,
    )
    job, transition = moved(blank, one.seen, proof=one.seen.proof, now=now)
    return Move(None, replace(job, parts=one.seen.parts), transition)


def _numbered(move: Move, lives: dict[str, int]) -> Move:
    """Give a new incarnation, or one whose run got its name only now, the run's next life."""
    job = move.job
    fresh = move.before is None or move.before.run != job.run
    if not fresh:
        return move
    lives[job.run] = max(lives.get(job.run, 0) + 1, job.life)
    return replace(move, job=replace(job, life=lives[job.run]))


def _chained(
    moves: Sequence[Move], found: Sequence[Found], lives: dict[str, int], now: datetime
) -> list[Move]:
    """Join each walltime TIMEOUT with the job that continues it."""
    place = {m.job.native_id: i for i, m in enumerate(moves) if m.restarted_as is None}
    linked = [_held_back(m, moves, place) for m in moves]
    strangers = {f.native_id: f for f in found if f.native_id not in place}
    pool = Successors(
        [_candidate(m) for m in linked]
        + [Candidate(f.native_id, f.seen.state, f.seen.facts, False) for f in strangers.values()]
    )
    for i, move in enumerate(moves):
        ended = move.job
        if move.transition is None or ended.state is not State.TIMEOUT or move.restarted_as:
            continue
        chosen = pool.take(ended.native_id, ended.facts, ended.ended_at)
        if chosen is None:
            continue
        if chosen.native_id in place:
            at = place[chosen.native_id]
            linked[at] = joined = _joined(linked[at], linked[i].job, lives)
        else:
            joined = _taken_over(strangers[chosen.native_id], linked[i].job, lives, now)
            linked.append(joined)
        linked[i] = replace(
            linked[i],
            job=replace(linked[i].job, successor=joined.job.ref),
            restarted_as=joined.job.ref,
            restarted_in=joined.job.state,
        )
    return linked


def _held_back(move: Move, moves: Sequence[Move], place: Mapping[str, int]) -> Move:
    """A job that starts while the one it waited for has left the queue but is not settled yet.

    The queue is ahead of accounting by a moment. Its start is told with how that one ended, at
    the next sweep; no longer, for accounting may be down for hours.
    """
    started = move.before is not None and move.before.state is State.PENDING
    if not (started and move.transition and move.job.state is State.RUNNING and move.before):
        return move
    for native_id in waits_for(move.before.facts.dependency):
        at = place.get(native_id)
        earlier = moves[at] if at is not None else None
        if earlier and earlier.job.stale and earlier.before and not earlier.before.stale:
            return Move(move.before, replace(move.before, stale=True))
    return move


def _with_parts(moves: Sequence[Move], now: datetime) -> Iterable[Move]:
    """Rows of their own for the running tasks of arrays in the buckets that have metrics.

    A part's ends are told by its array's news, never by itself.
    """
    known = {(m.job.kind, m.job.native_id) for m in moves}
    for move in moves:
        master = move.job.native_id.partition("_")[0]
        part = master != move.job.native_id and (move.job.kind, master) in known
        yield replace(move, silent=True) if part else move
        tasks = move.job.facts.tasks
        if tasks is None or move.job.bucket is Bucket.OTHER or not move.job.tracked:
            continue
        for native_id in tasks.running:
            if (move.job.kind, native_id) not in known:
                yield Move(None, _part(move.job, native_id, now), silent=True)


def _part(array: Job, native_id: str, now: datetime) -> Job:
    """A running task that the next sweep asks about."""
    choices = replace(array.choices, name=None, log_path=None, last_status=None)
    blank = replace(
        next_life(array, "", now), birth=None, predecessor=None, life=array.life, training=None
    )
    return replace(
        blank, native_id=native_id, choices=choices, state=State.UNKNOWN, native="", discovered=True
    )


def _candidate(move: Move) -> Candidate:
    seen_before = move.before is not None and move.before.first_seen_at is not None
    continues = move.before is not None and move.before.predecessor is not None
    job = move.job
    return Candidate(job.native_id, job.state, job.facts, seen_before, continues)


def _joined(move: Move, before: Job, lives: dict[str, int]) -> Move:
    """A successor that is tracked already becomes the next life of the run it continues."""
    job = replace(
        move.job,
        predecessor=before.id or None,
        training=move.job.training or before.training,
    )
    if job.run != before.run:
        lives[before.run] = lives.get(before.run, before.life) + 1
        job = replace(job, run=before.run, life=lives[before.run], bucket=before.bucket)
    return replace(move, job=job, silent=job.state not in TERMINAL)


def _taken_over(one: Found, before: Job, lives: dict[str, int], now: datetime) -> Move:
    choices = replace(before.choices, name=None, log_path=None, last_status=None)
    child = replace(
        next_life(before, one.seen.birth, now), native_id=one.native_id, choices=choices
    )
    lives[before.run] = lives.get(before.run, before.life) + 1
    child = replace(child, life=lives[before.run])
    job, transition = moved(child, one.seen, proof=one.seen.proof, now=now)
    return Move(None, job, transition, silent=job.state not in TERMINAL)
