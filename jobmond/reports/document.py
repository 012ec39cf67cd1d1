"""The status document: the one form in which jobs are shown, stored and sent."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from jobmond.analysis.grid import Cell, GridJob, Standing, rollup
from jobmond.analysis.objects import diagnosis_object, plain, signal_object
from jobmond.analysis.scores import shown_name
from jobmond.analysis.shaping import regime, rollouts_per_step
from jobmond.analysis.visible import visible
from jobmond.model.job import ClusterHealth, Job
from jobmond.model.observation import TaskCounts
from jobmond.model.outcome import SinkStanding
from jobmond.model.state import TERMINAL, Bucket, State
from jobmond.model.training import Training
from jobmond.model.trials import Bank, Trials
from jobmond.reports.folder import trial_fields, trial_metrics
from jobmond.reports.note import continued, note, open_signals, since_started_s
from jobmond.reports.times import instant

SCHEMA = 1
_BUCKETS = list(Bucket)
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_PROVED_FAILURE = frozenset({State.FAILED, State.OUT_OF_MEMORY, State.NODE_FAIL, State.TIMEOUT})


def status_document(
    jobs: Sequence[Job],
    clusters: Sequence[ClusterHealth],
    *,
    sinks: Iterable[SinkStanding] = (),
    daemon: Mapping[str, Any],
    now: datetime,
) -> dict[str, Any]:
    """The whole document, ready for `json.dumps`.

    `daemon` has `running host version last_sweep_at next_sweep_at`; instants may be datetimes.
    Where several incarnations share a ref the newest owns it and older ones show as `ref@birth`.
    """
    owners = _owners(jobs)
    shown = [
        job_object(job, now, older=owners[job.ref] is not job) for job in sorted(jobs, key=_place)
    ]
    return {
        "schema": SCHEMA,
        "generated_at": instant(now),
        "daemon": {key: plain(value) for key, value in daemon.items()},
        "clusters": [cluster_object(c) for c in sorted(clusters, key=lambda c: c.name)],
        "sinks": [sink_object(s) for s in sinks],
        "summary": summary(shown),
        "sft_grid": sft_grid(shown),
        "jobs": shown,
    }


def job_object(job: Job, now: datetime, *, older: bool = False) -> dict[str, Any]:
    """One job. `older` marks an incarnation whose ref belongs to a newer one by now."""
    facts = job.facts
    shown = {
        "ref": f"{job.ref}@{job.birth}" if older else job.ref,
        "cluster": job.cluster,
        "native_id": job.native_id,
        "kind": job.kind.value,
        "bucket": job.bucket.value,
        "type": job.type,
        "name": job.name,
        "run": job.run,
        "user": job.choices.user or facts.user,
        "owner": job.choices.owner,
        "labels": sorted(job.labels),
        "tracked": job.tracked,
        "stale": job.stale,
        "state": job.state.value,
        "native_state": job.native,
        "reason": facts.reason,
        "exit_code": facts.exit_code,
        "signal": facts.signal or None,
        "submitted_at": instant(facts.submitted_at),
        "started_at": instant(facts.started_at),
        "ended_at": instant(job.ended_at or facts.ended_at) if _over(job) else None,
        "seen_at": instant(job.seen_at),
        "elapsed_s": since_started_s(job, now),
        "time_limit_s": facts.time_limit_s,
        "start_estimate_at": instant(facts.start_estimate_at),
        "eta_s": _eta_s(job),
        "nodes": facts.nodes,
        "phase": _phase(job),
        "life": job.life,
        **_training(job),
        **_worked(job),
        "note": job.note or note(job),
        "successor": job.successor,
        "tasks": _tasks(facts.tasks),
        "signals": [signal_object(s) for s in open_signals(job)],
        "diagnosis": diagnosis_object(job.diagnosis),
        "agent_log": job.agent_log,
        "log": {
            "path": job.log.path or job.choices.log_path or facts.log_path,
            "status": job.log.status,
            "bytes": job.log.size_bytes,
            "error": job.log.error,
        },
    }
    if facts.message is not None:
        shown["message"] = facts.message
    if job.probe is not None:
        shown["probe"] = job.probe
    if facts.scores:
        shown["scores"] = [{"name": visible(n), "value": v} for n, v in facts.scores.items()]
    return shown if job.choices.session is None else {**shown, "session": job.choices.session}


def cluster_object(health: ClusterHealth) -> dict[str, Any]:
    """How a cluster answered; `remedy` is the command that helps where a person is needed."""
    return {
        "name": health.name,
        "kind": health.kind,
        "active": health.active,
        "status": health.status,
        "since": instant(health.since),
        "last_ok_at": instant(health.last_ok_at),
        "error": health.error,
        "remedy": health.remedy,
        "notes": health.notes,
        "logins_per_h": health.logins_per_h,
        "calls_per_h": health.calls_per_h,
        "log_bytes_per_h": health.log_bytes_per_h,
    }


def with_unused(standings: Iterable[SinkStanding], configured: Iterable[str]) -> list[SinkStanding]:
    """The configured sinks, those without any trouble too, then what waits for others."""
    known = {standing.name: standing for standing in standings}
    named = [known.pop(name, SinkStanding(name)) for name in configured]
    left = (s for s in known.values() if s.undelivered)
    return [*named, *(replace(s, configured=False) for s in left)]


def sink_object(sink: SinkStanding) -> dict[str, Any]:
    """How far the deliveries to a sink have come."""
    return {
        "name": sink.name,
        "configured": sink.configured,
        "undelivered": sink.undelivered,
        "retry_at": instant(sink.retry_at),
        "given_up": sink.given_up,
        "given_up_at": instant(sink.given_up_at),
        "last_error": sink.last_error,
    }


def summary(jobs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The aggregate over job objects; also for a filtered list of them."""
    return {
        "line": summary_line(jobs),
        "tracked": sum(1 for job in jobs if job["tracked"]),
        "by_state": dict(Counter(job["state"] for job in jobs)),
    }


def sft_grid(jobs: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The rollup of the SFT jobs among these job objects; None where they are no grid."""
    grid = rollup(
        GridJob(
            ref=job["ref"],
            run=job["run"],
            state=State(job["state"]),
            step=job.get("step"),
            max_step=job.get("max_step"),
            eta_s=job.get("eta_s"),
            rate_s_per_step=job.get("rate_s_per_step"),
        )
        for job in jobs
        if job["bucket"] == Bucket.SFT
    )
    if grid is None:
        return None
    return {
        "cells": len(grid.cells),
        "tally": {standing.value: grid.count(standing) for standing in Standing},
        "running": [_cell(cell) for cell in grid.running],
        "long_pole": None if grid.long_pole is None else _cell(grid.long_pole),
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "run": cell.run,
        "ref": cell.job.ref,
        "step": cell.job.step,
        "max_step": cell.job.max_step,
        "progress": _rounded(cell.progress),
        "eta_s": _rounded(cell.job.left_s),
    }


def summary_line(jobs: Sequence[Mapping[str, Any]]) -> str:
    """`2 of 4 completed (MMLU-Pro: 42.3%, GSM8K: 67.1%), 1 running, 1 pending`.

    Parts of nobody are left out; an end that a successor continues is no failure.
    """
    if not jobs:
        return "no jobs"
    count = Counter(_tally(job) for job in jobs)
    return _aggregate(count, _scores(job for job in jobs if job["state"] == State.COMPLETED))


def tasks_line(job: Mapping[str, Any]) -> str | None:
    """The same over the parts of one job (the tasks of an invocation); None without parts."""
    tasks = job.get("tasks")
    if not tasks:
        return None
    count: Counter[str] = Counter()
    for state, parts in tasks["by_state"].items():
        failed = state in _PROVED_FAILURE or state == State.LOST
        count["failed" if failed else str(state).lower()] += parts
    return _aggregate(count, _scores([job]))


def _aggregate(count: Counter[str], scored: Sequence[str]) -> str:
    scores = ", ".join(scored)
    head = f"{count['completed']} of {count.total()} completed"
    order = ("failed", "running", "pending", "restarted", "cancelled", "preempted", "unknown")
    parts = [f"{count[word]} {word}" for word in order if count[word]]
    return ", ".join([f"{head} ({scores})" if scores else head, *parts])


def _tally(job: Mapping[str, Any]) -> str:
    state = job["state"]
    if continued(state, job.get("successor"), f"{job['cluster']}/{job['native_id']}"):
        return "restarted"
    if state in _PROVED_FAILURE or state == State.LOST:
        return "failed"
    return str(state).lower()


def _scores(jobs: Iterable[Mapping[str, Any]]) -> list[str]:
    return [
        f"{score['name']}: {score['value']:.1f}%"
        for job in jobs
        for score in job.get("scores") or []
        if isinstance(score.get("value"), int | float)
    ]


def _phase(job: Job) -> str:
    """What the scheduler proves goes before what the log says."""
    if job.state is State.COMPLETED:
        return "done"
    if job.state in _PROVED_FAILURE and not continued(job.state, job.successor, job.ref):
        return "failed"
    if job.state is State.PENDING or (job.facts.started_at is None and not _ran(job)):
        return "queued"
    if job.training is not None and job.training.dialect is not None:
        return job.training.phase
    return _phase_of_trials(job)


def _phase_of_trials(job: Job) -> str:
    trials = job.work.trials if job.work is not None else None
    if trials is None or not trials.done:
        return "bring-up"
    return "finishing" if trials.all_done else "training"


def _ran(job: Job) -> bool:
    return job.state is State.RUNNING or job.training is not None


def _training(job: Job) -> dict[str, Any]:
    """What the log says of the training."""
    known = job.training or Training()
    shown = {
        "step": known.step,
        "max_step": known.max_step,
        "metrics": plain(known.metrics),
        "trend": known.trend,
    }
    if job.training is None:
        return shown
    return {
        **shown,
        "dialect": known.dialect,
        "rate_s_per_step": _rounded(known.rate_s_per_step),
        "resumed_from": known.resumed_from,
        "checkpoints": list(known.checkpoints),
        "behind_bytes": known.behind_bytes,
        **_shaping(known),
    }


def _worked(job: Job) -> dict[str, Any]:
    """What its trials say, beside and (where both know) instead of what the log does."""
    work = job.work
    if work is None:
        return {}
    shown: dict[str, Any] = {}
    if work.trials is not None:
        trials = work.trials
        logged = job.training.metrics if job.training is not None else {}
        shown = {
            "metrics": plain({**logged, **trial_metrics(trials)}),
            **trial_fields(trials),
            "model": trials.model,
            "benchmark": trials.benchmark,
            **({"scores": scores} if (scores := _headline(job, trials)) else {}),
        }
    if work.scores and "scores" not in shown:
        shown["scores"] = [{"name": visible(n), "value": v} for n, v in work.scores.items()]
    if work.bank is not None:
        shown["banked"] = _banked(job, work.bank)
    if work.infra:
        shown["infra"] = dict(work.infra)
    if work.trend is not None and not (job.training and job.training.trend):
        shown["trend"] = work.trend
    return shown


def _banked(job: Job, bank: Bank) -> dict[str, Any]:
    """Checkpoints on disk; `in_log` is whether the log names the highest of them too."""
    named = job.training.checkpoints if job.training is not None else ()
    return {
        "step": bank.step,
        "steps": list(bank.steps),
        "unfinished": list(bank.unfinished),
        "folder": visible(bank.folder) if bank.folder else None,
        "in_log": bank.step in named,
        "read_at": instant(bank.read_at),
        "error": bank.error,
    }


def _headline(job: Job, trials: Trials) -> list[dict[str, Any]]:
    """The score of an evaluation that is over: its harness's mean, in per cent."""
    mean = trials.mean_reward
    over = job.bucket is Bucket.EVAL and job.state is State.COMPLETED
    if not over or mean is None or not 0 <= mean <= 1:
        return []
    return [{"name": shown_name(trials.benchmark or job.run), "value": round(100 * mean, 4)}]


def _shaping(known: Training) -> dict[str, str]:
    """The reward regime, where the last reward and the number of rollouts tell it."""
    like = known.values if known.bucket is Bucket.RL else ()
    found = regime(known.metrics.get("reward"), rollouts_per_step(known.metrics), like=like)
    return {} if found is None else {"shaping": found.value}


def _rounded(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else float(f"{value:.6g}")


def _eta_s(job: Job) -> float | None:
    """Seconds until the last step, of a job that makes steps."""
    running = job.state is State.RUNNING and _phase(job) not in ("done", "failed")
    return _rounded(job.training.eta_s) if running and job.training is not None else None


def _over(job: Job) -> bool:
    return job.state in TERMINAL or job.state is State.UNKNOWN


def _tasks(tasks: TaskCounts | None) -> dict[str, Any] | None:
    if tasks is None:
        return None
    by_state = {state.value: n for state, n in tasks.by_state.items() if n}
    return {"total": tasks.total, "by_state": by_state, "failed": list(tasks.failed[:10])}


def _owners(jobs: Sequence[Job]) -> dict[str, Job]:
    owners: dict[str, Job] = {}
    for job in sorted(jobs, key=_age):
        owners[job.ref] = job
    return owners


def _age(job: Job) -> tuple[bool, datetime, int, int]:
    return (job.tracked, job.facts.submitted_at or _EARLIEST, job.life, job.id)


def _place(job: Job) -> tuple[int, bool, float, str]:
    """Buckets in the interface's order; in each what lives by ref, then the latest end first."""
    over = job.state in TERMINAL
    ended = (job.ended_at or job.added_at).timestamp() if over else 0.0
    return (_BUCKETS.index(job.bucket), over, -ended, job.ref)
