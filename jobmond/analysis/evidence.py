"""What rules ask of a case before they may say anything."""

from datetime import datetime, timedelta
from typing import TypeVar

from jobmond.model.job import Job
from jobmond.model.observation import Read, Reading
from jobmond.model.state import State
from jobmond.model.trials import Trials
from jobmond.ports import Case

T = TypeVar("T")


def value(reading: Reading[T]) -> T | None:
    """What was read; None where nothing was, for whatever reason."""
    return reading.value if isinstance(reading, Read) else None


def at_work(case: Case) -> bool:
    """Whether the job runs and may be expected to get on; a service only waits for requests."""
    job = case.job
    running = job.state is State.RUNNING and not job.facts.suspended and not job.stale
    return running and "service" not in job.labels


def awake_since(job: Job) -> datetime | None:
    """From when on silence says anything of `job`: this life's start, or when it was last seen
    suspended. A log or a tree may be older than both.
    """
    return max((at for at in (job.facts.started_at, job.log.rested_at) if at), default=None)


def quiet_for(case: Case, trials: Trials) -> timedelta | None:
    """How long no trial has ended while the job was awake; None where that cannot be told."""
    since = [at for at in (trials.last_result_at, awake_since(case.job)) if at is not None]
    if not since:
        return None
    return case.now - max(*since, case.steady_since or since[0])


def minutes(span: timedelta) -> str:
    """`61 min`; hours from three on."""
    whole = int(span.total_seconds() // 60)
    return f"{whole} min" if whole < 180 else f"{whole / 60:.1f} h"


def progress(trials: Trials) -> str:
    """`142/300 trials done`."""
    total = "" if trials.total is None else f"/{trials.total}"
    return f"{trials.done}{total} trials done"
