"""Jobs without numbers: those that fill their buffers, wait, or ended before the first step."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobmond.model.state import State
from jobmond.reports.box import Column
from jobmond.reports.times import span
from jobmond.reports.view import View, note_cell, state_cell

JOB = Column("Job", least=16, whole=32)
STATE = Column("State", least=7, whole=13)
ELAPSED = Column("Elapsed")
NOTE = Column("Note", least=8)


def filling(job: Mapping[str, Any]) -> bool:
    """Whether a job has no metrics yet, so that a table of metrics would say nothing of it."""
    return not (job.get("metrics") or job.get("scores")) and job.get("step") is None


def lines(jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """The buffer-filling table. How long a trainer has been coming up goes before the note."""
    rows = [_filling(job, view) for job in jobs]
    if view.brief:
        return view.table((JOB, STATE, ELAPSED, NOTE), rows)
    stepless = [[cells[0], None, *cells[1:]] for cells in rows]
    return view.table((JOB, Column("Step"), STATE, ELAPSED, NOTE), stepless)


def _filling(job: Mapping[str, Any], view: View) -> list[object]:
    *cells, note = row(job, view)
    coming_up = job["state"] == State.RUNNING and job.get("trend")
    return [*cells, f"{job['trend']}; {note}" if coming_up else note]


def row(job: Mapping[str, Any], view: View) -> list[object]:
    """Ref, state, elapsed and note."""
    return [job["ref"], state_cell(job, view), span(job.get("elapsed_s")), note_cell(job, view)]
