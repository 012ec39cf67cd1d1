"""What the tables of jobs that train share: numbers over steps, and how they go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobmond.reports.box import Column, least_width
from jobmond.reports.figures import metric, progress
from jobmond.reports.note import continued
from jobmond.reports.view import View, job_cell, state_cell, trend_cell

STEP = Column("Step")
_WORD = 16
_LONGEST_REF = 32


@dataclass(frozen=True, slots=True)
class Number:
    """A column with the last value of a metric, or of another `instead` of it.

    `folds` says how soon it leaves its column for the head of the trend where the table would be
    too wide: 1 first, 0 never.
    """

    title: str
    name: str
    decimals: int
    min_width: int = 0
    folds: int = 0
    instead: str | None = None

    def of(self, job: Mapping[str, Any]) -> str | None:
        found = metric(job, self.name, self.decimals)
        if found is None and self.instead is not None:
            return metric(job, self.instead, self.decimals)
        return found


def trained(
    jobs: Sequence[Mapping[str, Any]],
    view: View,
    *,
    name: Column,
    numbers: Sequence[Number],
    trend: Column,
    step: Column = STEP,
    readable: int = 16,
    marks: Sequence[str] = (),
) -> list[str]:
    """A table of job, step, numbers and trend. `marks` stand behind the jobs' names.

    Numbers leave their columns before the trend becomes narrower than `readable`.
    """
    marked = marks or [""] * len(jobs)
    longest = _whole(jobs, view)
    name = replace(name, whole=longest, least=min(longest, _WORD))
    for fold in range(max(number.folds for number in numbers) + 1):
        kept = [number for number in numbers if not 0 < number.folds <= fold]
        folded = [number for number in numbers if number not in kept]
        columns = [name, step, *(Column(n.title, n.min_width) for n in kept), trend]
        rows = [
            [
                job_cell(job, view, mark),
                progress(job.get("step"), job.get("max_step")),
                *(number.of(job) for number in kept),
                _headed(job, view, folded),
            ]
            for job, mark in zip(jobs, marked, strict=True)
        ]
        spacious = [*columns[:-1], replace(trend, least=readable)]
        if view.fit is None or least_width(spacious, rows, ascii_only=view.ascii_only) <= view.fit:
            break
    return view.table(columns, rows)


def _whole(jobs: Sequence[Mapping[str, Any]], view: View) -> int:
    """Refs stay whole; a name that is longer may go over lines."""
    if view.brief:
        return _WORD
    return min(_LONGEST_REF, max(len(view.safe(job["ref"])) for job in jobs))


def _headed(job: Mapping[str, Any], view: View, folded: Sequence[Number]) -> str:
    head = ", ".join(f"{number.title.lower()} {number.of(job) or '—'}" for number in folded)
    said = trend_cell(job, view)
    return f"{head}. {said}" if head and said != "—" else head or said


def restarted(jobs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that another of these jobs goes on from: it has taken their place in the table."""
    refs = {job["ref"] for job in jobs}
    return [
        job
        for job in jobs
        if job.get("successor") in refs
        and job["successor"] != job["ref"]
        and continued(job["state"], job["successor"], f"{job['cluster']}/{job['native_id']}")
    ]


def restart_line(job: Mapping[str, Any], view: View) -> str:
    """One line about a life that another has taken over."""
    return view.safe(f"{job['ref']}: {state_cell(job, view)}, goes on as {job['successor']}")
