"""What is read of the store for one answer: one visit to its thread each, so that the parts of an
answer fit together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jobmond.desk.answers import Whole
from jobmond.desk.requests import HistoryRequest
from jobmond.desk.shelf import Shelf
from jobmond.desk.track import look_up
from jobmond.model.job import ClusterHealth, Job
from jobmond.model.outcome import SinkStanding


@dataclass(frozen=True, slots=True)
class Overview:
    """Jobs and clusters as the last sweeps left them, and the sinks as they are."""

    jobs: Sequence[Job]
    healths: Sequence[ClusterHealth]
    standings: Sequence[SinkStanding]


def overview(store: Shelf, recent_since: datetime, now: datetime) -> Overview:
    """Tracked jobs, those that ended since `recent_since`, the clusters, and the sinks."""
    jobs = store.jobs(recent_since=recent_since)
    return Overview(jobs, store.clusters(now), store.standings())


def whole(store: Shelf, word: str, now: datetime) -> Whole:
    """Everything about the job that `word` means.

    Raises:
        UnknownJob: none or several.
    """
    return whole_of(store, look_up(store, word, now))


def whole_of(store: Shelf, job: Job) -> Whole:
    """Everything about `job`."""
    owed = [f for f in store.followups(all=True) if f.ref == job.ref]
    return Whole(
        job=job,
        older=job.id in store.superseded([job]),
        transitions=store.transitions(job.id),
        lives=store.lives(job.run, job.cluster),
        followups=owed,
    )


def ended(store: Shelf, request: HistoryRequest, now: datetime) -> Sequence[tuple[Job, bool]]:
    """What ended, of all jobs or of one run, and whether a newer job owns its ref by now.

    Raises:
        UnknownJob: the request names none or several.
    """
    job_id = None if request.job is None else look_up(store, request.job, now).id
    jobs = store.history(since=request.since, job_id=job_id, limit=request.limit)
    older = store.superseded(jobs)
    return [(job, job.id in older) for job in jobs]
