"""Values to the JSON objects people get. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobmond.analysis.mask import mask
from jobmond.analysis.objects import signal_object
from jobmond.desk.aim import ClusterInfo
from jobmond.desk.shelf import Found
from jobmond.model.job import ClusterHealth, Job
from jobmond.model.outcome import Followup, News, Signal, Transition
from jobmond.model.state import ClusterStatus
from jobmond.reports.status import NOT_ASKED
from jobmond.reports.times import instant


@dataclass(frozen=True, slots=True)
class Whole:
    """Everything the store knows about one job; `older`: a newer one owns its ref by now."""

    job: Job
    older: bool
    transitions: Sequence[Transition]
    lives: Sequence[Job]
    followups: Sequence[Followup]


def in_full(whole: Whole, base: Mapping[str, Any]) -> dict[str, Any]:
    """`base` (the job as `status` shows it) and what `status` has no room for.

    A command line may hold a password: it is masked.
    """
    job = whole.job
    return {
        **base,
        "birth": job.birth,
        "description": job.choices.description,
        "session": job.choices.session,
        "discovered": job.discovered,
        "added_at": instant(job.added_at),
        "first_seen_at": instant(job.first_seen_at),
        "proof": job.proof,
        "partition": job.facts.partition,
        "account": job.facts.account,
        "comment": job.facts.comment,
        "workdir": job.facts.workdir,
        "command": None if job.facts.command is None else mask(job.facts.command),
        "dependency": job.facts.dependency,
        "restarts": job.facts.restarts,
        "post_mortem": job.post_mortem.value,
        "past_signals": [_past(s) for s in job.signals if s.cleared_at is not None],
        "transitions": [_transition(t) for t in whole.transitions],
        "lives": [_life(life, job.id) for life in whole.lives],
        "entries": _entries(whole),
        "followups": [followup_row(f) for f in whole.followups],
    }


def _past(signal: Signal) -> dict[str, Any]:
    cleared = {"cleared_at": instant(signal.cleared_at)}
    return {**signal_object(signal), "opened_at": instant(signal.opened_at), **cleared}


def _transition(step: Transition) -> dict[str, Any]:
    return {
        "at": instant(step.at),
        "before": step.before,
        "after": step.after,
        "native": step.native,
        "correction": step.correction,
    }


def _life(job: Job, shown: int) -> dict[str, Any]:
    return {
        "ref": job.ref,
        "birth": job.birth,
        "life": job.life,
        "state": job.state,
        "native_state": job.native,
        "submitted_at": instant(job.facts.submitted_at),
        "started_at": instant(job.facts.started_at),
        "ended_at": instant(job.ended_at),
        "exit_code": job.facts.exit_code,
        "signal": job.facts.signal,
        "agent_log": job.agent_log,
        "shown": job.id == shown,
    }


def _entries(whole: Whole) -> list[str]:
    paths = [life.agent_log for life in (*whole.lives, whole.job)]
    return list(dict.fromkeys(path for path in paths if path))


def followup_row(entry: Followup) -> dict[str, Any]:
    """One thing owed."""
    return {
        "id": entry.id,
        "kind": entry.kind,
        "ref": entry.ref,
        "title": entry.title,
        "state": "held" if entry.state == "open" and entry.evidence.get("held") else entry.state,
        "opened_at": instant(entry.opened_at),
        "closed_at": instant(entry.closed_at),
        "closed_by": entry.closed_by,
        "verdict": entry.verdict,
        "note": entry.note,
        "evidence": dict(entry.evidence),
    }


def found_row(found: Found) -> dict[str, Any]:
    """One job that nobody registered."""
    facts = found.seen.facts
    return {
        "ref": found.ref,
        "cluster": found.cluster,
        "native_id": found.native_id,
        "kind": found.kind,
        "name": facts.name,
        "state": found.seen.state,
        "native_state": found.seen.native,
        "user": facts.user,
        "partition": facts.partition,
        "reason": facts.reason,
        "submitted_at": instant(facts.submitted_at),
        "started_at": instant(facts.started_at),
        "seen_at": instant(found.at),
    }


def event_row(news: News) -> dict[str, Any]:
    """One event, as the file sink has it."""
    return {**news.payload, "key": news.key}


def sweep_row(
    health: ClusterHealth, *, jobs: int, swept_at: datetime | None, now: datetime
) -> dict[str, Any]:
    """What the last sweep of a cluster answered, for a request that starts none.

    `changes` is null: the store does not count them by sweep.
    """
    age_s = None if swept_at is None else max(0, round((now - swept_at).total_seconds()))
    return {
        "name": health.name,
        "status": health.status,
        "jobs": jobs,
        "changes": None,
        "error": health.error,
        "remedy": health.remedy,
        "age_s": age_s,
    }


def with_unasked(
    healths: Sequence[ClusterHealth], clusters: Sequence[ClusterInfo], now: datetime
) -> list[ClusterHealth]:
    """The health of every configured cluster, in the configuration's order.

    One that no sweep has asked yet is `unreachable` and says so: anything better is a claim. What
    was known before a cluster was switched off, or on again, is no longer true.
    """
    known = {health.name: health for health in healths}
    return [_current(known.get(c.name), c, now) for c in clusters]


def _current(health: ClusterHealth | None, cluster: ClusterInfo, now: datetime) -> ClusterHealth:
    off = health is not None and health.status == ClusterStatus.INACTIVE
    if health is not None and off is not cluster.active:
        return health
    status = ClusterStatus.UNREACHABLE if cluster.active else ClusterStatus.INACTIVE
    return ClusterHealth(
        name=cluster.name,
        kind=cluster.kind,
        active=cluster.active,
        status=status,
        since=now,
        last_ok_at=None if health is None else health.last_ok_at,
        error=NOT_ASKED if cluster.active else None,
        notes=cluster.notes,
    )
