"""The RL table."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobmond.reports.box import Column
from jobmond.reports.figures import metric, progress
from jobmond.reports.view import View, job_cell, trend_cell

_BRIEF = (
    Column("Job", min_width=23, least=10),
    Column("Step"),
    Column("Reward"),
    Column("Policy Loss"),
    Column("Grad Norm"),
    Column("Trend", least=16),
)


def lines(jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """The table of jobs that have metrics."""
    return view.table(_BRIEF, [_row(job, view) for job in jobs])


def _row(job: Mapping[str, Any], view: View) -> list[object]:
    return [
        job_cell(job, view),
        progress(job.get("step"), job.get("max_step")),
        metric(job, "reward", 3),
        metric(job, "policy_loss", 4),
        metric(job, "grad_norm", 3),
        trend_cell(job, view),
    ]
