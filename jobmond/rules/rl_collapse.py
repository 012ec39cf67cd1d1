"""A policy that is falling apart: two independent signs at the same step."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite

from jobmond import registry
from jobmond.analysis.firing import Fired, runs, window_mean
from jobmond.model.metrics import RunSeries
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case

LOG_RATIO = ("log_ratio_abs_mean", "policy/tis/log_ratio_abs_mean")


@registry.rules.plugin("rl-collapse")
@dataclass(frozen=True, slots=True)
class RlCollapse:
    """At least two of four signs at one step. Windows are the mean of the previous `window`
    logged values, `window_min` of them at least.
    """

    grad_norm_max: float = 1.0
    grad_norm_factor: float = 2.0
    entropy_change: float = 0.30
    log_ratio_factor: float = 2.0
    log_ratio_max_below: float = 0.5
    pass_rate_min: float = 0.10
    pass_rate_trials: int = 100
    window: int = 10
    window_min: int = 5
    seqnorm_floor: float = 1e-3

    id = "rl-collapse"
    source = (
        "OpenThoughts-Agent, monitor-job-tables notes (collapse rule); "
        "published RL tables of marin-community/marin issue 6335"
    )

    def judge(self, case: Case) -> Iterable[Signal]:
        series = case.series
        if series is None or case.job.bucket is not Bucket.RL:
            return
        spared = case.job.labels & {"spike-mitigation", "no-kill"}
        for run in runs(series, lambda step: self._evidence(series, step, case)):
            yield Signal(
                rule=self.id,
                severity=Severity.ALARM,
                title=f"RL collapse at step {run.first}: {_told(run.evidence)}",
                evidence=run.evidence,
                action="inspect" if spared else "cancel-and-salvage",
                step=run.first,
                last_step=run.last,
            )

    def _evidence(self, series: RunSeries, step: int, case: Case) -> Fired:
        signs = [
            sign
            for sign in (
                self._grad_norm(series, step, case.job.labels),
                self._entropy(series, step),
                self._log_ratio(series, step, case.job.labels),
                self._pass_rate(series, step),
            )
            if sign
        ]
        if len(signs) < 2:
            return None
        return {name: value for sign in signs for name, value in sign.items()}

    def _grad_norm(self, series: RunSeries, step: int, labels: frozenset[str]) -> Fired:
        column = series.column("grad_norm")
        value = column.at(step)
        if value is None:
            return None
        if value > self.grad_norm_max:
            return {"grad_norm": value}
        usual = window_mean(column, step, self.window, self.window_min)
        # Under sequence normalisation by a global denominator, 1e-5 is what a gradient has.
        floor = self.seqnorm_floor if "seqnorm" in labels else 0.0
        if usual is not None and value > self.grad_norm_factor * usual and value > floor:
            return {"grad_norm": value, "grad_norm_window": usual}
        return None

    def _entropy(self, series: RunSeries, step: int) -> Fired:
        column = series.column("entropy")
        value = column.at(step)
        usual = window_mean(column, step, self.window, self.window_min)
        if value is None or not usual or not isfinite(value):
            return None
        drop = (usual - value) / abs(usual)
        return {"entropy_drop": round(drop, 4)} if abs(drop) > self.entropy_change else None

    def _log_ratio(self, series: RunSeries, step: int, labels: frozenset[str]) -> Fired:
        column = series.column(*LOG_RATIO)
        value = column.at(step)
        usual = window_mean(column, step, self.window, self.window_min)
        if value is None or usual is None or value <= self.log_ratio_factor * usual:
            return None
        largest = series.column("log_ratio_abs_max").at(step)
        if largest is not None and not largest < self.log_ratio_max_below:
            return None
        if "seqnorm" in labels and value <= self.seqnorm_floor:
            return None
        return {"log_ratio_abs_mean": value, "log_ratio_window": usual}

    def _pass_rate(self, series: RunSeries, step: int) -> Fired:
        newest = bool(series.judged) and step == series.judged[-1]
        if not newest or series.pass_rate is None or series.trials < self.pass_rate_trials:
            return None
        return {"pass_rate": series.pass_rate} if series.pass_rate < self.pass_rate_min else None

    def explain(self) -> str:
        return (
            "rl-collapse (alarm; RL only): at least two of these at the same step:\n"
            f"- raw gradient norm above {self.grad_norm_max} or above {self.grad_norm_factor}x "
            "its window (one sign)\n"
            f"- entropy off its trend by more than {self.entropy_change:.0%}, up or down\n"
            f"- mean |log ratio| above {self.log_ratio_factor}x its window while its maximum "
            f"stays below {self.log_ratio_max_below}\n"
            f"- pass rate of the last {self.pass_rate_trials} finished trials below "
            f"{self.pass_rate_min:.0%} (pairs with the newest step only)\n"
            f"Window and trend: the mean of the previous up to {self.window} logged values, at "
            f"least {self.window_min}.\n"
            "Log ratio is new against old policy; the one against the rollout engine stands in "
            "where the trainer prints only that.\n"
            "Not collapse: rollout_train_prob_diff_mean of any size; under the label seqnorm, "
            f"growth of values below {self.seqnorm_floor}.\n"
            "Stays raised for the life. Action: cancel and salvage; with the label "
            "spike-mitigation or no-kill only inspect.\n"
            f"Source: {self.source}."
        )


def _told(evidence: dict[str, float]) -> str:
    return ", ".join(_words(evidence))


def _words(evidence: dict[str, float]) -> Iterator[str]:
    if "grad_norm" in evidence:
        usual = evidence.get("grad_norm_window")
        yield f"grad norm {evidence['grad_norm']:.3g}" + (
            f" (window {usual:.3g})" if usual is not None else ""
        )
    if "entropy_drop" in evidence:
        drop = evidence["entropy_drop"]
        yield f"entropy {abs(drop):.0%} {'below' if drop > 0 else 'above'} trend"
    if "log_ratio_abs_mean" in evidence:
        yield f"log ratio {evidence['log_ratio_abs_mean']:.3g}"
    if "pass_rate" in evidence:
        yield f"pass rate {evidence['pass_rate']:.0%}"
