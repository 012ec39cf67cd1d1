"""The Datagen table."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobmond.reports.box import Column
from jobmond.reports.figures import metric, progress
from jobmond.reports.view import View, job_cell, trend_cell

_COLUMNS = (
    Column("Datagen run", min_width=27, least=12, whole=24),
    Column("Chunks", min_width=12),
    Column("Trials", min_width=7),
    Column("avg_turns"),
    Column("Mean"),
    Column("exc%"),
    Column(" Trend", min_width=24, least=16),
)
# The label that names the row of a tracking sheet: `tracker-42`, `row=42`.
_TRACKER_ROW = re.compile(r"(?:tracker(?:[-_ ]row)?|row)[-=:_#]#?(\w{1,20})")


def lines(jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """The table of jobs that have metrics."""
    return view.table(_COLUMNS, [_row(job, view) for job in jobs])


def _row(job: Mapping[str, Any], view: View) -> list[object]:
    chunks = progress(_whole(job, "chunks_done"), _whole(job, "chunks_total"))
    row = tracker_row(job.get("labels") or ())
    run = job_cell(job, view)
    return [
        run if row is None else f"{run} (tracker row #{row})",
        None if chunks is None else f"{chunks} done",
        trials_cell(_whole(job, "trials_done")),
        metric(job, "avg_turns", 1),
        metric(job, "mean_reward", 2),
        share_cell(job, "exception_fraction"),
        trend_cell(job, view),
    ]


def tracker_row(labels: Iterable[str]) -> str | None:
    """The tracker row that a label names."""
    found = (_TRACKER_ROW.fullmatch(label) for label in sorted(labels))
    return next((one[1] for one in found if one), None)


def trials_cell(done: int | None) -> str | None:
    """A number of trials, from a thousand on in thousands."""
    if done is None:
        return None
    return str(done) if done < 1000 else f"~{done / 1000:.1f}k"


def share_cell(job: Mapping[str, Any], name: str) -> str | None:
    """A share in whole per cent; only none of them is 0%."""
    value = (job.get("metrics") or {}).get(name)
    if not isinstance(value, int | float):
        return None if value is None else str(value)
    return "<1%" if 0 < value < 0.005 else f"{value:.0%}"


def _whole(job: Mapping[str, Any], name: str) -> int | None:
    value = (job.get("metrics") or {}).get(name)
    return int(value) if isinstance(value, int | float) else None
