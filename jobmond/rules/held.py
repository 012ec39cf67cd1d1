"""A job that waits until somebody releases it."""

from collections.abc import Iterable
from dataclasses import dataclass

from jobmond import registry
from jobmond.model.outcome import Signal
from jobmond.model.state import Severity, State
from jobmond.ports import Case


@registry.rules.plugin("held")
@dataclass(frozen=True, slots=True)
class Held:
    """PENDING and held by its user, an administrator or the scheduler."""

    id = "held"
    source = "squeue manual page, JOB REASON CODES: JobHeldUser, JobHeldAdmin"

    def judge(self, case: Case) -> Iterable[Signal]:
        job = case.job
        if job.state is State.PENDING and job.facts.held:
            yield Signal(
                rule=self.id,
                severity=Severity.WATCH,
                title=f"held ({job.facts.reason or 'no reason given'}): will not start by itself",
                evidence={"reason": job.facts.reason},
                action="inspect",
            )

    def explain(self) -> str:
        return (
            "held (watch): the job is PENDING and its scheduler says that it is held by its user,\n"
            "by an administrator, or after a failed launch. It starts only when released\n"
            "(scontrol release ID). Clears when the hold is gone. No thresholds.\n"
            f"Source: {self.source}."
        )
