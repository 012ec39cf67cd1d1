"""What a job went through, in the order in which it happened."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from jobmond.model.job import Job
from jobmond.model.outcome import Transition
from jobmond.reports.markdown import code, time

_SHOWN = 40  # rows at most: the first ones, and the last


def timeline(job: Job, transitions: Sequence[Transition]) -> Iterable[str]:
    """A section of Markdown. What jobmond saw stands at the time of the look, what the source
    says at its own.
    """
    happened = sorted(_happened(job, transitions), key=lambda row: row[0])
    rows = [f"- {time(at)} {what}" for at, what in happened]
    if len(rows) > _SHOWN:
        half = _SHOWN // 2
        left = f"- … {len(rows) - 2 * half} more"
        rows = [*rows[:half], left, *rows[-half:]]
    return ["## Timeline", "", *rows, ""]


def _happened(job: Job, transitions: Sequence[Transition]) -> Iterable[tuple[datetime, str]]:
    facts = job.facts
    for at, what in (
        (facts.submitted_at, "submitted"),
        (facts.started_at, "started"),
        (job.log.mtime_at, "last written to its log"),
        (facts.ended_at, "ended"),
    ):
        if at is not None:
            yield at, what
    for step in transitions:
        seen = f"seen: {step.before.value} →" if step.before else "first seen:"
        corrected = " (correction)" if step.correction else ""
        yield step.at, f"{seen} {step.after.value} ({code(step.native)}){corrected}"
    for signal in job.signals:
        if signal.opened_at is not None:
            yield signal.opened_at, f"signal {signal.rule}: {code(signal.title)}"
        if signal.cleared_at is not None:
            yield signal.cleared_at, f"signal {signal.rule} cleared"
