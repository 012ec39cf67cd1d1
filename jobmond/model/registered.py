"""What is remembered of the entries of registry files."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from jobmond.model.job import Job


class Stage(StrEnum):
    """Where an entry is in its life."""

    PRESENT = "present"
    MISSING = "missing"  # not there at the last look: the next one decides
    GONE = "gone"  # removed, by us or by another program


@dataclass(frozen=True, slots=True)
class Registered:
    """One entry of one file and the incarnation it means.

    `sole` is whether only registry files asked for the job. `last_status` is what stood in the
    file when it was last read or written.
    """

    path: str
    key: str
    job: Job
    stage: Stage
    since: datetime
    sole: bool
    last_status: str | None


@dataclass(frozen=True, slots=True)
class WatchedFile:
    """A file that somebody asked to watch, beside those of the configuration."""

    path: str
    watched_since: datetime
    watched_by: str
