"""What one transaction of the store takes and gives: one cluster, whole or not at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from jobmond.model.intent import Intent
from jobmond.model.job import ClusterHealth, Job
from jobmond.model.outcome import Delivery, Failure, Followup, News, Transition
from jobmond.model.setting import Setting
from jobmond.model.training import Bookmark


@dataclass(frozen=True, slots=True)
class JobChange:
    """A new (`job.id` 0) or changed incarnation and the transitions it went through, in order.

    The store writes what a sweep owns (state, facts, evidence, signals, life). What people chose
    is never written back from here, and a job that was untracked meanwhile stays untracked.
    `bookmark` is where the reading of its log stands now, `tree` what is known of its trials
    (deflated JSON); None leaves what stood before. `intents` are decided in this
    transaction.
    """

    job: Job
    transitions: tuple[Transition, ...] = ()
    bookmark: Bookmark | None = None
    intents: tuple[Intent, ...] = ()
    tree: bytes | None = None


@dataclass(frozen=True, slots=True)
class SweepCommit:
    """Everything one sweep of one cluster concluded.

    `news` goes to the event stream; `deliveries` (one per sink and news, and one per file that
    must stand) to the outbox, in order. Of follow-ups in `noted` the evidence is new. `calls`,
    `logins` and `moved_bytes` (what logs cost on the way) are added to the cluster's counts.
    `completed` are settings of which a run completed.
    """

    cluster: str
    started_at: datetime
    at: datetime
    health: ClusterHealth
    changes: tuple[JobChange, ...] = ()
    news: tuple[News, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    opened: tuple[Followup, ...] = ()
    closed: tuple[Followup, ...] = ()
    noted: tuple[Followup, ...] = ()
    completed: tuple[Setting, ...] = ()
    calls: Mapping[str, int] = field(default_factory=dict)
    logins: int = 0
    moved_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """What a sweep of one cluster needs of the past, loaded before anything is asked.

    `jobs`: tracked incarnations, ended ones whose post-mortem is pending, and LOST ones young
    enough to be corrected. `lives` maps (run name) to the highest life so far, `owed` are the open
    follow-ups of the cluster's jobs. `completed` are settings of which a run completed there,
    `probes` the deep probes that were ever owed there, oldest first.
    """

    jobs: tuple[Job, ...]
    health: ClusterHealth | None
    lives: Mapping[str, int]
    owed: tuple[Followup, ...] = ()
    completed: tuple[Setting, ...] = ()
    probes: tuple[Followup, ...] = ()


@dataclass(frozen=True, slots=True)
class Past:
    """What explaining an end needs of the past: failures of the cluster, oldest first, and what
    the jobs in question went through, by the store's id.
    """

    failures: tuple[Failure, ...] = ()
    transitions: Mapping[int, tuple[Transition, ...]] = field(default_factory=dict)


NO_PAST = Past()


@dataclass(frozen=True, slots=True)
class Added:
    """The answer to a request to track something."""

    job: Job
    created: bool
