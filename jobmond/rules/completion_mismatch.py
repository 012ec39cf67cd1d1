"""A run that is called completed and has not done all of it."""

from collections.abc import Iterable
from dataclasses import dataclass

from jobmond import registry
from jobmond.analysis.evidence import progress, value
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity, State
from jobmond.ports import Case


@registry.rules.plugin("completion-mismatch")
@dataclass(frozen=True, slots=True)
class CompletionMismatch:
    """COMPLETED, but the trainer's own record ends early or has NaN; or trials are missing."""

    id = "completion-mismatch"
    source = (
        "OpenThoughts-Agent, monitor-job-tables notes (completion check); Model-Optimizer, "
        "run-validation skill (success is not proof)"
    )
    needs = ("completion", "trials")

    def judge(self, case: Case) -> Iterable[Signal]:
        if case.job.state is not State.COMPLETED:
            return
        wrong = self._trained(case) if case.job.bucket is Bucket.SFT else self._evaluated(case)
        if wrong:
            yield Signal(
                rule=self.id,
                severity=Severity.WATCH,
                title="completed, but " + " and ".join(wrong),
                evidence={"found": wrong},
                action="inspect",
            )

    def _trained(self, case: Case) -> list[str]:
        completion = value(case.completion)
        if completion is None:
            return []
        last, total = completion.last_step, completion.total
        wrong = []
        if last is not None and total is not None and last != total:
            wrong.append(f"the last recorded step is {last} of {total}")
        if completion.nan_ranks:
            wrong.append(f"{completion.nan_ranks} ranks report NaN")
        return wrong

    def _evaluated(self, case: Case) -> list[str]:
        trials = value(case.trials)
        if case.job.bucket is not Bucket.EVAL or trials is None or trials.total is None:
            return []
        short = trials.whole and trials.done < trials.total
        return [f"only {progress(trials)}"] if short else []

    def explain(self) -> str:
        return (
            "completion-mismatch (watch): an SFT job is COMPLETED and trainer_state.json or "
            "trainer_log.jsonl ends at another step than the last, or reports NaN on a rank;\n"
            "an eval is COMPLETED and trials have no result. Holds the cleanup back.\n"
            "No thresholds.\n"
            f"Source: {self.source}."
        )
