"""A job that is to be cancelled: decided, evidence on disk, asked, confirmed."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from jobmond.model.job import Job


class Stage(StrEnum):
    """How far a cancellation has come. The last two are ends."""

    DECIDED = "decided"  # its evidence is to be on disk first
    ASKED = "asked"  # the scheduler was, or was about to be, asked: look before doing it again
    CONFIRMED = "confirmed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Target:
    """One incarnation to cancel. Only that: `birth` is checked at the far side, in one breath
    with the state. A `waiting` one is cancelled only while it is PENDING.
    """

    native_id: str
    birth: str
    waiting: bool = False


class Stop(StrEnum):
    """What became of a target."""

    ASKED = "asked"
    GONE = "gone"  # the queue does not know it
    ENDED = "ended"  # or, of one that was to be waiting, started
    ANOTHER = "another"  # the id belongs to another incarnation
    REFUSED = "refused"  # the scheduler would not
    KEPT = "kept"  # one that waits for it could not be cancelled


@dataclass(frozen=True, slots=True)
class Stopped:
    """What became of one target, and in which words."""

    stop: Stop
    said: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """That one incarnation is to be cancelled, by whose leave, and how far that has come.

    `id` is the store's number (0 before the commit), `job_id` the incarnation's. `evidence` is
    the key of the delivery that must stand before anything is asked.
    """

    id: int
    job_id: int
    rule: str
    step: int | None
    evidence: str
    allowed_by: str
    decided_at: datetime
    stage: Stage = Stage.DECIDED
    asked_at: datetime | None = None
    attempts: int = 0
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Unsettled:
    """An intent that has not come to its end, with its job as stored. `spared` are native ids of
    tracked jobs of the cluster that people said are not to be cancelled.
    """

    intent: Intent
    job: Job
    spared: frozenset[str] = frozenset()
