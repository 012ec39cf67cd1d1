"""What Kueue says of a job that it holds back, admits or sends back. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from jobmond.backends.kubernetes.records import Condition, Workload
from jobmond.model.state import State


@dataclass(frozen=True, slots=True)
class Queued:
    """The state of a workload, and the words for it. `held`: not without somebody's doing."""

    state: State
    native: str
    reason: str | None
    message: str | None
    held: bool = False


def queued(workload: Workload) -> Queued:
    """Where a workload stands. Source: the conditions of Kueue's Workload, v1beta1 and v1beta2."""
    conditions = workload.conditions
    if finished := _true(conditions, "Finished"):
        state = _finish(finished.reason, finished.message)
        return Queued(state, "Finished", finished.reason, finished.message)
    if _true(conditions, "Admitted"):
        return Queued(State.RUNNING, "Admitted", None, None)
    native, held = "Pending", False
    evicted, quota = _true(conditions, "Evicted"), conditions.get("QuotaReserved")
    said: Condition | None = evicted or quota
    reason = said.reason if said else None
    if not workload.active:
        native, reason, held = "Deactivated", "Deactivated", True
    elif evicted:
        native, reason = "Evicted", reason or "Evicted"
    elif quota and quota.true:
        native, reason = "QuotaReserved", "AdmissionChecks"
    elif (requeued := conditions.get("Requeued")) and not requeued.true:
        native, reason, said = "Requeued", requeued.reason or "Requeued", requeued
    return Queued(State.PENDING, native, reason or "Queued", said.message if said else None, held)


def _true(conditions: Mapping[str, Condition], name: str) -> Condition | None:
    found = conditions.get(name)
    return found if found and found.true else None


def _finish(reason: str | None, message: str | None) -> State:
    # Before v1beta2 every end had the reason JobFinished, and only its text said which.
    said = (message or "").lower()
    if reason == "Succeeded" or (reason == "JobFinished" and "success" in said):
        return State.COMPLETED
    return State.CANCELLED if reason == "OwnerNotFound" else State.FAILED
