"""A run that goes on without learning anything."""

from collections.abc import Iterable
from dataclasses import dataclass

from jobmond import registry
from jobmond.analysis.firing import Fired, runs, streak
from jobmond.model.metrics import RunSeries
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case


@registry.rules.plugin("dead-run")
@dataclass(frozen=True, slots=True)
class DeadRun:
    """No gradient, or no difference between rewards, for `steps` logged steps."""

    steps: int = 10

    id = "dead-run"
    source = (
        "trl issue 3452 (loss, gradient and reward spread stay 0); trl GRPO documentation "
        "(`frac_reward_zero_std`); OpenThoughts-Agent, monitor-job-tables notes (seqnorm)"
    )

    def judge(self, case: Case) -> Iterable[Signal]:
        series = case.series
        if series is None or "seqnorm" in case.job.labels:
            return
        rewarded = case.job.bucket is Bucket.RL
        for run in runs(series, lambda step: self._evidence(series, step, rewarded)):
            yield Signal(
                rule=self.id,
                severity=Severity.ALARM,
                title=f"nothing is learnt since step {run.first}: "
                + " and ".join(name.replace("_", " ") for name in run.evidence),
                evidence=run.evidence,
                action="inspect",
                step=run.first,
                last_step=run.last,
            )

    def _evidence(self, series: RunSeries, step: int, rewarded: bool) -> Fired:
        found: dict[str, float] = {}
        if self._stays(series, "grad_norm", step, 0.0):
            found["grad_norm_zero"] = 0.0
        if rewarded:
            for name, dead in (
                ("reward_std", 0.0),
                ("frac_reward_zero_std", 1.0),
                ("loss/avg_raw_advantages_abs", 0.0),
            ):
                if self._stays(series, name, step, dead):
                    found["no_reward_variance"] = dead
        return found or None

    def _stays(self, series: RunSeries, name: str, step: int, value: float) -> bool:
        if value == 0 and name in series.coarse:
            return False
        return streak(series.column(name), step, self.steps, lambda v: v == value)

    def explain(self) -> str:
        return (
            f"dead-run (alarm): for {self.steps} logged steps the gradient norm is exactly 0, or "
            "(RL) no group of rewards differs (reward_std 0, frac_reward_zero_std 1, advantages "
            "all 0).\nNot under the label seqnorm, and not where the trainer rounds to zero.\n"
            "Stays raised for the life. Action: inspect.\n"
            f"Source: {self.source}."
        )
