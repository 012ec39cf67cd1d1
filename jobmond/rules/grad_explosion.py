"""A gradient out of all proportion."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isinf, isnan

from jobmond import registry
from jobmond.analysis.firing import Fired, runs, streak, window_mean
from jobmond.model.metrics import RunSeries
from jobmond.model.outcome import Signal
from jobmond.model.state import Severity
from jobmond.ports import Case


@registry.rules.plugin("grad-explosion")
@dataclass(frozen=True, slots=True)
class GradExplosion:
    """Large by itself and against what was usual, so that a rough start is none."""

    grad_norm_max: float = 100.0
    factor: float = 5.0
    infinite_steps: int = 2
    window: int = 10
    window_min: int = 5

    id = "grad-explosion"
    source = (
        "Hugging Face Trainer runs with a learning rate out of range (norm before clipping passes "
        "100 within 20 steps); ProRL-Agent-Server issue 40 (norm 2.9e9)"
    )

    def judge(self, case: Case) -> Iterable[Signal]:
        series = case.series
        if series is None:
            return
        for run in runs(series, lambda step: self._evidence(series, step)):
            yield Signal(
                rule=self.id,
                severity=Severity.ALARM,
                title=f"gradient explosion at step {run.first}: "
                f"grad norm {run.evidence['grad_norm']:.3g}",
                evidence=run.evidence,
                action="inspect",
                step=run.first,
                last_step=run.last,
            )

    def _evidence(self, series: RunSeries, step: int) -> Fired:
        column = series.column("grad_norm")
        value = column.at(step)
        if value is None or isnan(value):
            return None
        if isinf(value):
            # One overflow is what a loss scaler lives on.
            return (
                {"grad_norm": value} if streak(column, step, self.infinite_steps, isinf) else None
            )
        usual = window_mean(column, step, self.window, self.window_min)
        if usual is None or value <= self.grad_norm_max or value <= self.factor * usual:
            return None
        return {"grad_norm": value, "grad_norm_window": usual}

    def explain(self) -> str:
        return (
            f"grad-explosion (alarm): the gradient norm is above {self.grad_norm_max} and above "
            f"{self.factor}x the mean of the previous up to {self.window} logged values (at least "
            f"{self.window_min}), or infinite for {self.infinite_steps} logged steps.\n"
            "Stays raised for the life. Action: inspect.\n"
            f"Source: {self.source}."
        )
