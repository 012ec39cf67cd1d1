"""Recorded records of a Kubernetes cluster, made whole so that an API server could list them.

What was recorded is the interesting part of each object (often only its status); names, uids and
labels are added here.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from tests import kube

FOLDER = Path(__file__).parent / "transcripts" / "kubernetes"
LATER = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)  # when everything recorded is history


@cache
def verdicts() -> dict[str, dict[str, Any]]:
    """Expected verdicts by record."""
    held = json.loads((FOLDER / "verdicts.json").read_text())
    return {key: one for key, one in held.items() if not one.get("not_a_job")}


def of_kind(*kinds: str) -> list[str]:
    return [key for key, one in verdicts().items() if one["kind"] in kinds]


def load(key: str) -> Any:
    """What a key of the verdicts names."""
    name, _, item = key.partition("#")
    held = json.loads((FOLDER / name).read_text())
    if not item:
        return held
    if isinstance(held, dict):
        return held[item]
    return next(one for at, one in held if str(at) == item)


def state_of(key: str) -> kube.ApiState:
    """An API server that holds the record as `ml/train`."""
    kind, held = verdicts()[key]["kind"], load(key)
    if kind == "record":
        return _record(held)
    if kind == "job_status":
        return serving(kube.job(status=_plain(held)))
    if kind == "pod_status":
        return serving(pods=[_bare(held)])
    if kind == "crd":
        return _workload(held)
    raise AssertionError(kind)


def under_job(key: str, status: dict[str, Any]) -> kube.ApiState:
    """The pod of a pod's record below a Job with this status."""
    return serving(kube.job(status=status), [kube.pod(status=load(key))])


def joined(key: str) -> kube.ApiState:
    """A Job's record with the pod's record that belongs to it."""
    return under_job(verdicts()[key]["joined"]["with"], load(key))


def history(name: str) -> Iterator[tuple[float, kube.ApiState]]:
    """A bare pod's states, one after the other."""
    for at, said in load("real_history.json")[name]:
        entry = said[1:] if said[0] == "DELETED" else said
        yield at, serving(pods=[_bare_from(entry)])


def serving(
    job: dict[str, Any] | None = None, pods: list[dict[str, Any]] | None = None
) -> kube.ApiState:
    state = kube.ApiState()
    if job is not None:
        state.put("jobs", job)
    state.put("pods", *(pods or []))
    return state


def _plain(status: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in status.items() if value is not None}


def _bare(status: dict[str, Any]) -> dict[str, Any]:
    return kube.pod("train", status, of=None)


def _bare_from(said: list[Any]) -> dict[str, Any]:
    status, deleting = _compact(said)
    pod = _bare(status)
    if deleting:
        pod["metadata"]["deletionTimestamp"] = "2026-11-29T16:30:00Z"
    return pod


def _record(held: dict[str, Any]) -> kube.ApiState:
    if "job" not in held:  # a Job alone, while it is deleted
        job = kube.job(status=held["status"])
        job["metadata"]["deletionTimestamp"] = held["deletionTimestamp"]
        return serving(job)
    said = held["job"]
    status = said.get("status", {}) if "metadata" in said else said
    spec = {"suspend": said.get("spec.suspend", False)}
    if "completedIndexes" in status:
        spec |= {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    job = kube.job(status=status, **spec)
    state = serving(job, [_pod(one) for one in held["pods"]])
    for number, one in enumerate(held.get("events") or []):
        # Events of the server's start, and of earlier jobs of that name: none is about this one.
        about = kube.event(f"other-{number}", one["reason"], one["message"], one["type"])
        state.put("events", about)
    return state


def _pod(said: Any) -> dict[str, Any]:
    if isinstance(said, list):
        status, deleting = _compact(said[1])
        pod = kube.pod(said[0], status)
        if deleting:
            pod["metadata"]["deletionTimestamp"] = "2026-11-29T16:34:00Z"
        return pod
    meta = said.get("metadata", said)
    pod = kube.pod(meta["name"], said["status"])
    if meta.get("deletionTimestamp"):
        pod["metadata"]["deletionTimestamp"] = meta["deletionTimestamp"]
    index = meta["name"].rpartition("-")[0].rpartition("-")[2]
    if index.isdecimal():
        pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = index
    return pod


def _compact(said: list[Any]) -> tuple[dict[str, Any], bool]:
    phase, reason, deleting, init, containers, _ = said
    status: dict[str, Any] = {"phase": phase}
    if reason:
        status["reason"] = reason
    if init:
        status["initContainerStatuses"] = [_container(one) for one in init]
    if containers:
        status["containerStatuses"] = [_container(one) for one in containers]
    return status, deleting


def _container(said: list[Any]) -> dict[str, Any]:
    name, (word, reason, code), restarts = said
    held: dict[str, Any] = {}
    if reason is not None:
        held["reason"] = reason
    if code is not None:
        held["exitCode"] = code
    return {"name": name, "state": {word: held}, "restartCount": int(restarts.partition("=")[2])}


def _workload(held: dict[str, Any]) -> kube.ApiState:
    state = kube.ApiState(kueue=True)
    held["metadata"]["name"] = "train"
    state.put("workloads", held)
    return state
