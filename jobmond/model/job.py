"""A job as jobmond keeps it: who asked for it, what is known, what was concluded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jobmond.model.observation import Facts, Part
from jobmond.model.outcome import Diagnosis, Signal
from jobmond.model.state import Bucket, Kind, PostMortem, State
from jobmond.model.training import Training
from jobmond.model.trials import Work


@dataclass(frozen=True, slots=True)
class Choices:
    """What people chose for a job; None or empty means that nobody did.

    `owner` is the Unix user whose request added the job, None where it was discovered.
    `session` is the `owner` object of a registry file, kept as it was read.
    `labels_added`/`labels_removed` are a person's words and win over classification.
    """

    name: str | None = None
    description: str | None = None
    bucket: Bucket | None = None
    type: str | None = None
    run: str | None = None
    user: str | None = None
    owner: str | None = None
    owner_uid: int | None = None
    session: Mapping[str, Any] | None = None
    log_path: str | None = None
    nel_command: tuple[str, ...] = ()
    nel_home: str | None = None
    labels_added: frozenset[str] = frozenset()
    labels_removed: frozenset[str] = frozenset()
    last_status: str | None = None  # a registry file's word at the time of adding


@dataclass(frozen=True, slots=True)
class ClassifyRule:
    """One `[[classify]]` table: regular expressions that must all be found, and what follows.

    `run` may refer to groups of `name` (`\\g<cell>`). The first matching rule wins.
    """

    name: str | None = None
    partition: str | None = None
    account: str | None = None
    comment: str | None = None
    workdir: str | None = None
    bucket: Bucket | None = None
    labels: tuple[str, ...] = ()
    run: str | None = None
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Classified:
    """Where a job belongs, after choices, `[[classify]]` rules and name prefixes were weighed."""

    bucket: Bucket
    type: str
    run: str
    labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class LogEvidence:
    """What the last look at the log found.

    `status` is one of `read empty absent unavailable not-read none` (the interface's words).
    `last_line` is the last non-empty line, masked and without control characters.
    `changed_at` is when a look last found another size or mtime; at the first one, its mtime.
    `rested_at` is when a look last saw the job suspended: no silence before it counts.
    """

    status: str = "none"
    path: str | None = None
    size_bytes: int | None = None
    inode: int | None = None
    mtime_at: datetime | None = None
    read_at: datetime | None = None
    error: str | None = None
    last_line: str | None = None
    changed_at: datetime | None = None
    rested_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One incarnation: (cluster, kind, native id, birth).

    `id` is the store's number, 0 before the first commit. `birth` is None until the first
    sighting. `life` counts the incarnations of the run from 1. `tracked` jobs are polled; a job
    that ended leaves tracking in the transaction that records why. `stale` means that the last
    sweep could not ask. `absent_since` is when every source first said it does not know the job.
    `transitions` counts what has been recorded, and makes news keys unique. `dependency` and the
    like in `facts` are remembered after the source forgets them.
    `predecessor` is the store's id of the incarnation this one continues. `probe` says how a deep
    probe of its setting stands: `due`, or the verdict `kill` or `no-kill`; None where none is due.
    """

    id: int
    cluster: str
    kind: Kind
    native_id: str
    birth: str | None
    run: str
    life: int
    bucket: Bucket
    type: str
    labels: frozenset[str]
    choices: Choices
    facts: Facts
    state: State
    native: str
    added_at: datetime
    tracked: bool = True
    discovered: bool = False
    stale: bool = False
    first_seen_at: datetime | None = None
    seen_at: datetime | None = None
    ended_at: datetime | None = None  # when the job ended, else when jobmond learned of it
    absent_since: datetime | None = None
    proof: str | None = None
    transitions: int = 0
    post_mortem: PostMortem = PostMortem.NONE
    post_mortem_tries: int = 0
    log: LogEvidence = field(default_factory=LogEvidence)
    parts: tuple[Part, ...] = ()  # with their jobs in SLURM
    training: Training | None = None  # None where no log was followed
    work: Work | None = None  # None where no trials were looked for
    diagnosis: Diagnosis | None = None
    agent_log: str | None = None
    signals: tuple[Signal, ...] = ()  # open and cleared ones of this life
    successor: str | None = None  # ref
    predecessor: int | None = None
    probe: str | None = None
    note: str | None = None

    @property
    def ref(self) -> str:
        """`cluster/native`: everything after the first slash is the native id."""
        return f"{self.cluster}/{self.native_id}"

    @property
    def name(self) -> str:
        """The name people gave, else the source's, else the native id."""
        return self.choices.name or self.facts.name or self.native_id


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """How one cluster answered. `since` is when `status` began."""

    name: str
    kind: str
    active: bool
    status: str
    since: datetime
    last_ok_at: datetime | None = None
    error: str | None = None
    remedy: str | None = None
    notes: str | None = None
    logins_per_h: int = 0
    calls_per_h: int = 0
    log_bytes_per_h: int = 0  # what reading logs moved
    failures: int = 0  # sweeps in a row that failed; the back-off grows with it
    retry_at: datetime | None = None
