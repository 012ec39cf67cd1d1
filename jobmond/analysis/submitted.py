"""Submit times that people write down: hints in somebody's local time, and never a key."""

from datetime import datetime, timedelta

from jobmond.model.job import Job

SAME = timedelta(days=1)


def fits(hint: datetime, submitted_at: datetime) -> bool:
    """Whether a job that was submitted then may be the one that `hint` speaks of."""
    return abs(submitted_at - hint) <= SAME


def another(job: Job, hint: datetime | None) -> bool:
    """Whether `hint` speaks of another job that had, or has got, the same id.

    A job that was queued again has a later submit time than people know.
    """
    known = job.facts.submitted_at
    if hint is None or known is None or job.birth is None or fits(hint, known):
        return False
    queued_again = job.predecessor is not None or bool(job.facts.restarts)
    return hint > known or not queued_again


def before(job: Job, hint: datetime | None) -> bool:
    """Whether `hint` speaks of a time before `job`: its id was free again by then."""
    known = job.facts.submitted_at
    return hint is not None and known is not None and job.birth is not None and hint < known
