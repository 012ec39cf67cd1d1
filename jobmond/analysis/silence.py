"""How long a log has been still, and whether most logs of a cluster fell silent together."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from jobmond.analysis.evidence import awake_since
from jobmond.analysis.settle import Move
from jobmond.model.commit import JobChange
from jobmond.model.job import Job
from jobmond.model.observation import LogTail, Read, Reading
from jobmond.model.outcome import News
from jobmond.model.state import State
from jobmond.ports import SweepView

MASS = "mass-silence"

# Fewer jobs than that, or a smaller share of those whose log was read, say nothing of a cluster.
_LEAST = 3
_SHARE = 0.8
_TOGETHER = timedelta(minutes=20)  # a sweep and its jitter
_SILENT = timedelta(minutes=30)  # two sweeps


def silent_for(job: Job, log: Reading[LogTail], now: datetime) -> timedelta | None:
    """How long the log has not changed while the job was awake; None where this sweep did not
    read it.
    """
    since = _silent_since(job)
    return now - since if isinstance(log, Read) and since is not None else None


def _silent_since(job: Job) -> datetime | None:
    if job.log.changed_at is None:
        return None
    awake = awake_since(job)
    return max(job.log.changed_at, awake) if awake is not None else job.log.changed_at


def view_of(
    jobs: Iterable[Job], readings: Mapping[str, Reading[LogTail]], *, now: datetime
) -> SweepView:
    """What a sweep saw of its running jobs; `readings` by native id."""
    changed: list[tuple[datetime, str]] = []
    for job in jobs:
        busy = job.state is State.RUNNING and not job.facts.suspended and not job.stale
        log = readings.get(job.native_id)
        since = _silent_since(job)
        if busy and isinstance(log, Read) and since and "service" not in job.labels:
            changed.append((since, job.native_id))
    changed.sort()
    silent = [(at, native_id) for at, native_id in changed if now - at >= _SILENT]
    together = _together(silent)
    if len(together) < max(_LEAST, _SHARE * len(changed)):
        return SweepView(len(changed))
    return SweepView(len(changed), frozenset(together))


def _together(silent: list[tuple[datetime, str]]) -> list[str]:
    """The most that fell silent within one sweep of each other; `silent` is ascending."""
    best: list[str] = []
    first = 0
    for last, (at, _) in enumerate(silent):
        while at - silent[first][0] > _TOGETHER:
            first += 1
        if last - first + 1 > len(best):
            best = [native_id for _, native_id in silent[first : last + 1]]
    return best


def said_once(
    news: Iterable[News], moves: Sequence[Move], changes: Iterable[JobChange]
) -> list[News]:
    """`news` with the silence of a whole cluster told once, when it begins and when it is over."""
    before = any(_hushed(move.before) for move in moves if move.before is not None)
    after = {move.job.ref: _hushed(move.job) for move in moves}
    after |= {change.job.ref: _hushed(change.job) for change in changes}
    mute = {"signal": before, "cleared": any(after.values())}
    told: list[News] = []
    for one in news:
        if (one.payload.get("signal") or {}).get("rule") == MASS:
            if mute.get(one.type, False):
                continue
            mute[one.type] = True
        told.append(one)
    return told


def _hushed(job: Job) -> bool:
    return any(s.rule == MASS and s.cleared_at is None for s in job.signals)
