"""Jobs whose cluster the configuration does not name any more: nobody asks about them. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from jobmond.model.job import ClusterHealth, Job
from jobmond.model.state import ClusterStatus


def as_left(jobs: Sequence[Job], names: Collection[str]) -> list[Job]:
    """`jobs`, stale where they are tracked and no configured cluster (`names`) is theirs.

    No sweep comes by that could mark them so, and what was last seen is no claim about now.
    """
    return [
        replace(job, stale=True) if job.tracked and job.cluster not in names else job
        for job in jobs
    ]


def forgotten(
    jobs: Sequence[Job], healths: Sequence[ClusterHealth], names: Collection[str], now: datetime
) -> list[ClusterHealth]:
    """The clusters that tracked `jobs` are at and that are not among `names`, as inactive."""
    known = {health.name: health for health in healths}
    kinds = {j.cluster: j.kind for j in jobs if j.tracked and j.cluster not in names}
    return [
        ClusterHealth(
            name=name,
            kind=known[name].kind if name in known else kind.value,
            active=False,
            status=ClusterStatus.INACTIVE,
            since=known[name].since if name in known else now,
            last_ok_at=known[name].last_ok_at if name in known else None,
            error="not in the configuration",
        )
        for name, kind in sorted(kinds.items())
    ]
