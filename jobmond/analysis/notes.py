"""One line a job: what it is, the one signal that matters, what is to be done."""

from datetime import datetime

from jobmond.analysis.instants import duration
from jobmond.analysis.judge import standing
from jobmond.analysis.mask import mask
from jobmond.analysis.visible import visible
from jobmond.model.job import Job
from jobmond.model.state import TERMINAL, Severity, State

_NEEDS_NOTHING = frozenset({State.COMPLETED, State.CANCELLED})


def note(job: Job, *, now: datetime) -> str:
    """The Note of a job, masked and without control characters."""
    parts = [job.choices.description, _matter(job, now), _to_do(job)]
    return visible(mask("; ".join(p for p in parts if p)))


def _matter(job: Job, now: datetime) -> str | None:
    loud = [s for s in standing(job) if s.severity is not Severity.INFO]
    if loud:
        return loud[0].title
    if job.state in TERMINAL:
        return _end(job)
    if job.state is State.PENDING:
        return _waiting(job, now)
    if job.state is State.UNKNOWN:
        return job.facts.reason
    return _running(job)


def _end(job: Job) -> str | None:
    if job.successor:
        return f"continues as {job.successor}"
    if job.diagnosis:
        return job.diagnosis.summary
    return job.facts.reason if job.state not in _NEEDS_NOTHING else None


def _waiting(job: Job, now: datetime) -> str | None:
    reason = job.facts.reason
    if reason in (None, "None"):
        return None
    start = job.facts.start_estimate_at
    if start and start > now:
        return f"{reason}, may start in {duration((start - now).total_seconds())}"
    return reason


def _running(job: Job) -> str | None:
    if job.log.status in ("absent", "unavailable"):
        return f"log {job.log.status}{f': {job.log.error}' if job.log.error else ''}"
    return job.log.last_line


def _to_do(job: Job) -> str | None:
    if job.state not in TERMINAL or job.successor:
        return None
    if job.state in _NEEDS_NOTHING:
        return "no action needed"
    if job.state is State.PREEMPTED:
        return "not queued again: submit again if it is still wanted"
    return "needs action"
