"""Slurm's state words, and what jobmond calls them."""

from types import MappingProxyType

from jobmond.model.state import TERMINAL, State

# The words of squeue's %T, sacct's State and scontrol's JobState (man pages of 22.05 to 25.11).
# A word that is missing here, EXPEDITING for instance, is reported and moves no job.
STATES = MappingProxyType(
    {
        "PENDING": State.PENDING,
        "RUNNING": State.RUNNING,
        "SUSPENDED": State.RUNNING,
        "STOPPED": State.RUNNING,
        "CONFIGURING": State.RUNNING,
        "COMPLETING": State.RUNNING,
        "RESIZING": State.RUNNING,
        "SIGNALING": State.RUNNING,
        "STAGE_OUT": State.RUNNING,
        "REQUEUED": State.PENDING,
        "REQUEUE_HOLD": State.PENDING,
        "REQUEUE_FED": State.PENDING,
        "SPECIAL_EXIT": State.PENDING,
        "RESV_DEL_HOLD": State.PENDING,
        "COMPLETED": State.COMPLETED,
        "FAILED": State.FAILED,
        "LAUNCH_FAILED": State.FAILED,
        "RECONFIG_FAIL": State.FAILED,
        "TIMEOUT": State.TIMEOUT,
        "DEADLINE": State.TIMEOUT,
        "OUT_OF_MEMORY": State.OUT_OF_MEMORY,
        "NODE_FAIL": State.NODE_FAIL,
        "BOOT_FAIL": State.NODE_FAIL,
        "CANCELLED": State.CANCELLED,
        "REVOKED": State.CANCELLED,
        "PREEMPTED": State.PREEMPTED,
    }
)

# What only a person, or the job's own walltime rules, brings about: never the prelude to a requeue.
_ENDS_WHILE_WAITING = frozenset({"CANCELLED", "DEADLINE", "REVOKED"})

# Slurm may put the same id back into the queue after these, seconds after saying that it ended.
_MAY_RETURN = frozenset(
    {"PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL", "REQUEUED"}
)

# The job's processes are over and the node is being cleaned: accounting knows how it ended.
_WINDING_DOWN = frozenset({"COMPLETING", "STAGE_OUT"})

_STANDING_STILL = frozenset({"SUSPENDED", "STOPPED"})

_HOLDS = frozenset({"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
_HELD_REASONS = ("jobheld", "held state", "requeued held", "held_state", "requeued_held")


def base_word(native: str) -> str:
    """The state word of `CANCELLED by 1000` or `CANCELLED+`."""
    first, _, _ = native.strip().partition(" ")
    return first.rstrip("+")


def canonical(native: str) -> State | None:
    """What jobmond calls `native`, None for a word that is not known."""
    return STATES.get(base_word(native))


def is_end(native: str) -> bool:
    """Whether the word says that the job is over."""
    return canonical(native) in TERMINAL


def may_return(native: str) -> bool:
    """Whether Slurm may queue the same id again after this end."""
    return base_word(native) in _MAY_RETURN


def ends_while_waiting(native: str) -> bool:
    """Whether a job can end this way without ever having started."""
    return base_word(native) in _ENDS_WHILE_WAITING


def winding_down(native: str) -> bool:
    return base_word(native) in _WINDING_DOWN


def stands_still(native: str) -> bool:
    return base_word(native) in _STANDING_STILL


def is_held(native: str, reason: str | None) -> bool:
    """Whether the job waits for a person to release it.

    The reason is free text (`JobHeldUser`, `launch failed requeued held`,
    `JobArrayTaskLimit,JobHeldUser`).
    """
    if base_word(native) in _HOLDS:
        return True
    text = (reason or "").lower()
    return canonical(native) is State.PENDING and any(word in text for word in _HELD_REASONS)
