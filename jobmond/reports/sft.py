"""The SFT table."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobmond.reports.box import Column
from jobmond.reports.training import STEP, Number, trained
from jobmond.reports.view import View

_NUMBERS = (
    Number("Loss", "loss", 2, min_width=6),
    Number("Grad Norm", "grad_norm", 2, folds=1),
)


def lines(jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """The table of jobs that have metrics."""
    return trained(
        jobs,
        view,
        name=Column("Job", min_width=28, least=12),
        step=replace(STEP, min_width=7),
        numbers=(
            Number("Loss", "loss", 2, min_width=6),
            Number("Grad Norm", "grad_norm", 2, folds=1),
        ),
        trend=Column("Trend", min_width=33, least=10),
        readable=12,
    )
