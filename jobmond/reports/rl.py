"""The RL table."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobmond.analysis.shaping import Regime, marks
from jobmond.reports.box import Column
from jobmond.reports.training import Number, trained
from jobmond.reports.view import View

_BRIEF = (
    Number("Reward", "reward", 3, folds=4),
    Number("Policy Loss", "policy_loss", 4, folds=2),
    Number("Grad Norm", "grad_norm", 3, folds=3),
)
_FULL = (
    *_BRIEF,
    Number("Entropy", "entropy", 3, folds=1),
    Number("Log-ratio", "log_ratio_abs_mean", 4, folds=1, instead="policy/tis/log_ratio_abs_mean"),
)


def lines(jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """The table of jobs that have metrics. Where the width forbids it, numbers stand at the head
    of the trend, first those without which a collapse cannot be told.
    """
    regimes = marks([_regime(job) for job in jobs])
    return trained(
        jobs,
        view,
        name=Column("Job", min_width=23, least=12),
        numbers=_BRIEF if view.brief else _FULL,
        trend=Column("Trend", least=10, whole=16),
        marks=[f" ({regime})" if regime else "" for regime in regimes],
    )


def _regime(job: Mapping[str, Any]) -> Regime | None:
    word = job.get("shaping")
    return Regime(word) if word in set(Regime) else None
