"""What rules ask of a case before they may say anything."""

from datetime import datetime, timedelta
from typing import TypeVar

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


def quiet_for(case: Case, trials: Trials) -> timedelta | None:
    """How long no trial has ended, counted from this life's start at the earliest; None where
    neither is known.
    """
    known = (trials.last_result_at, case.job.facts.started_at)
    since: list[datetime] = [at for at in known if at is not None]
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
