"""Instants that our own clock gave, after somebody set that clock."""

from dataclasses import replace
from datetime import datetime

from jobmond.model.job import Job


def steadied(job: Job, since: datetime | None, now: datetime) -> Job:
    """`job` with nothing that was measured before `since`, when our clock was set last, or that
    lies ahead of it: how long something has lasted is counted from then on.
    """
    if since is None:
        return job
    training = job.training
    if training is not None:
        training = replace(training, stepped_at=_counted(training.stepped_at, since, now))
    return replace(
        job,
        absent_since=_counted(job.absent_since, since, now),
        log=replace(job.log, changed_at=_counted(job.log.changed_at, since, now)),
        training=training,
    )


def _counted(at: datetime | None, since: datetime, now: datetime) -> datetime | None:
    return at if at is None or since <= at <= now else since
