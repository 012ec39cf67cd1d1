"""The controller's words for states, and what they are here.

Source: lib/iris/src/iris/rpc/job.proto of marin-community/marin (JobState, TaskState).
"""

from jobmond.model.state import State

_JOB = "JOB_STATE_"
_TASK = "TASK_STATE_"

JOB_STATES = {
    "pending": State.PENDING,
    "building": State.PENDING,
    "running": State.RUNNING,
    "succeeded": State.COMPLETED,
    "failed": State.FAILED,
    "killed": State.CANCELLED,
    "worker_failed": State.NODE_FAIL,
    "unschedulable": State.FAILED,
}
TASK_STATES = {
    **JOB_STATES,
    "assigned": State.PENDING,
    "preempted": State.PREEMPTED,
    "cosched_failed": State.CANCELLED,  # ended because another task of the same job failed
    "missing": State.LOST,
}
LIVE_TASKS = frozenset({"pending", "assigned", "building", "running"})
BAD_TASKS = frozenset({"failed", "worker_failed", "unschedulable"})


def job_word(native: object) -> str | None:
    """`running` of `JOB_STATE_RUNNING`; None where it is no word of a job's state."""
    return _word(native, _JOB, JOB_STATES)


def task_word(native: object) -> str | None:
    """`running` of `TASK_STATE_RUNNING`; None where it is no word of a task's state."""
    return _word(native, _TASK, TASK_STATES)


def _word(native: object, prefix: str, known: dict[str, State]) -> str | None:
    if not isinstance(native, str):
        return None
    word = native.removeprefix(prefix).lower()
    return word if word in known else None
