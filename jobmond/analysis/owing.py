"""What a person owes after a sweep, and what is no longer owed.

Each is opened by an edge and only once. Source: OpenThoughts-Agent, monitor-job-tables notes
(which cleanup follows which job; a cleanup is not done until the tree is gone and its inodes are
free again; traces that a time limit strands; zombies).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from jobmond.analysis.owed_news import whose
from jobmond.analysis.settle import Move
from jobmond.model.job import Job
from jobmond.model.observation import Read, Reading
from jobmond.model.outcome import Followup, Signal
from jobmond.model.state import TERMINAL, Bucket, State
from jobmond.model.trials import Remains

CLEANUP, CONSOLIDATE, ZOMBIE = "cleanup", "consolidate", "zombie"
_BY_SIGNAL = {"stranded-traces": CONSOLIDATE, "zombie": ZOMBIE}
_PROCEDURES = {
    Bucket.SFT: "sft-job-cleanup",
    Bucket.DATAGEN: "datagen-job-cleanup",
    Bucket.EVAL: "eval-agentic-cleanup",
}
MISMATCH = "completion-mismatch"
CLOSER = "jobmond"


def procedure(job: Job) -> str | None:
    """The cleanup that fits a job, by bucket and flavour; None where there is none."""
    if job.bucket is Bucket.RL:
        agentic = "agentic" in job.labels and "standard" not in job.labels
        return "rl-agentic-job-cleanup" if agentic else "rl-standard-job-cleanup"
    return _PROCEDURES.get(job.bucket)


def opened(
    move: Move, job: Job, signals: Iterable[Signal], *, now: datetime
) -> tuple[Followup, ...]:
    """What this sweep's edges open. `signals` are those that were raised just now.

    A cleanup of a job whose completion is in doubt is held: what it would remove is the evidence.
    """
    found = [
        Followup(0, kind, job.ref, signal.title, now, evidence=_about(job))
        for signal in signals
        if (kind := _BY_SIGNAL.get(signal.rule)) is not None
    ]
    due = procedure(job)
    over = move.transition is not None and move.restarted_as is None and not move.silent
    if due is not None and over and job.state is State.COMPLETED:
        doubt = _doubt(job)
        held = {"held": doubt} if doubt else {}
        title = _cleanup(job, due, doubt)
        found.append(Followup(0, CLEANUP, job.ref, title, now, evidence={**_about(job), **held}))
    return tuple(found)


def _cleanup(job: Job, due: str, doubt: str | None) -> str:
    if doubt is not None:
        return f"look first ({doubt}), then {due}"
    tree = _about(job).get("path")
    return f"{due}: remove the trial tree {tree}" if tree else f"{due}: no trial tree is known"


def _doubt(job: Job) -> str | None:
    """Why it may not have done all that it says."""
    return next((s.title for s in job.signals if s.rule == MISMATCH and s.cleared_at is None), None)


def _about(job: Job) -> dict[str, Any]:
    path = job.work.tree if job.work is not None else None
    return {"job": whose(job), **({"path": path} if path else {})}


def fresh(opened: Iterable[Followup], owed: Iterable[Followup]) -> list[Followup]:
    """Of what is to be opened, that which is not open already."""
    standing = {one.word for one in owed}
    return [one for one in opened if one.word not in standing]


def ended(job: Job, owed: Iterable[Followup], *, now: datetime) -> tuple[Followup, ...]:
    """What a job's end closes: nobody need cancel a zombie that is over."""
    if job.state not in TERMINAL:
        return ()
    mine = (one for one in owed if one.kind == ZOMBIE and one.ref == job.ref)
    return tuple(closed(one, f"the job is {job.state}", now=now) for one in mine)


def closed(one: Followup, note: str, *, now: datetime, **evidence: Any) -> Followup:
    """Closed by nobody's hand."""
    return replace(
        one,
        state="closed",
        closed_at=now,
        closed_by=CLOSER,
        note=note,
        evidence={**one.evidence, **evidence},
    )


def owed_paths(owed: Iterable[Followup], most: int = 50) -> tuple[str, ...]:
    """Trees whose removal is waited for, the oldest first."""
    paths = (one.evidence.get("path") for one in owed if one.kind == CLEANUP)
    return tuple(dict.fromkeys(path for path in paths if path))[:most]


def verified(
    owed: Sequence[Followup], remains: Mapping[str, Reading[Remains]], *, now: datetime
) -> tuple[tuple[Followup, ...], tuple[Followup, ...]]:
    """Cleanups of which something new is known, and those that are done.

    A tree counts as gone only on the file system it was seen on: one that is not mounted holds
    nothing either.
    """
    noted, gone = [], []
    for one in owed:
        reading = remains.get(str(one.evidence.get("path")))
        if one.kind != CLEANUP or not isinstance(reading, Read):
            continue
        seen, mount = reading.value, one.evidence.get("mount")
        if seen.there and mount is None:
            evidence = {
                **one.evidence,
                "mount": seen.mount,
                "inodes_free_before": seen.inodes_free,
            }
            noted.append(replace(one, evidence=evidence))
        elif not seen.there and mount is not None and seen.mount == mount:
            gone.append(_done(one, seen, now))
    return tuple(noted), tuple(gone)


def _done(one: Followup, seen: Remains, now: datetime) -> Followup:
    before = one.evidence.get("inodes_free_before")
    note = (
        f"the tree is gone; free inodes {_count(before)} before, {_count(seen.inodes_free)} after"
    )
    return closed(one, note, now=now, inodes_free_after=seen.inodes_free)


def _count(inodes: object) -> str:
    return "unknown" if inodes is None else str(inodes)
