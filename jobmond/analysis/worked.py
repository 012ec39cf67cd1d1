"""What a sweep learns of a job's trials, engine and traces, and what of it is kept."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

from jobmond.analysis.engine import engine, exported_rows
from jobmond.analysis.evidence import minutes
from jobmond.analysis.visible import readable
from jobmond.model.job import Job
from jobmond.model.observation import Absent, LogTail, NotApplicable, Read, Reading, Unavailable
from jobmond.model.state import Bucket, State
from jobmond.model.trials import Engine, TreeNews, Trials, Work

T = TypeVar("T")

IDLE_S = 600.0
QUIET = timedelta(minutes=60)
_SLOW = timedelta(minutes=30)
_NOT_ASKED = NotApplicable()
_TRIALLED = (Bucket.EVAL, Bucket.DATAGEN)


@dataclass(frozen=True, slots=True)
class InfraLines:
    """Lines by which a cluster's logs show that a check holds (`holds`) or fails (`fails`), by
    the name of the check; the last such line of a log decides.
    """

    holds: Mapping[str, Sequence[re.Pattern[str]]] = field(default_factory=dict)
    fails: Mapping[str, Sequence[re.Pattern[str]]] = field(default_factory=dict)

    def checks(self, window: str) -> dict[str, bool | None]:
        """Each check that has lines; None where the window holds none of them."""
        found: dict[str, bool | None] = dict.fromkeys([*self.holds, *self.fails])
        for line in window.splitlines():
            for verdict, lines in ((True, self.holds), (False, self.fails)):
                for name, shapes in lines.items():
                    if any(shape.search(line) for shape in shapes):
                        found[name] = verdict
        return found


NO_LINES = InfraLines()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What rules see of one sweep's look."""

    trials: Reading[Trials] = _NOT_ASKED
    engine: Reading[Engine] = _NOT_ASKED
    exported: Reading[int] = _NOT_ASKED


def worked(
    job: Job,
    tree: Reading[TreeNews],
    log: Reading[LogTail],
    *,
    now: datetime,
    lines: InfraLines = NO_LINES,
) -> tuple[Work | None, Evidence]:
    """The job's work after a look, and the evidence of this look alone.

    What could not be fetched leaves what was known, with the reason.
    """
    seen = _evidence(job, tree, log, now=now)
    if isinstance(tree, NotApplicable) and job.bucket not in _TRIALLED:
        return job.work, seen
    work = replace(job.work or Work(), error=tree.why if isinstance(tree, Unavailable) else None)
    if isinstance(tree, Read):
        work = _with_trials(work, tree.value, now)
    if isinstance(seen.engine, Read):
        work = replace(work, engine=seen.engine.value)
    if isinstance(seen.exported, Read):
        work = replace(work, exported=seen.exported.value)
    if job.bucket is Bucket.EVAL and (isinstance(log, Read) or isinstance(tree, Read)):
        said = lines.checks(_text(log.value) if isinstance(log, Read) else "")
        infra = {**said, **_checks(job, seen, now=now)}
        work = replace(work, infra=infra)
    if work == Work():
        return job.work, seen
    return replace(work, trend=_trend(job, work, now=now)), seen


def _with_trials(work: Work, news: TreeNews, now: datetime) -> Work:
    recent = news.trials.recent
    passed = sum(trial.reward is not None and trial.reward > 0 for trial in recent)
    return replace(
        work,
        tree=news.path,
        trials=replace(news.trials, recent=()),
        recent_done=len(recent),
        recent_passed=passed,
        read_at=now,
    )


def _evidence(
    job: Job, tree: Reading[TreeNews], log: Reading[LogTail], *, now: datetime
) -> Evidence:
    trials: Reading[Trials]
    trials = Read(tree.value.trials, tree.at) if isinstance(tree, Read) else tree
    if job.bucket not in _TRIALLED:
        return Evidence(trials)
    if not isinstance(log, Read):
        silent: Unavailable | Absent | NotApplicable = log
        return Evidence(trials, silent, silent)
    window = _text(log.value)
    age_s = max(0.0, (now - log.value.mtime_at).total_seconds())
    said = engine(window, age_s=age_s)
    before = (job.work.exported or 0) if job.work is not None else 0
    return Evidence(
        trials,
        Read(said, log.at) if said is not None else _NOT_ASKED,
        Read(max(before, exported_rows(window)), log.at),
    )


def _text(tail: LogTail) -> str:
    return readable(tail.tail).replace("\r", "\n")


def _checks(job: Job, seen: Evidence, *, now: datetime) -> dict[str, bool | None]:
    """Whether the engine answers and trials get on; None where it cannot be told."""
    return {"engine": _engine_works(seen), "trials": _trials_progress(job, seen, now=now)}


def _engine_works(seen: Evidence) -> bool | None:
    if not isinstance(seen.engine, Read):
        return None
    said = seen.engine.value
    if said.idle_s is not None and said.idle_s >= IDLE_S and not said.answered_after_idle:
        return False
    if said.answered or said.idle_s == 0:
        return True
    return False if said.refused else None


def _trials_progress(job: Job, seen: Evidence, *, now: datetime) -> bool | None:
    if not isinstance(seen.trials, Read):
        return None
    trials = seen.trials.value
    since = [at for at in (trials.last_result_at, job.facts.started_at) if at is not None]
    if not since or trials.all_done:
        return True if trials.done else None
    quiet = now - max(since)
    if quiet >= QUIET:
        return False
    return True if trials.last_result_at and now - trials.last_result_at < QUIET else None


def _trend(job: Job, work: Work, *, now: datetime) -> str | None:
    """How it goes in a few words."""
    trials = work.trials
    if trials is None or job.state is not State.RUNNING:
        return None
    last, count = trials.last_result_at, trials.jobs_running
    if work.error is not None:
        said = f"trials not read: {work.error}"
    elif trials.all_done:
        said = "all trials done"
    elif last is not None and now - last >= _SLOW:
        said = f"last trial ended {minutes(now - last)} ago"
    elif trials.chunks_total is not None:
        said = f"{count} chunk{'' if count == 1 else 's'} running"
    elif trials.done == 0:
        said = f"{trials.running} trials begun, none ended"
    else:
        said = "healthy" if job.bucket is Bucket.EVAL else f"{trials.running} trials running"
    return said
