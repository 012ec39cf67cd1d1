"""Trials that are over before they began."""

from collections.abc import Iterable
from dataclasses import dataclass

from jobmond import registry
from jobmond.analysis.evidence import at_work, value
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case


@registry.rules.plugin("instant-fail")
@dataclass(frozen=True, slots=True)
class InstantFail:
    """The last `trials` trials had no output token and took `within_s` or less."""

    trials: int = 5
    within_s: float = 5.0

    id = "instant-fail"
    source = (
        "OpenThoughts-Agent, monitor-job-tables notes (null output tokens, finished as it started)"
    )
    needs = ("trials",)

    def judge(self, case: Case) -> Iterable[Signal]:
        trials = value(case.trials)
        if case.job.bucket not in (Bucket.EVAL, Bucket.DATAGEN) or trials is None:
            return
        last = trials.recent[-self.trials :]
        if len(last) < self.trials or not at_work(case):
            return
        if not all(trial.instant(self.within_s) for trial in last):
            return
        yield Signal(
            rule=self.id,
            severity=Severity.ALARM,
            title=f"the last {len(last)} trials failed at once, without a token: "
            "does the tunnel carry traffic?",
            evidence={"trials": [trial.name for trial in last]},
            action="inspect",
        )

    def explain(self) -> str:
        return (
            f"instant-fail (alarm; eval and datagen): each of the last {self.trials} trials has no "
            f"output token and took at most {self.within_s:g} s: agents do not reach the engine.\n"
            "One such trial among others is nothing.\n"
            f"Source: {self.source}."
        )
