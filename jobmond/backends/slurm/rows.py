"""What the three commands say about one job, before anything is concluded."""

from dataclasses import dataclass

from jobmond.backends.slurm.fields import JobId


@dataclass(frozen=True, slots=True)
class Row:
    """What both sources say. `raw_id` is the number Slurm keeps for a task or component.

    `submit`, `start` and `end` are epoch seconds.
    """

    id: JobId
    raw_id: str
    native: str
    submit: int
    name: bytes
    user: str | None = None
    partition: str | None = None
    account: str | None = None
    workdir: bytes | None = None
    dependency: str | None = None
    start: int | None = None
    end: int | None = None
    elapsed_s: int | None = None
    limit_s: int | None = None
    nodes: str | None = None
    exit: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class QueueRow(Row):
    """A job as slurmctld knows it (squeue, or scontrol where `source` says so).

    `exit`, `restarts`, the paths and what is allocated are known to scontrol only.
    """

    source: str = "squeue"
    comment: str | None = None
    command: bytes | None = None
    reason: str | None = None
    restarts: int | None = None
    log_path: str | None = None
    err_path: str | None = None
    node_count: int | None = None
    gpus: int | None = None


@dataclass(frozen=True, slots=True)
class AccountRow(Row):
    """A job as slurmdbd knows it. `end` is set only where the database has an end."""

    submit_line: str | None = None


@dataclass(frozen=True, slots=True)
class NotKnown:
    """scontrol answered that there is no such job."""


@dataclass(frozen=True, slots=True)
class NoDetail:
    """scontrol was asked and gave no answer that can be used."""

    why: str


Detail = tuple[QueueRow, ...] | NotKnown | NoDetail
