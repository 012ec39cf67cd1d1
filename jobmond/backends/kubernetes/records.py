"""What the API server says about Jobs, Pods and events, read without believing its shape."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from jobmond.analysis.mask import mask
from jobmond.analysis.visible import visible

JOB_NAME = ("batch.kubernetes.io/job-name", "job-name")
JOB_UID = ("batch.kubernetes.io/controller-uid", "controller-uid")
INDEX = "batch.kubernetes.io/job-completion-index"
QUEUE = "kueue.x-k8s.io/queue-name"
WORKLOAD_JOB_UID = "kueue.x-k8s.io/job-uid"
IRIS = "iris.managed"
OWN_CONTROLLER = "kubernetes.io/job-controller"
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_COMMAND_CHARS = 1000
_MESSAGE_CHARS = 4096  # what a termination message may hold

Raw = Mapping[str, Any]


class Unreadable(ValueError):
    """A record that has not the shape its API promises; one line that names the field."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One entry of a status' `conditions` whose status is True or False."""

    true: bool
    reason: str | None
    message: str | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Container:
    """The status of one container. `state` is `running`, `waiting`, `terminated` or nothing.

    `last_*` are about the attempt before this one.
    """

    name: str
    state: str | None
    reason: str | None = None
    message: str | None = None
    exit_code: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    restarts: int = 0
    last_exit_code: int | None = None
    last_finished_at: datetime | None = None

    @property
    def failed(self) -> bool:
        return self.state == "terminated" and self.exit_code != 0


@dataclass(frozen=True, slots=True)
class Meta:
    """What every object has."""

    namespace: str
    name: str
    uid: str
    created_at: datetime | None
    deleting: bool
    labels: Mapping[str, str]
    owners: frozenset[str]  # uids

    @property
    def native_id(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Template:
    """What a pod is to run, as far as people ask for it."""

    command: str | None = None
    workdir: str | None = None


@dataclass(frozen=True, slots=True)
class Pod:
    meta: Meta
    phase: str
    reason: str | None
    message: str | None
    node: str | None
    started_at: datetime | None
    conditions: Mapping[str, Condition]
    init: tuple[Container, ...]
    containers: tuple[Container, ...]
    template: Template
    main: str | None  # the container that people mean
    deadline_s: int | None

    @property
    def job_uid(self) -> str | None:
        return _first(self.meta.labels, JOB_UID)

    @property
    def job_name(self) -> str | None:
        return _first(self.meta.labels, JOB_NAME)

    @property
    def index(self) -> str | None:
        return self.meta.labels.get(INDEX)

    @property
    def live(self) -> bool:
        """Whether it has not ended: what the phase says, also of one that is being deleted."""
        return self.phase not in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A batch/v1 Job. Counts that its status does not hold are 0."""

    meta: Meta
    suspended: bool  # as it should be
    foreign: str | None  # the controller it is left to, where that is another
    indexed: bool
    completions: int | None
    parallelism: int
    deadline_s: int | None
    reconciled: bool  # whether any controller wrote its status
    active: int
    ready: int
    failed: int
    succeeded: int
    started_at: datetime | None
    completed_at: datetime | None
    conditions: Mapping[str, Condition]
    done_indexes: str
    bad_indexes: str
    template: Template

    def holds(self, condition: str) -> Condition | None:
        """The condition where its status is True."""
        found = self.conditions.get(condition)
        return found if found and found.true else None


@dataclass(frozen=True, slots=True)
class Workload:
    """A Kueue Workload. `active` is false where somebody or Kueue deactivated it."""

    meta: Meta
    active: bool
    queue: str | None
    conditions: Mapping[str, Condition]

    @property
    def job_uids(self) -> frozenset[str]:
        label = self.meta.labels.get(WORKLOAD_JOB_UID)
        return self.meta.owners | ({label} if label else set())


@dataclass(frozen=True, slots=True)
class Happening:
    """An event; `uid` is that of the object it is about."""

    uid: str
    warning: bool
    reason: str
    message: str
    at: datetime | None


def pod(raw: Any) -> Pod:
    """Raises Unreadable."""
    record, spec, status = _map(raw, "pod"), _map_at(raw, "spec"), _map_at(raw, "status")
    meta = metadata(record)
    phase = _text(status, "phase")
    if phase is None:
        raise Unreadable(f"pod {meta.name}: it has no phase")
    annotations = _map_at(_map_at(record, "metadata"), "annotations")
    return Pod(
        meta=meta,
        phase=phase,
        reason=_text(status, "reason"),
        message=_long(status, "message"),
        node=_text(spec, "nodeName"),
        started_at=instant(status.get("startTime")),
        conditions=_conditions(status),
        init=tuple(_containers(status, "initContainerStatuses")),
        containers=tuple(_containers(status, "containerStatuses")),
        template=Template() if meta.owners else _template(spec),
        main=_text(annotations, _DEFAULT_CONTAINER),
        deadline_s=_number(spec, "activeDeadlineSeconds"),
    )


def job(raw: Any) -> JobRecord:
    """Raises Unreadable."""
    record, spec, status = _map(raw, "job"), _map_at(raw, "spec"), _map_at(raw, "status")
    controller = _text(spec, "managedBy")
    completions = _number(spec, "completions")
    return JobRecord(
        meta=metadata(record),
        suspended=spec.get("suspend") is True,
        foreign=controller if controller != OWN_CONTROLLER else None,
        indexed=spec.get("completionMode") == "Indexed",
        completions=completions,
        parallelism=_number(spec, "parallelism") or completions or 1,
        deadline_s=_number(spec, "activeDeadlineSeconds"),
        reconciled=bool(status),
        active=_number(status, "active") or 0,
        ready=_number(status, "ready") or 0,
        failed=_number(status, "failed") or 0,
        succeeded=_number(status, "succeeded") or 0,
        started_at=instant(status.get("startTime")),
        completed_at=instant(status.get("completionTime")),
        conditions=_conditions(status),
        done_indexes=_text(status, "completedIndexes") or "",
        bad_indexes=_text(status, "failedIndexes") or "",
        template=_template(_map_at(_map_at(spec, "template"), "spec")),
    )


def workload(raw: Any) -> Workload:
    """Raises Unreadable."""
    record, spec, status = _map(raw, "workload"), _map_at(raw, "spec"), _map_at(raw, "status")
    return Workload(
        meta=metadata(record),
        active=spec.get("active") is not False,
        queue=_text(spec, "queueName"),
        conditions=_conditions(status),
    )


def happening(raw: Any) -> Happening:
    """Raises Unreadable."""
    record, about = _map(raw, "event"), _map_at(raw, "involvedObject")
    series = _map_at(record, "series")
    at = (
        series.get("lastObservedTime")
        or record.get("lastTimestamp")
        or record.get("eventTime")
        or record.get("firstTimestamp")
    )
    return Happening(
        uid=_text(about, "uid") or "",
        warning=record.get("type") == "Warning",
        reason=_text(record, "reason") or "",
        message=_long(record, "message") or "",
        at=instant(at),
    )


def metadata(raw: Any) -> Meta:
    """Raises Unreadable: it has no name. One without a uid goes by when it was made."""
    meta = _map_at(_map(raw, "record"), "metadata")
    name, uid = _text(meta, "name"), _text(meta, "uid")
    if name is None:
        raise Unreadable("a record without a name")
    uid = uid or f"{name}@{_text(meta, 'creationTimestamp') or ''}"
    owners = meta.get("ownerReferences") or ()
    if not isinstance(owners, list | tuple):
        raise Unreadable(f"{name}: ownerReferences is no list")
    labels = _map_at(meta, "labels")
    return Meta(
        namespace=_text(meta, "namespace") or "default",
        name=name,
        uid=uid,
        created_at=instant(meta.get("creationTimestamp")),
        deleting=meta.get("deletionTimestamp") is not None,
        labels={str(key): str(value) for key, value in labels.items()},
        owners=frozenset(str(one.get("uid")) for one in owners if isinstance(one, dict)),
    )


def instant(said: Any) -> datetime | None:
    """A time as the API writes it; 1970 stands for never.

    Raises:
        Unreadable: it is no time.
    """
    if said is None:
        return None
    try:
        at = datetime.fromisoformat(said)
        at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise Unreadable(f"{visible(str(said))[:80]!r} is no time") from error
    return None if at.year <= 1970 else at


def _conditions(status: Raw) -> dict[str, Condition]:
    found = {}
    for raw in _list(status, "conditions"):
        one = _map(raw, "condition")
        kind, word = _text(one, "type"), _text(one, "status")
        if kind is None or word is None:
            raise Unreadable("a condition without type or status")
        if word in ("True", "False"):
            found[kind] = Condition(
                word == "True",
                _text(one, "reason"),
                _long(one, "message"),
                instant(one.get("lastTransitionTime")),
            )
    return found


def _containers(status: Raw, key: str) -> Iterator[Container]:
    for raw in _list(status, key):
        one = _map(raw, "container")
        state, last = _map_at(one, "state"), _map_at(_map_at(one, "lastState"), "terminated")
        word = next((w for w in ("running", "terminated", "waiting") if w in state), None)
        now = _map_at(state, word) if word else {}
        yield Container(
            name=_text(one, "name") or "",
            state=word,
            reason=_text(now, "reason"),
            message=_long(now, "message"),
            exit_code=_number(now, "exitCode"),
            started_at=instant(now.get("startedAt")),
            finished_at=instant(now.get("finishedAt")),
            restarts=_number(one, "restartCount") or 0,
            last_exit_code=_number(last, "exitCode"),
            last_finished_at=instant(last.get("finishedAt")),
        )


def _template(spec: Raw) -> Template:
    containers = _list(spec, "containers")
    if not containers:
        return Template()
    first = _map(containers[0], "container")
    words = [str(word) for key in ("command", "args") for word in _list(first, key)]
    line = visible(mask(" ".join(words)), keep="\n")[:_COMMAND_CHARS]
    return Template(line or None, _text(first, "workingDir"))


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str | None:
    return next((labels[key] for key in keys if key in labels), None)


def _map(raw: Any, what: str) -> Raw:
    if not isinstance(raw, dict):
        raise Unreadable(f"a {what} that is no object")
    return raw


def _map_at(raw: Any, key: str) -> Raw:
    held = _map(raw, "record").get(key)
    if held is None:
        return {}
    return _map(held, key)


def _list(raw: Raw, key: str) -> list[Any]:
    held = raw.get(key)
    if held is None:
        return []
    if not isinstance(held, list):
        raise Unreadable(f"{key} is no list")
    return held


def _text(raw: Raw, key: str) -> str | None:
    held = raw.get(key)
    if held is None or held == "":
        return None
    if not isinstance(held, str):
        raise Unreadable(f"{key} is no text")
    return visible(held)


def _long(raw: Raw, key: str) -> str | None:
    held = raw.get(key)
    if held is None or held == "":
        return None
    return visible(mask(str(held)), keep="\n\t")[:_MESSAGE_CHARS]


def _number(raw: Raw, key: str) -> int | None:
    held = raw.get(key)
    if held is None:
        return None
    if not isinstance(held, int) or isinstance(held, bool):
        raise Unreadable(f"{key} is no number")
    return held
