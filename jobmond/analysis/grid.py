"""How far a grid of runs has come: its cells, however often each was queued.

Source: OpenThoughts-Agent, monitor-job-tables notes (grid-completion rollup).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from jobmond.model.state import State


class Standing(StrEnum):
    """What a cell is doing. Stopped: it ended without being done, and nothing continues it."""

    RUNNING = "running"
    PENDING = "pending"
    DONE = "done"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class GridJob:
    """One job of a grid; jobs of one `run` are copies or lives of one cell."""

    ref: str
    run: str
    state: State
    step: int | None = None
    max_step: int | None = None
    eta_s: float | None = None
    rate_s_per_step: float | None = None

    @property
    def left_s(self) -> float | None:
        """How long its remaining steps take."""
        if self.eta_s is not None:
            return max(0.0, self.eta_s)
        if self.rate_s_per_step is None or self.left_steps is None:
            return None
        return self.left_steps * self.rate_s_per_step

    @property
    def left_steps(self) -> int | None:
        """How many steps remain."""
        if self.step is None or self.max_step is None:
            return None
        return max(0, self.max_step - self.step)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, by the job that says most about it; `progress` is from 0 to 1."""

    run: str
    standing: Standing
    job: GridJob

    @property
    def progress(self) -> float | None:
        step, total = self.job.step, self.job.max_step
        if step is None or not total or total < 0:
            return None
        return min(1.0, max(0, step) / total)


@dataclass(frozen=True, slots=True)
class Rollup:
    """A grid. `long_pole` gates its completion; None where nothing is left or nothing known."""

    cells: tuple[Cell, ...]
    long_pole: Cell | None

    def count(self, standing: Standing) -> int:
        """How many cells stand so."""
        return sum(1 for cell in self.cells if cell.standing is standing)

    @property
    def running(self) -> list[Cell]:
        """Running cells, the longest to go first."""
        found = [cell for cell in self.cells if cell.standing is Standing.RUNNING]
        return sorted(found, key=_length, reverse=True)


def rollup(jobs: Iterable[GridJob]) -> Rollup | None:
    """The grid that these jobs are; None for fewer than two cells, which are no grid."""
    by_run: dict[str, list[GridJob]] = {}
    for job in jobs:
        by_run.setdefault(job.run, []).append(job)
    if len(by_run) < 2:
        return None
    cells = tuple(_cell(run, copies) for run, copies in sorted(by_run.items()))
    left = [c for c in cells if c.standing in (Standing.RUNNING, Standing.PENDING)]
    known = [cell for cell in left if _length(cell) > (False, -1, -1)]
    return Rollup(cells, max(known, key=_length, default=None))


def _length(cell: Cell) -> tuple[bool, float, int]:
    """Time first: steps of different cells are not comparable, only better than nothing."""
    seconds, steps = cell.job.left_s, cell.job.left_steps
    return (seconds is not None, -1 if seconds is None else seconds, -1 if steps is None else steps)


def _cell(run: str, copies: Sequence[GridJob]) -> Cell:
    running = [job for job in copies if job.state is State.RUNNING]
    if running:
        return Cell(run, Standing.RUNNING, max(running, key=_reached))
    told = max(copies, key=_reached)
    pending = any(job.state is State.PENDING for job in copies)
    done = [job for job in copies if job.state is State.COMPLETED]
    # A copy that waits behind a life which ended early, though well, still has steps to make.
    if done and not (pending and told.left_steps):
        return Cell(run, Standing.DONE, max(done, key=_reached))
    return Cell(run, Standing.PENDING if pending else Standing.STOPPED, told)


def _reached(job: GridJob) -> int:
    return -1 if job.step is None else job.step
