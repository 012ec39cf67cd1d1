"""What was seen of a job. Silence is not an answer: seen, gone and unreachable are three things."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from jobmond.model.metrics import Segment
from jobmond.model.state import Bucket, Kind, State

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """The parts of a many-part job (array, heterogeneous job).

    `by_state` maps canonical state to number of parts; `failed` names the first ten parts that
    ended badly (native ids, e.g. `4711_3`), `running` the first hundred that run.
    """

    total: int
    by_state: Mapping[State, int]
    failed: tuple[str, ...] = ()
    running: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """What the source says about one incarnation. Nothing here was decided by jobmond.

    `None` means that the source did not say. Text may hold any printable character; control
    characters were made visible by the backend. Durations in seconds, instants aware UTC.
    """

    name: str | None = None
    user: str | None = None
    partition: str | None = None
    account: str | None = None
    comment: str | None = None
    workdir: str | None = None
    command: str | None = None  # batch script or command line
    submit_line: str | None = None  # as it was typed, where the source keeps it
    node_count: int | None = None
    gpus: int | None = None  # of all nodes together
    reason: str | None = None  # native pending or end reason, free text
    exit_code: int | None = None
    signal: int | None = None
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    start_estimate_at: datetime | None = None
    elapsed_s: int | None = None
    time_limit_s: int | None = None
    nodes: str | None = None
    dependency: str | None = None  # native text, e.g. afterany:4711(unfulfilled)
    restarts: int | None = None
    log_path: str | None = None  # standard output, absolute, expanded
    err_path: str | None = None  # standard error where it is another file
    held: bool = False
    suspended: bool = False  # SUSPENDED and STOPPED never stall
    tasks: TaskCounts | None = None
    progress: str | None = None  # what it is doing, in a few words
    bucket: Bucket | None = None  # where its kind alone says what it is
    scores: Mapping[str, float] | None = None  # of an evaluation, by benchmark, in per cent
    detailed: bool = False  # the expensive question (scontrol) has been answered for this state
    message: str | None = None  # what the source says about the reason; may hold newlines
    misses: int | None = None  # looks in a row that found the record and nothing at work
    empty_since: datetime | None = None  # when the first of them was


@dataclass(frozen=True, slots=True)
class EndedLife:
    """An earlier incarnation under the same native id, seen ended (a requeue)."""

    birth: str
    state: State
    native: str
    facts: Facts


@dataclass(frozen=True, slots=True)
class Link:
    """A job in the SLURM of the same cluster that is this one, or a part of it.

    `waits` says that it is queued to go on from the one before it. The rest is what SLURM last
    said; `state` is None where it has not answered yet. `added_at` is when the link was found.
    """

    native_id: str
    waits: bool = False
    birth: str | None = None
    state: State | None = None
    native: str = ""
    facts: Facts = field(default_factory=Facts)
    added_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A job of a nel invocation, or a task of a launcher's experiment.

    `native` is the source's own word for it, `state` what that proves (None: nothing). `links`
    are its jobs in SLURM, oldest first; with `chained` each goes on from the one before it where
    that ran into its time limit or lost its nodes. `folder` is where it works, at the far side.
    """

    name: str
    native: str = ""
    state: State | None = None
    links: tuple[Link, ...] = ()
    chained: bool = False
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """The source answered and knows the job.

    `birth` identifies the incarnation (SLURM: submit time in epoch seconds, local: boot id and
    start ticks). `proof` says in a few words which answer decided (`sacct`, `squeue`, `scontrol`,
    `/proc`). `previous` holds lives under the same id that ended since `Ask.birth`, oldest first.
    `native_id` is what the job is called from now on, where that is another id than was asked for.
    `parts` are those with jobs in SLURM of their own: what SLURM says of them goes before `state`.
    `successor` is the SLURM id that is about to go on from one of them.
    """

    state: State
    native: str
    birth: str
    facts: Facts
    proof: str
    previous: tuple[EndedLife, ...] = ()
    native_id: str | None = None
    parts: tuple[Part, ...] = ()
    successor: str | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """Every source that could know the job answered, and none knows it.

    `complete` is false where the source that would tell how it ended does not exist (a cluster
    without accounting): the job is then UNKNOWN, not LOST. `message` says what was last seen.
    """

    reason: str
    complete: bool = True
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No answer, or one that could not be read. Moves no job."""

    error: str


Sighting = Seen | Gone | Unreachable


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """Evidence that arrived whole."""

    value: T
    at: datetime


@dataclass(frozen=True, slots=True)
class Absent:
    """The far side answered that the thing does not exist. `looked` says where."""

    looked: tuple[str, ...] = ()


PERMISSION = "permission: "  # begins the reason where the login user may not read


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The evidence could not be fetched; no rule may read this as silence.

    A `why` that begins with `PERMISSION` lasts until somebody who may change that does.
    """

    why: str


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """There is no such evidence for this kind of job, or nobody asked for it in this sweep."""


Reading = Read[T] | Absent | Unavailable | NotApplicable


@dataclass(frozen=True, slots=True)
class Follow:
    """What is new in a log since `place` (None: since its beginning).

    `place` is what the last `LogNews` gave: plain JSON values that only the source reads. Only
    segments that hold one of `needles` matter (none given: all do). At most `max_bytes` of the
    log are looked at.
    """

    place: Mapping[str, Any] | None
    needles: tuple[bytes, ...]
    max_bytes: int


@dataclass(frozen=True, slots=True)
class LogNews:
    """The segments of a log since the last time, in order.

    The last may be open (not closed): it may be shown but not kept, `place` is before it and it
    comes again, whole. Segments are cut like `analysis.segments.Cutter` cuts them. `restarted`
    says that the log is not the one read before (another file, or shorter than what was read):
    the segments begin at its beginning. `behind_bytes` were not looked at yet, `moved_bytes`
    travelled.
    """

    place: Mapping[str, Any]
    segments: tuple[Segment, ...]
    restarted: bool = False
    behind_bytes: int = 0
    moved_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Examine:
    """What more to bring of the log of a job that ended badly: its end alone seldom says why.

    Of a log of up to `whole_bytes` everything is; of a larger one `head_bytes` of its beginning,
    `tail_bytes` of its end, and `around_bytes` before and after up to `hits` of the lines that hold
    one of `needles`, those of rare kinds first. `beside` are further logs of the job: absolute
    paths, or names in the folder of the log in which `*` stands for anything.
    """

    needles: tuple[bytes, ...]
    beside: tuple[str, ...] = ()
    whole_bytes: int = 512 * 1024
    head_bytes: int = 64 * 1024
    tail_bytes: int = 256 * 1024
    around_bytes: int = 12 * 1024
    hits: int = 40

    @classmethod
    def within(
        cls, most_bytes: int, needles: tuple[bytes, ...], beside: tuple[str, ...] = ()
    ) -> "Examine":
        """The same in proportion, for logs that may cost `most_bytes` each."""
        return cls(
            needles,
            beside,
            whole_bytes=2 * most_bytes // 5,
            head_bytes=most_bytes // 20,
            tail_bytes=most_bytes // 5,
            around_bytes=most_bytes * 3 // 320,
        )

    @property
    def most_bytes(self) -> int:
        """What one log can cost."""
        parts = self.head_bytes + self.tail_bytes + 2 * self.around_bytes * self.hits
        return max(self.whole_bytes, parts)


@dataclass(frozen=True, slots=True)
class LogPart:
    """Bytes of a log from byte `offset` on; `line` is the number (from 1, LF only) of the line in
    which they begin, None where nobody counted.
    """

    offset: int
    data: bytes
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """One log in parts, in order, without overlaps. `hits` is how many lines held a needle,
    `searched` whether all between the parts was looked through.
    """

    path: str
    size_bytes: int
    parts: tuple[LogPart, ...]
    hits: int = 0
    searched: bool = True


@dataclass(frozen=True, slots=True)
class LogTail:
    """The end of a job's log.

    `size_bytes` is the size of the whole file at the far side, `tail` its last bytes (as many as
    asked for, or all), beginning at byte `offset`. `mtime_at` is the file's modification time.
    `news` is what `LogAsk.follow` asked for, None where it did not, or the source cannot. With
    `joined` it is made of the ends of several files, and its bytes have no place in any of them.
    `examined` is what `LogAsk.examine` asked for, the log itself first.
    """

    path: str
    size_bytes: int
    inode: int
    mtime_at: datetime
    offset: int
    tail: bytes
    news: LogNews | None = None
    joined: bool = False
    examined: tuple[Examined, ...] = ()


@dataclass(frozen=True, slots=True)
class LogAsk:
    """One log to read: the path the scheduler names and where to look when it is not there.

    `native_id` is used for the fallback listing (`*_<id>.out` in `workdir`, one level).
    `tail_bytes` bounds what travels of its end. `kind` is the job's.
    """

    native_id: str
    path: str | None
    workdir: str | None
    tail_bytes: int
    follow: Follow | None = None
    kind: Kind | None = None
    examine: Examine | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """One tracked incarnation a backend is asked about.

    `birth` is None until the first sighting; `submitted_at` is then a hint. `added_at` is when
    tracking began (the grace for a young job counts from the later of the two).
    `state` and `facts` are what was last known; `state` None means never seen.
    `running_since` … are in facts. `absent_since` is when the queue first no longer knew it.
    `parts` are what is known of its parts, `command` and `home` how a person said that the
    program which knows the job is called.
    """

    native_id: str
    birth: str | None
    added_at: datetime
    submitted_at: datetime | None = None
    state: State | None = None
    facts: Facts = field(default_factory=Facts)
    parts: tuple[Part, ...] = ()
    command: tuple[str, ...] = ()
    home: str | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    """A backend's answer to one sweep's question.

    `sightings` has exactly one entry for every `Ask.native_id`. `found` are other jobs of the
    cluster's users that the same answers showed (for discovery and for chain successors).
    `trouble` is set when the source as a whole did not answer or answered in part; with
    `needs_login` it wants a person and `remedy` is the command that helps. `calls` counts far-side
    commands by name (`squeue`, `sacct`, `scontrol`). `complaints` are one line each (unknown state
    words, unreadable rows).
    """

    sightings: Mapping[str, Sighting]
    found: tuple[tuple[str, Seen], ...] = ()
    trouble: str | None = None
    needs_login: bool = False
    remedy: str | None = None
    calls: Mapping[str, int] = field(default_factory=dict)
    complaints: tuple[str, ...] = ()
