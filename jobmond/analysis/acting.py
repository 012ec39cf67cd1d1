"""What follows from a collapse, and by whose leave."""

from dataclasses import dataclass

from jobmond.model.job import Job
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Kind, State

ACTED_ON = "rl-collapse"
SPARED = frozenset({"no-kill", "spike-mitigation"})  # labels of what is never cancelled


@dataclass(frozen=True, slots=True)
class Leave:
    """What the configuration allows on a cluster. `cancels`: a collapse is cancelled, not only
    told. `no_kill` is why nothing there may be cancelled, None where it may.
    """

    cancels: bool = False
    no_kill: str | None = None


NO_LEAVE = Leave()


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to cancel, and why (not), in words for the audit trail."""

    cancel: bool
    why: str


def decided(job: Job, signal: Signal, leave: Leave) -> Decision:
    """What follows from `signal`, which was raised now. Anything but a clear yes is a no."""
    if signal.rule != ACTED_ON:
        return Decision(False, "nothing follows from this rule")
    hindered = hindrance(job, leave)
    if hindered is not None:
        return Decision(False, f"left running: {hindered}")
    return Decision(True, 'to be cancelled: policy.on_collapse = "cancel" in the configuration')


def hindrance(job: Job, leave: Leave) -> str | None:
    """Why `job` must not be cancelled, whatever was decided; None where it may be."""
    reasons = (
        (not leave.cancels, 'on_collapse = "recommend"'),
        (leave.no_kill is not None, leave.no_kill),
        *((one in job.labels, f"it is labelled {one}") for one in sorted(SPARED)),
        (job.bucket is not Bucket.RL, f"it is no RL job but {job.bucket.value}"),
        (job.kind is not Kind.SLURM, f"jobs of {job.kind.value} are never cancelled"),
        (job.state is not State.RUNNING, f"it is {job.state.value}"),
        (job.stale, "the cluster did not answer"),
        (job.birth is None or job.facts.tasks is not None, "it is no single job"),
    )
    return next((why for holds, why in reasons if holds), None)
