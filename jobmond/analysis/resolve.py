"""One sighting applied to one job: what is known afterwards, and what changed."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from jobmond.model.job import Job, LogEvidence
from jobmond.model.observation import EndedLife, Facts, Gone, Seen, Sighting
from jobmond.model.outcome import Transition
from jobmond.model.state import TERMINAL, PostMortem, State


@dataclass(frozen=True, slots=True)
class Resolved:
    """A job after a sweep asked about it.

    `lives` holds the incarnation asked about and those that followed under the same id, oldest
    first; more than one means a requeue. Each comes with the transition it went through, if any.
    `error` says why the sighting moved nothing.
    """

    lives: tuple[tuple[Job, Transition | None], ...]
    error: str | None = None


def resolve(job: Job, sighting: Sighting, *, now: datetime, unknown_for: timedelta) -> Resolved:
    """Apply `sighting` to `job`.

    `unknown_for` is how long a job may be UNKNOWN before it counts as LOST.
    """
    if isinstance(sighting, Seen):
        return _seen(job, sighting, now)
    if isinstance(sighting, Gone):
        return Resolved((_gone(job, sighting, now, unknown_for),))
    return Resolved(((replace(job, stale=True), None),), sighting.error)


def _seen(job: Job, seen: Seen, now: datetime) -> Resolved:
    if seen.native_id is not None and seen.native_id != job.native_id:
        job = replace(job, native_id=seen.native_id, birth=seen.birth)
    if seen.parts:
        successor = None if seen.successor is None else f"{job.cluster}/{seen.successor}"
        job = replace(job, parts=seen.parts, successor=successor)
    if job.birth is None:
        job = replace(job, birth=_adopted(job, seen))
    if seen.birth == job.birth:
        return Resolved((moved(job, seen, proof=seen.proof, now=now),))
    if not seen.previous or seen.previous[0].birth != job.birth:
        return Resolved(
            ((replace(job, stale=True), None),),
            f"{job.native_id} now belongs to another job (submitted at another time)",
        )
    return Resolved(tuple(_requeued(job, seen, now)))


def _adopted(job: Job, seen: Seen) -> str:
    """The birth of a job seen for the first time: its oldest life that the source still names."""
    return seen.previous[0].birth if seen.previous else seen.birth


def _requeued(job: Job, seen: Seen, now: datetime) -> list[tuple[Job, Transition | None]]:
    ended: EndedLife = seen.previous[0]
    lives = [moved(job, ended, proof=seen.proof, now=now)]
    for later in seen.previous[1:]:
        child = next_life(lives[-1][0], later.birth, now)
        lives.append(moved(child, later, proof=seen.proof, now=now))
    child = next_life(lives[-1][0], seen.birth, now)
    lives.append(moved(child, seen, proof=seen.proof, now=now))
    return lives


def next_life(job: Job, birth: str, now: datetime) -> Job:
    """A new incarnation under the same id: what people chose goes on, what was seen does not."""
    return replace(
        job,
        id=0,
        birth=birth,
        life=job.life + 1,
        facts=Facts(),
        added_at=now,
        tracked=True,
        stale=False,
        first_seen_at=None,
        seen_at=None,
        ended_at=None,
        absent_since=None,
        transitions=0,
        post_mortem=PostMortem.NONE,
        post_mortem_tries=0,
        log=LogEvidence(),
        parts=(),
        diagnosis=None,
        agent_log=None,
        signals=(),
        successor=None,
        predecessor=job.id or None,
        note=None,
    )


def moved(
    job: Job, shown: Seen | EndedLife, *, proof: str, now: datetime
) -> tuple[Job, Transition | None]:
    """`job` as its source shows it, and its transition if the state changed."""
    state = shown.state
    first = job.first_seen_at is None
    before = None if first else job.state
    known = merged(job.facts, shown.facts)
    if before == state and job.facts.detailed:
        known = replace(known, detailed=True)
    after = replace(
        job,
        state=state,
        native=shown.native,
        facts=known,
        proof=proof,
        stale=False,
        first_seen_at=job.first_seen_at or now,
        seen_at=now,
        absent_since=None,
        tracked=state not in TERMINAL,
        ended_at=(shown.facts.ended_at or now) if state in TERMINAL else None,
    )
    if before == state:
        return after, None
    return _counted(_unexplained(after), before, now)


def _unexplained(job: Job) -> Job:
    """An end that is corrected takes its explanation, and the search for one, with it."""
    return replace(
        job, post_mortem=PostMortem.NONE, post_mortem_tries=0, diagnosis=None, agent_log=None
    )


def _gone(
    job: Job, gone: Gone, now: datetime, unknown_for: timedelta
) -> tuple[Job, Transition | None]:
    since = job.absent_since or now
    lost = gone.complete or (job.state is State.UNKNOWN and now - since >= unknown_for)
    state = State.LOST if lost else State.UNKNOWN
    before = None if job.first_seen_at is None else job.state
    absent = replace(
        job,
        state=state,
        native=gone.reason,
        facts=replace(job.facts, reason=gone.reason, message=gone.message),
        proof=gone.reason,
        stale=False,
        first_seen_at=job.first_seen_at or now,
        absent_since=since,
        tracked=not lost,
        ended_at=(job.ended_at or now) if lost else None,
    )
    return (absent, None) if before == state else _counted(absent, before, now)


def _counted(job: Job, before: State | None, now: datetime) -> tuple[Job, Transition]:
    transition = Transition(
        at=now,
        before=before,
        after=job.state,
        native=job.native,
        correction=before in (State.LOST, State.UNKNOWN) and job.state is not State.LOST,
    )
    return replace(job, transitions=job.transitions + 1), transition


_FORGOTTEN_BY_SOURCES = (
    "name",
    "user",
    "partition",
    "account",
    "comment",
    "workdir",
    "command",
    "submit_line",
    "node_count",
    "gpus",
    "submitted_at",
    "started_at",
    "time_limit_s",
    "nodes",
    "dependency",
    "log_path",
    "err_path",
    "tasks",
    "bucket",
    "scores",
)


def merged(known: Facts, news: Facts) -> Facts:
    """`news`, with what the source has said earlier and no longer says.

    Reason, exit code, hold and the like belong to the moment and are never carried over. The
    dependency is: the scheduler drops it when it is met, and it names the chain.
    """
    kept = {
        field: getattr(known, field)
        for field in _FORGOTTEN_BY_SOURCES
        if getattr(news, field) is None and getattr(known, field) is not None
    }
    return replace(news, **kept) if kept else news
