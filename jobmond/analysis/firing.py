"""Rules over steps: at which steps one fires, in runs of neighbouring steps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

from jobmond.model.metrics import Column, RunSeries

Fired: TypeAlias = dict[str, Any] | None


@dataclass(slots=True)
class Run:
    """Steps `first` to `last` at which a rule fired without a logged step between them at which
    it did not. `evidence` is that of the first.
    """

    first: int
    last: int
    evidence: dict[str, Any]


def runs(series: RunSeries, fires: Callable[[int], Fired]) -> Iterator[Run]:
    """Runs among the steps that are to be judged."""
    run: Run | None = None
    for step in series.judged:
        evidence = fires(step)
        if evidence is None:
            if run is not None:
                yield run
            run = None
        elif run is None:
            run = Run(step, step, evidence)
        else:
            run.last = step
    if run is not None:
        yield run


def window_mean(column: Column, step: int, most: int, least: int) -> float | None:
    """The mean of up to `most` finite values logged before `step`; None with fewer than `least`."""
    values = [value for value in column.before(step, most) if isfinite(value)]
    return sum(values) / len(values) if len(values) >= least else None


def streak(column: Column, step: int, count: int, odd: Callable[[float], bool]) -> bool:
    """Whether `odd` holds at `step` and at the `count - 1` logged values before it."""
    value = column.at(step)
    if value is None or not odd(value):
        return False
    before = column.before(step, count - 1)
    return len(before) == count - 1 and all(map(odd, before))
