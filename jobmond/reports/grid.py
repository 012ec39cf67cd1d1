"""How far a grid of SFT runs has come, below its table."""

from collections.abc import Mapping
from typing import Any

from jobmond.reports.figures import progress
from jobmond.reports.times import span
from jobmond.reports.view import View


def lines(grid: Mapping[str, Any] | None, view: View) -> list[str]:
    """The tally and the long pole, then each running cell, the longest to go first."""
    if not grid:
        return []
    tally = grid["tally"]
    counts = [f"{tally[word]} {word}" for word in ("running", "pending", "done")]
    counts += [f"{tally['stopped']} stopped"] if tally.get("stopped") else []
    pole = grid.get("long_pole")
    named = f"; long pole {_cell(pole)}" if pole else ""
    told = view.wrapped(f"Grid of {grid['cells']} cells: {', '.join(counts)}{named}")
    for cell in grid["running"]:
        told += view.wrapped(f"  {_cell(cell)}", indent=4)
    return told


def _cell(cell: Mapping[str, Any]) -> str:
    share = cell.get("progress")
    steps = progress(cell.get("step"), cell.get("max_step")) or "no step yet"
    done = steps if share is None else f"{share:.0%} ({steps})"
    left = cell.get("eta_s")
    return f"{cell['run']} {done}" + (f", {span(left)} left" if left is not None else "")
