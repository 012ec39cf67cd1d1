"""What a sweep concludes: transitions, signals, diagnoses, news, deliveries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jobmond.model.state import Severity, State


@dataclass(frozen=True, slots=True)
class Transition:
    """The net change of one incarnation between two sweeps. `before` is None at first sight."""

    at: datetime
    before: State | None
    after: State
    native: str
    correction: bool = False


@dataclass(frozen=True, slots=True)
class Signal:
    """One rule's standing remark about one life.

    `step` is the first firing, `last_step` the last (None for rules that know no steps).
    `evidence` maps names to plain JSON values. `action` is one of
    `cancel-and-salvage cancel inspect consolidate none`.
    """

    rule: str
    severity: Severity
    title: str
    evidence: Mapping[str, Any]
    action: str = "none"
    step: int | None = None
    last_step: int | None = None
    opened_at: datetime | None = None
    cleared_at: datetime | None = None
    recovered_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Recurrence:
    """How a failure stands among those before it, of its run or its configuration.

    `count` is 1 where none was like it. `dates` are those of its last likes, oldest first.
    `interval_s` is how long each of them lived where that was about the same; `fixed_s` how long
    the last ones lived where all, whatever they died of, lived equally long. `transient` is false
    where trying again will not help, None where that is not known. `previous` is the signature of
    the failure before. `elsewhere` counts the same failure of other runs on the cluster. `words`
    says it in one line.
    """

    count: int
    dates: tuple[datetime, ...]
    interval_s: int | None
    fixed_s: int | None
    transient: bool | None
    previous: str | None
    words: str
    elsewhere: int = 0

    @property
    def telling(self) -> bool:
        """Whether it says more than that this has not happened before."""
        return self.count > 1 or self.elsewhere > 0 or self.fixed_s is not None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a job failed, as far as it is proved.

    `cause` is a class of the interface (`python-exception`, `unknown`, …). `line` (1-based, LF
    only) states the cause, `first_line` begins its block at byte `offset`; all None where nothing
    can be quoted. Line numbers and offset count from the beginning of the file, or are None
    where only its end was read. `excerpt` is masked. `recurrence` is None where nobody looked for
    earlier failures. `log` is the path of the log that tells it, None where that is the job's own.
    """

    cause: str
    summary: str
    line: int | None = None
    first_line: int | None = None
    offset: int | None = None
    excerpt: tuple[str, ...] = ()
    fingerprint: str | None = None
    victims: int | None = None
    recurrence: Recurrence | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An incarnation that failed, with what it was found to have died of.

    `config` is its batch script or command line, `at` when it ended, `elapsed_s` how long it had
    lived by then, `entry` the absolute path of its failure entry.
    """

    ref: str
    birth: str | None
    name: str
    run: str
    config: str | None
    state: State
    cause: str
    fingerprint: str | None
    summary: str
    at: datetime
    elapsed_s: int | None = None
    entry: str | None = None

    @property
    def cluster(self) -> str:
        return self.ref.partition("/")[0]


@dataclass(frozen=True, slots=True)
class News:
    """One event, as sinks get it and `events` shows it.

    `key` is the same across retries and restarts. `payload` is the JSON object of the interface
    without `key`, ready to serialise. `ref` is None for news about a cluster.
    """

    key: str
    at: datetime
    type: str
    severity: Severity
    cluster: str
    ref: str | None
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One thing owed to one sink: news, or a file that must stand.

    `id` is the store's number (0 before the commit) and gives the order. `key` makes it
    idempotent at the sink. `body` is what the sink needs (for news the payload with its key; for
    an agent-log entry `{"path", "text"}`). `attempts` counts tries so far.
    """

    id: int
    key: str
    sink: str
    body: Mapping[str, Any]
    created_at: datetime
    due_at: datetime
    attempts: int = 0
    last_error: str | None = None


@dataclass(frozen=True, slots=True)
class SinkStanding:
    """How far the deliveries to one sink have come.

    `undelivered` wait, `retry_at` is when they are tried again (None where they are not held
    back). `given_up` counts what the outbox remembers, the last at `given_up_at`. `last_error` is
    why the first of those that wait does, else why the last was given up.
    """

    name: str
    undelivered: int = 0
    given_up: int = 0
    last_error: str | None = None
    retry_at: datetime | None = None
    given_up_at: datetime | None = None
    configured: bool = True


@dataclass(frozen=True, slots=True)
class Followup:
    """Something a person owes. `state` is `open` or `closed`, `evidence` what it is about (plain
    JSON values: `path`, `mount`, `inodes_free_before` …). `evidence["job"]` says whose it is, for
    when the job itself is long forgotten; `evidence["held"]` why it must wait.
    """

    id: int
    kind: str
    ref: str
    title: str
    opened_at: datetime
    state: str = "open"
    closed_at: datetime | None = None
    closed_by: str | None = None
    verdict: str | None = None
    note: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def word(self) -> str:
        """What it is called before the store has given it a number."""
        return f"{self.kind}:{self.ref}"
