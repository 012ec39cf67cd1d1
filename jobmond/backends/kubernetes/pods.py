"""What one pod says: how it ended, or what it is doing and waiting for. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobmond.backends.kubernetes.records import Container, Happening, Pod, Unreadable
from jobmond.model.state import State

# Source: the documentation of the pod lifecycle and of pod disruption conditions.
PHASES = frozenset({"Pending", "Running", "Succeeded", "Failed", "Unknown"})
_BY_POD_REASON = {
    "DeadlineExceeded": State.TIMEOUT,
    "Evicted": State.PREEMPTED,
    "Preempting": State.PREEMPTED,
    "NodeLost": State.NODE_FAIL,
    "NodeShutdown": State.NODE_FAIL,
    "Shutdown": State.NODE_FAIL,
    "Terminated": State.NODE_FAIL,  # by the shutdown of its node
}
_BY_DISRUPTION = {
    "DeletionByTaintManager": State.NODE_FAIL,
    "DeletionByPodGC": State.NODE_FAIL,
}
_ORDINARY = frozenset({"ContainerCreating", "PodInitializing"})
_BLOCKED = frozenset(
    {
        "FailedMount",
        "FailedAttachVolume",
        "FailedMapVolume",
        "FailedCreatePodSandBox",
        "FailedCreatePodContainer",
        "NetworkNotReady",
        "FailedScheduling",
    }
)


@dataclass(frozen=True, slots=True)
class End:
    """How a pod ended. `container` is the one whose end it was, where one can be named."""

    state: State
    reason: str | None
    exit_code: int | None
    message: str | None
    at: datetime | None
    container: Container | None = None

    @property
    def plain(self) -> bool:
        """Whether it says no more than that a program failed."""
        return self.state is State.FAILED and self.reason in (None, "Error")


@dataclass(frozen=True, slots=True)
class Doing:
    """What a pod that has not ended does. `state` is RUNNING or PENDING."""

    state: State
    reason: str | None = None
    message: str | None = None
    stuck: bool = False  # it waits for something that may never come


def check_phase(pod: Pod) -> None:
    """Raises Unreadable: a phase that nobody has told us about."""
    if pod.phase not in PHASES:
        raise Unreadable(f"pod {pod.meta.name}: unknown phase {pod.phase!r}")


def ended(pod: Pod) -> End | None:
    """How the pod ended; None while it has not."""
    check_phase(pod)
    if pod.phase == "Succeeded":
        at = max(_moments(pod), default=None)
        return End(State.COMPLETED, "Completed", 0, None, at, _main(pod))
    if pod.phase != "Failed":
        return None
    culprit, in_init = _culprit(pod)
    at = (culprit.finished_at if culprit else None) or max(_moments(pod), default=None)
    code = culprit.exit_code if culprit else None
    state, reason = _why(pod, culprit)
    if in_init and state is State.FAILED:
        reason = f"Init:{reason or 'Error'}"
    message = pod.message or (culprit.message if culprit else None)
    return End(state, reason, code, message, at, culprit)


def _why(pod: Pod, culprit: Container | None) -> tuple[State, str | None]:
    disrupted = pod.conditions.get("DisruptionTarget")
    if pod.reason in _BY_POD_REASON:
        state = _BY_POD_REASON[pod.reason]
        return state, pod.reason
    if disrupted is not None and disrupted.true:
        said = disrupted.reason or "DisruptionTarget"
        return _BY_DISRUPTION.get(said, State.PREEMPTED), said
    # The reason first: a parent that outlives its killed child returns what it likes.
    oom = [c for c in (*pod.init, *pod.containers) if c.failed and c.reason == "OOMKilled"]
    if oom:
        return State.OUT_OF_MEMORY, "OOMKilled"
    return State.FAILED, pod.reason or (culprit.reason if culprit else None)


def _culprit(pod: Pod) -> tuple[Container | None, bool]:
    """The container that failed first, and whether that was before the pod's work began."""
    for container in pod.init:
        if container.failed:
            return container, True
    failed = [c for c in pod.containers if c.failed]
    oom = [c for c in failed if c.reason == "OOMKilled"]
    chosen = min(oom or failed, key=_finished, default=None)
    return chosen or next((c for c in pod.containers if c.state == "terminated"), None), False


def _finished(container: Container) -> float:
    return container.finished_at.timestamp() if container.finished_at else float("inf")


def _moments(pod: Pod) -> Iterable[datetime]:
    return (c.finished_at for c in (*pod.init, *pod.containers) if c.finished_at)


def _main(pod: Pod) -> Container | None:
    named = [c for c in pod.containers if c.name == pod.main]
    return next(iter(named or pod.containers), None)


def doing(pod: Pod, happenings: Sequence[Happening] = ()) -> Doing:
    """What a pod does that has not ended. `happenings` are events of any object."""
    check_phase(pod)
    if pod.phase == "Unknown":
        return Doing(State.RUNNING, pod.reason or "Unknown", pod.message)
    found = _preparing(pod) or _containers(pod) or _scheduling(pod)
    if found.state is State.PENDING and not found.stuck:
        blocked = _blocked(pod, happenings)
        return blocked or found
    return found


def _preparing(pod: Pod) -> Doing | None:
    """Where the pod's work has not begun because of what comes before it."""
    for container in pod.init:
        if container.failed:
            said = f"Init:{container.reason or 'Error'}"
            return Doing(State.PENDING, said, _with_exit(container), stuck=True)
        if container.state == "waiting" and container.reason not in (None, *_ORDINARY):
            word = container.reason or ""
            said = word if "Image" in word or "Config" in word else f"Init:{word}"
            return Doing(State.PENDING, said, container.message, stuck=True)
    return None


def _containers(pod: Pod) -> Doing | None:
    if not pod.containers:
        return None
    trouble = next((c for c in pod.containers if _troubled(c)), None)
    over = next((c for c in pod.containers if c.state == "terminated"), None)
    begun = pod.phase == "Running" or any(
        c.state == "running" or (c.state == "terminated" and c.started_at is not None)
        for c in pod.containers
    )
    # Sources that leave times out say so with the reason of a container that never ran.
    begun = begun or (over is not None and over.reason in ("Error", "Completed", "OOMKilled"))
    state = State.RUNNING if begun else State.PENDING
    if trouble is not None:
        return Doing(state, trouble.reason, _with_exit(trouble), stuck=True)
    if over is not None and not any(c.state == "running" for c in pod.containers):
        return Doing(state, over.reason, _with_exit(over), stuck=over.failed)
    if begun:
        return Doing(state)
    waits = next((c for c in pod.containers if c.state == "waiting"), None)
    return Doing(state, waits.reason, waits.message) if waits else None


def _troubled(container: Container) -> bool:
    return container.state == "waiting" and container.reason not in (None, *_ORDINARY)


def _with_exit(container: Container) -> str | None:
    """What is said of a container that goes down again and again, or for good."""
    code = container.exit_code if container.state == "terminated" else container.last_exit_code
    said = [] if code is None else [f"last exit code {code}"]
    if container.restarts:
        said.append(f"{container.restarts} restarts")
    if container.message:
        said.append(container.message)
    return "; ".join(said) or None


def _scheduling(pod: Pod) -> Doing:
    scheduled = pod.conditions.get("PodScheduled")
    if scheduled is None:
        return Doing(State.PENDING, "Scheduled" if pod.node else "Pending")
    if scheduled.true:
        return Doing(State.PENDING, "Scheduled")
    gated = scheduled.reason == "SchedulingGated"
    return Doing(State.PENDING, scheduled.reason, scheduled.message, stuck=not gated)


def _blocked(pod: Pod, happenings: Sequence[Happening]) -> Doing | None:
    """What its events say that a pod's own status keeps to itself, such as a failed mount."""
    mine = [h for h in happenings if h.uid == pod.meta.uid and h.warning and h.reason in _BLOCKED]
    last = max(mine, key=lambda h: h.at.timestamp() if h.at else 0.0, default=None)
    if last is None or last.reason == "FailedScheduling":
        return None
    return Doing(State.PENDING, last.reason, last.message, stuck=True)


def last_failure(pods: Iterable[Pod]) -> datetime | None:
    """When one of these pods last ended badly."""
    ends = [end for pod in pods if (end := ended(pod)) and end.state is not State.COMPLETED]
    return max((end.at for end in ends if end.at), default=None)


def attempts(pod: Pod) -> int:
    """The most restarts of any container."""
    return max((c.restarts for c in (*pod.init, *pod.containers)), default=0)


def log_place(pod: Pod, container: Container | None = None) -> str | None:
    """Where its log is: `POD/CONTAINER`, with `@N` for the Nth restart of the container."""
    chosen = container or _telling(pod)
    if chosen is None or not chosen.name:
        return None
    attempt = f"@{chosen.restarts}" if chosen.restarts else ""
    return f"{pod.meta.name}/{chosen.name}{attempt}"


def _telling(pod: Pod) -> Container | None:
    culprit, in_init = _culprit(pod)
    if culprit is not None and (in_init or culprit.failed):
        return culprit
    return _main(pod)
