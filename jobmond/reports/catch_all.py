"""The Catch-all list: what is none of the four kinds, a line a job."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobmond.reports.box import Column
from jobmond.reports.buffer import ELAPSED, JOB, NOTE, STATE, row
from jobmond.reports.view import View


def lines(jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """The list; without the type where it should be brief."""
    rows = [row(job, view) for job in jobs]
    if view.brief:
        return view.table((JOB, STATE, ELAPSED, NOTE), rows)
    typed = [[cells[0], job["type"], *cells[1:]] for cells, job in zip(rows, jobs, strict=True)]
    return view.table((JOB, Column("Type", least=6), STATE, ELAPSED, NOTE), typed)
