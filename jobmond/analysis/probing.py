"""Deep probes: when one is owed, and what ends that."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from jobmond.analysis.owed_news import whose
from jobmond.analysis.owing import closed
from jobmond.analysis.tried import DEEP_PROBE, Tried, plain_setting, probed, same, setting_of
from jobmond.model.job import Job
from jobmond.model.outcome import Followup, Signal
from jobmond.model.setting import Setting
from jobmond.model.state import State

DUE = "due"


@dataclass(frozen=True, slots=True)
class Probing:
    """What a sweep concludes of one job's setting; `standing` is for `Job.probe`."""

    standing: str | None = None
    opened: tuple[Followup, ...] = ()
    closed: tuple[Followup, ...] = ()


NOT_PROBED = Probing()


def untested(job: Job, tried: Tried) -> Setting | None:
    """The job's setting where neither a run nor a person has shown that it works."""
    setting = setting_of(job)
    return setting if setting is not None and not tried.tested(setting) else None


def probing(job: Job, signals: Sequence[Signal], tried: Tried, *, now: datetime) -> Probing:
    """One follow-up a setting: opened when the rule speaks first, closed by a completed run, or by
    the label that says that somebody has looked.
    """
    setting = setting_of(job)
    if setting is None:
        return Probing(job.probe)
    signal = next((s for s in signals if s.rule == DEEP_PROBE and s.cleared_at is None), None)
    note = None
    if job.state is State.COMPLETED:
        note = f"a run of its setting completed: {job.ref}"
    elif "tested" in job.labels:
        note = f"{job.ref} is labelled as tested"
    mine = [one for one in tried.probes if one.state == "open" and same(setting, probed(one))]
    if note is not None:
        return Probing(tried.verdict(setting), closed=tuple(closed(o, note, now=now) for o in mine))
    if signal is None:
        return Probing(tried.verdict(setting) or (job.probe if job.stale else None))
    if tried.owed(setting):
        return Probing(DUE)
    evidence = {"job": whose(job), "setting": plain_setting(setting)}
    return Probing(DUE, (Followup(0, DEEP_PROBE, job.ref, signal.title, now, evidence=evidence),))


def after(tried: Tried, step: Probing) -> Tried:
    """What is known for the jobs that come after one, in the same sweep."""
    if not (step.opened or step.closed):
        return tried
    done = {one.word for one in step.closed}
    kept = [one for one in tried.probes if one.state != "open" or one.word not in done]
    return replace(tried, probes=(*kept, *step.closed, *step.opened))
