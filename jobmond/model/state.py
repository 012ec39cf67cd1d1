"""The eleven canonical states of a job and which of them are ends."""

from enum import StrEnum


class State(StrEnum):
    """What jobmond calls the condition of a job, whatever the source calls it.

    Each backend owns one table from its native words to these; a word missing there is an error
    about that job (`Unreachable`), never a default.
    """

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    NODE_FAIL = "NODE_FAIL"
    CANCELLED = "CANCELLED"
    PREEMPTED = "PREEMPTED"
    LOST = "LOST"  # every source that could know answered, and none knows the job
    UNKNOWN = "UNKNOWN"  # over or gone, and the source that would tell does not exist


TERMINAL = frozenset(
    {
        State.COMPLETED,
        State.FAILED,
        State.TIMEOUT,
        State.OUT_OF_MEMORY,
        State.NODE_FAIL,
        State.CANCELLED,
        State.PREEMPTED,
        State.LOST,
    }
)

# The order in which a many-part job that has ended takes the state of its worst part.
WORST_FIRST = (
    State.FAILED,
    State.OUT_OF_MEMORY,
    State.NODE_FAIL,
    State.TIMEOUT,
    State.LOST,
    State.PREEMPTED,
    State.CANCELLED,
)


class Bucket(StrEnum):
    """The five report buckets."""

    RL = "rl"
    SFT = "sft"
    DATAGEN = "datagen"
    EVAL = "eval"
    OTHER = "other"


class Kind(StrEnum):
    """The source a job is asked of."""

    SLURM = "slurm"
    LOCAL = "local"
    KUBERNETES = "kubernetes"
    IRIS = "iris"
    NEL = "nel"
    LAUNCHER = "launcher"


# A launcher's job is called after its output file until that names the experiment.
FILE_REF = "file:"


class ClusterStatus(StrEnum):
    """How a cluster answered at the last sweep."""

    OK = "ok"
    UNREACHABLE = "unreachable"  # transient: backed off, tried again by itself
    NEEDS_LOGIN = "needs-login"  # needs a person: not tried again until asked
    INACTIVE = "inactive"  # switched off in the configuration, never contacted


class Severity(StrEnum):
    INFO = "info"
    WATCH = "watch"
    ALARM = "alarm"


class PostMortem(StrEnum):
    """Whether log and cause of an ended incarnation are still being looked for."""

    NONE = "none"  # nothing to look for: still live, or ended without failure
    PENDING = "pending"
    DONE = "done"
    GIVEN_UP = "given-up"
