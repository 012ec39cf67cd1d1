"""What people chose, joined with what they chose before. Pure."""

from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from jobmond.analysis.submitted import fits
from jobmond.model.job import Choices, Classified, Job
from jobmond.model.state import TERMINAL, Bucket


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job belongs and by whose word."""

    choices: Choices
    bucket: Bucket
    type: str
    run: str
    labels: frozenset[str]


def joined(old: Choices, new: Choices) -> Choices:
    """`old` with everything that `new` gives; the later word about a label wins.

    The owner is whoever added the job first.
    """
    given: dict[str, Any] = {
        one.name: value
        for one in fields(Choices)
        if one.name not in ("labels_added", "labels_removed", "owner", "owner_uid")
        and (value := getattr(new, one.name)) not in (None, ())
    }
    first: dict[str, Any] = {}
    if old.owner is None and new.owner is not None:
        first = {"owner": new.owner, "owner_uid": new.owner_uid}
    return replace(
        old,
        **given,
        **first,
        labels_added=(old.labels_added - new.labels_removed) | new.labels_added,
        labels_removed=(old.labels_removed - new.labels_added) | new.labels_removed,
    )


def placed(old: Place, new: Choices, classified: Classified) -> Place:
    """`old` after `new` was given for it: only what `new` speaks of changes.

    `classified` is where `new` alone puts the job.
    """
    bucket_given = new.bucket is not None
    return Place(
        choices=joined(old.choices, new),
        bucket=classified.bucket if bucket_given else old.bucket,
        type=classified.type if bucket_given or new.type is not None else old.type,
        run=classified.run if new.run is not None else old.run,
        labels=(old.labels | new.labels_added) - new.labels_removed,
    )


def ended(job: Job) -> bool:
    return job.ended_at is not None or job.state in TERMINAL


def same_life(job: Job, birth: str | None, submitted_at: datetime | None) -> bool:
    """Whether a request that names `birth` or `submitted_at` means this incarnation.

    Without either an incarnation that has ended is not meant: ids are used again.
    """
    if birth is not None and job.birth is not None:
        return job.birth == birth
    known = job.facts.submitted_at
    if submitted_at is not None and known is not None:
        return fits(submitted_at, known)
    return not ended(job)
