"""What a pod that belongs to no Job, or a Workload that somebody tracks by itself, amounts to."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from jobmond.backends.kubernetes.pods import Doing, attempts, doing, ended, log_place
from jobmond.backends.kubernetes.queueing import queued
from jobmond.backends.kubernetes.records import QUEUE, Happening, Pod, Workload
from jobmond.backends.kubernetes.verdict import in_words, signal_of, span_s
from jobmond.model.observation import Facts, Seen
from jobmond.model.state import TERMINAL, State


def pod_seen(pod: Pod, happenings: Sequence[Happening], *, now: datetime) -> Seen:
    """Raises Unreadable: a phase without a meaning here."""
    end = ended(pod)
    facts = _facts(pod)
    if end is None:
        found = Doing(State.RUNNING, "Terminating") if pod.meta.deleting else doing(pod, happenings)
        state = found.state
        words = in_words(state, found.reason, found.message)
        facts = replace(facts, reason=found.reason, message=found.message, progress=words)
    else:
        state = end.state
        facts = replace(
            facts,
            reason=end.reason,
            message=end.message,
            exit_code=end.exit_code,
            signal=signal_of(end.exit_code),
            ended_at=end.at,
            log_path=log_place(pod, end.container),
        )
    facts = replace(facts, elapsed_s=span_s(facts.started_at, facts.ended_at or now))
    return Seen(state, pod.phase, pod.meta.uid, facts, "pods")


def _facts(pod: Pod) -> Facts:
    began = [c.started_at for c in pod.containers if c.started_at]
    return Facts(
        name=pod.meta.name,
        partition=pod.meta.labels.get(QUEUE),
        workdir=pod.template.workdir,
        command=pod.template.command,
        submitted_at=pod.meta.created_at,
        started_at=min(began, default=None),
        time_limit_s=pod.deadline_s,
        nodes=pod.node,
        restarts=attempts(pod) or None,
        log_path=log_place(pod),
    )


def workload_seen(workload: Workload) -> Seen:
    """A Workload by its own conditions; what it queues for may be of any kind."""
    place = queued(workload)
    at = workload.conditions["Finished"].at if place.state in TERMINAL else None
    facts = Facts(
        name=workload.meta.name,
        partition=workload.queue,
        reason=place.reason,
        message=place.message,
        submitted_at=workload.meta.created_at,
        ended_at=at,
        held=place.held,
    )
    return Seen(place.state, place.native, workload.meta.uid, facts, "workloads")
