"""A job that waits for something that can no longer happen."""

from collections.abc import Iterable
from dataclasses import dataclass

from jobmond import registry
from jobmond.model.outcome import Signal
from jobmond.model.state import Severity, State
from jobmond.ports import Case

REASON = "DependencyNeverSatisfied"


@registry.rules.plugin("dependency-never-satisfied")
@dataclass(frozen=True, slots=True)
class DependencyNeverSatisfied:
    """PENDING with SLURM's reason of that name."""

    id = "dependency-never-satisfied"
    source = f"squeue manual page, JOB REASON CODES: {REASON}"

    def judge(self, case: Case) -> Iterable[Signal]:
        job = case.job
        if job.state is State.PENDING and REASON in (job.facts.reason or ""):
            on = job.facts.dependency or "its dependency"
            yield Signal(
                rule=self.id,
                severity=Severity.ALARM,
                title=f"will never start: {on} cannot be met any more",
                evidence={"reason": job.facts.reason, "dependency": job.facts.dependency},
                action="inspect",
            )

    def explain(self) -> str:
        return (
            "dependency-never-satisfied (alarm): the job is PENDING and its scheduler says that\n"
            "what it depends on can no longer happen (afterok on a job that failed). It would\n"
            "wait for ever. Clears when the reason is gone. No thresholds.\n"
            f"Source: {self.source}."
        )
