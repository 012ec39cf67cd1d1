"""What the journal hears of a sweep."""

from collections.abc import Iterable, Sequence

import structlog

from jobmond.analysis.settle import Move
from jobmond.model.commit import JobChange
from jobmond.model.observation import PERMISSION
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.observe import Answers

journal = structlog.get_logger("jobmond.sweep")


def say(cluster: Cluster, answers: Answers, moves: Sequence[Move]) -> None:
    """What was not understood, and which jobs could not be moved: each reason when it comes up."""
    for complaint in answers.complaints:
        journal.warning("not understood", cluster=cluster.name, what=complaint)
    if answers.trouble is not None:
        return
    for move in moves:
        known = move.before.note if move.before is not None else None
        if move.error is not None and move.error != known:
            journal.warning("not moved", job=move.job.ref, why=move.error)


def say_denied(cluster: Cluster, moves: Iterable[Move], changes: Iterable[JobChange]) -> None:
    """Logs that the login user may not read: each reason when it comes up, with all its jobs."""
    known = {m.before.ref: m.before.log.error for m in moves if m.before is not None}
    jobs: dict[str, list[str]] = {}
    for job in (change.job for change in changes):
        why = job.log.error or ""
        if why.startswith(PERMISSION) and why != known.get(job.ref):
            jobs.setdefault(why, []).append(job.ref)
    for why, refs in jobs.items():
        journal.warning("log not readable", cluster=cluster.name, why=why, jobs=" ".join(refs))
