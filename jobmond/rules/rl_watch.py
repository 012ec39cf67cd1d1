"""Signs that have come before a collapse, one at a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from jobmond import registry
from jobmond.analysis.firing import Fired, runs, streak
from jobmond.model.metrics import RunSeries
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case

_POSITIONS = tuple(f"policy/log_ratio_abs_pos{place:02d}" for place in range(0, 100, 10))


@registry.rules.plugin("rl-watch")
@dataclass(frozen=True, slots=True)
class RlWatch:
    """Any of the signs; clears when a step shows none."""

    grad_norm_max: float = 1.0
    grad_norm_steps: int = 2
    first_steps: int = 5
    clip_ratio_max: float = 0.01
    importance_min: float = 0.84
    importance_max: float = 1.56
    capped_fraction_max: float = 0.01
    log_ratio_mean_max: float = 0.02
    log_ratio_max_max: float = 0.5
    above_half_share_max: float = 0.001
    position_factor: float = 3.0

    id = "rl-watch"
    source = "OpenThoughts-Agent, monitor-job-tables notes (healthy ranges, lead indicators)"

    def judge(self, case: Case) -> Iterable[Signal]:
        series = case.series
        if series is None or case.job.bucket is not Bucket.RL or "seqnorm" in case.job.labels:
            return
        for run in runs(series, lambda step: self._evidence(series, step, case)):
            yield Signal(
                rule=self.id,
                severity=Severity.WATCH,
                title=f"outside healthy ranges since step {run.first}: "
                + ", ".join(f"{name} {value:.3g}" for name, value in run.evidence.items()),
                evidence=run.evidence,
                action="inspect",
                step=run.first,
                last_step=run.last,
            )

    def _evidence(self, series: RunSeries, step: int, case: Case) -> Fired:
        found = {
            **self._gradient(series, step),
            **self._ratios(series, step),
            **self._log_ratios(series, step),
        }
        triggered = series.column("policy/z_clip/triggered").at(step)
        if triggered and "spike-mitigation" not in case.job.labels:
            found["z_clip_triggered"] = triggered
        return found or None

    def _gradient(self, series: RunSeries, step: int) -> dict[str, float]:
        column = series.column("grad_norm")
        place = len(column.before(step, len(column.steps)))
        late = place - (self.grad_norm_steps - 1) >= self.first_steps
        above = streak(column, step, self.grad_norm_steps, lambda v: v > self.grad_norm_max)
        return {"grad_norm": column.at(step) or 0.0} if late and above else {}

    def _ratios(self, series: RunSeries, step: int) -> dict[str, float]:
        clip = series.column("clip_ratio").at(step)
        ratio = series.column("importance_ratio").at(step)
        capped = series.column("importance_capped_fraction").at(step)
        found: dict[str, float] = {}
        if clip is not None and clip > self.clip_ratio_max:
            found["clip_ratio"] = clip
        if ratio is not None and not self.importance_min <= ratio <= self.importance_max:
            found["importance_ratio"] = ratio
        if capped is not None and capped > self.capped_fraction_max:
            found["importance_capped_fraction"] = capped
        return found

    def _log_ratios(self, series: RunSeries, step: int) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, most in (
            ("log_ratio_abs_mean", self.log_ratio_mean_max),
            ("log_ratio_abs_max", self.log_ratio_max_max),
            ("policy/n_tokens_dp_gt_50pct", self.above_half_share_max),
        ):
            value = series.column(name).at(step)
            if value is not None and value > most:
                found[name] = value
        places = [v for n in _POSITIONS if (v := series.column(n).at(step)) is not None]
        if len(places) > 2 and max(places) > self.position_factor * median(places) > 0:
            found["position_bucket_max"] = max(places)
        return found

    def explain(self) -> str:
        return (
            "rl-watch (watch; RL only): any of these at a step:\n"
            f"- gradient norm above {self.grad_norm_max} for {self.grad_norm_steps} logged steps "
            f"in a row, after the first {self.first_steps}\n"
            f"- clip ratio above {self.clip_ratio_max:.0%}: learning rate and eps_clip do not "
            "match\n"
            f"- mean importance ratio outside {self.importance_min} to {self.importance_max}, or "
            f"capped fraction above {self.capped_fraction_max}\n"
            f"- |log ratio|: mean above {self.log_ratio_mean_max}, maximum above "
            f"{self.log_ratio_max_max}, share of tokens changed by more than half above "
            f"{self.above_half_share_max}\n"
            f"- one position bucket above {self.position_factor}x the median bucket\n"
            "- z-clip triggered (expected under the label spike-mitigation)\n"
            "Not under the label seqnorm, whose magnitudes differ. Clears by itself.\n"
            f"Source: {self.source}."
        )
