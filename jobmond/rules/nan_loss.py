"""A loss that is no number any more, also where the trainer prints a zero for it."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite, isnan

from jobmond import registry
from jobmond.analysis.firing import Fired, runs, streak
from jobmond.model.metrics import RunSeries
from jobmond.model.outcome import Signal
from jobmond.model.state import Severity
from jobmond.ports import Case

_SKIPPED = "number of skipped iterations"


@registry.rules.plugin("nan-loss")
@dataclass(frozen=True, slots=True)
class NanLoss:
    """Any form in which trainers show it."""

    grad_norm_steps: int = 2
    skipped_records: int = 3

    id = "nan-loss"
    source = (
        "transformers `logging_nan_inf_filter` (a NaN loss is logged as 0); Megatron-LM "
        "`training_log` (a skipped iteration has loss 0 and no grad norm); "
        "LLaMA-Factory issue 4850, unsloth issue 3006, verl issue 721"
    )

    def judge(self, case: Case) -> Iterable[Signal]:
        series = case.series
        if series is None:
            return
        for run in runs(series, lambda step: self._evidence(series, step)):
            yield Signal(
                rule=self.id,
                severity=Severity.ALARM,
                title=f"the loss is no number since step {run.first}",
                evidence=run.evidence,
                action="cancel",
                step=run.first,
                last_step=run.last,
            )

    def _evidence(self, series: RunSeries, step: int) -> Fired:
        loss = series.column("loss").at(step)
        policy = series.column("policy_loss").at(step)
        grad = series.column("grad_norm").at(step)
        for name, value in (("loss", loss), ("policy_loss", policy)):
            if value is not None and not isfinite(value):
                return {name: value}
        ranks = series.column("loss_nan_ranks").at(step)
        if ranks:
            return {"loss_nan_ranks": ranks}
        if grad is not None and isnan(grad) and loss == 0:
            return {"loss": loss, "grad_norm": grad}
        if streak(series.column("grad_norm"), step, self.grad_norm_steps, isnan):
            return {"grad_norm": grad}
        return self._skipped(series, step)

    def _skipped(self, series: RunSeries, step: int) -> Fired:
        """Loss zero, no gradient norm where there was one, iterations skipped: record after
        record. A loss scaler that looks for its scale skips some at the start only.
        """
        losses = series.column("loss")
        skipped = series.column(_SKIPPED)
        grads = series.column("grad_norm")
        if not grads.before(step, 1) or not streak(
            losses, step, self.skipped_records, lambda v: v == 0
        ):
            return None
        if not streak(skipped, step, self.skipped_records, lambda v: v > 0):
            return None
        known = len(losses.before(step, self.skipped_records - 1))
        steps = [*losses.steps[: losses.steps.index(step) + 1]][-known - 1 :]
        if any(grads.at(one) is not None for one in steps):
            return None
        return {"loss": 0.0, "skipped_iterations": skipped.at(step)}

    def explain(self) -> str:
        return (
            "nan-loss (alarm): the loss (or policy loss) is NaN or infinite; or the loss prints "
            "as 0 with a NaN gradient norm; or the gradient norm is NaN for "
            f"{self.grad_norm_steps} logged steps; or a rank counts NaN losses; or "
            f"{self.skipped_records} records in a row have loss 0, skipped iterations and no "
            "gradient norm.\nStays raised for the life. Action: cancel.\n"
            f"Source: {self.source}."
        )
