"""A sandbox provider or an engine that turns trials away."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from jobmond import registry
from jobmond.analysis.evidence import at_work, value
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case

_AUTH = re.compile(
    r"auth|unauthori[sz]ed|forbidden|permission_?denied|invalid_?api_?key", re.IGNORECASE
)


@registry.rules.plugin("auth-failures")
@dataclass(frozen=True, slots=True)
class AuthFailures:
    """At least `least` of the last `window` trials ended in a failed authentication."""

    least: int = 3
    window: int = 20

    id = "auth-failures"
    source = (
        "OpenThoughts-Agent, monitor-job-tables notes (repeated auth failures: sandbox provider)"
    )
    needs = ("trials",)

    def judge(self, case: Case) -> Iterable[Signal]:
        trials = value(case.trials)
        if case.job.bucket not in (Bucket.EVAL, Bucket.DATAGEN) or trials is None:
            return
        last = trials.recent[-self.window :]
        refused = [t.exception for t in last if t.exception and _AUTH.search(t.exception)]
        if len(refused) < self.least or not at_work(case):
            return
        yield Signal(
            rule=self.id,
            severity=Severity.ALARM,
            title=f"{len(refused)} of the last {len(last)} trials were refused ({refused[-1]})",
            evidence={"refused": len(refused), "trials": len(last), "exception": refused[-1]},
            action="inspect",
        )

    def explain(self) -> str:
        return (
            f"auth-failures (alarm; eval and datagen): at least {self.least} of the last "
            f"{self.window} trials ended with an authentication or authorisation exception.\n"
            f"Source: {self.source}."
        )
