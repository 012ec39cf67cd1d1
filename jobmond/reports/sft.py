"""The SFT table."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobmond.reports.box import Column
from jobmond.reports.figures import metric, progress
from jobmond.reports.view import View, job_cell, trend_cell

_COLUMNS = (
    Column("Job", min_width=28, least=10),
    Column("Step", min_width=7),
    Column("Loss", min_width=6),
    Column("Grad Norm"),
    Column("Trend", min_width=33, least=16),
)


def lines(jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """The table of jobs that have metrics."""
    return view.table(_COLUMNS, [_row(job, view) for job in jobs])


def _row(job: Mapping[str, Any], view: View) -> list[object]:
    return [
        job_cell(job, view),
        progress(job.get("step"), job.get("max_step")),
        metric(job, "loss", 2),
        metric(job, "grad_norm", 2),
        trend_cell(job, view),
    ]
