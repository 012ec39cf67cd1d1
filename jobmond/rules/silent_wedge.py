"""A job that is said to run while nothing of it does."""

from collections.abc import Iterable
from dataclasses import dataclass

from jobmond import registry
from jobmond.model.outcome import Signal
from jobmond.model.state import TERMINAL, Severity
from jobmond.ports import Case


@registry.rules.plugin("silent-wedge")
@dataclass(frozen=True, slots=True)
class SilentWedge:
    """Not ended, not held back, and without a pod for `looks` looks in a row."""

    looks: int = 2

    id = "silent-wedge"
    source = (
        "OpenThoughts-Agent, monitor-job-tables notes (running but zero pods is the silent wedge)"
    )

    def judge(self, case: Case) -> Iterable[Signal]:
        facts = case.job.facts
        misses = facts.misses or 0
        if case.job.state in TERMINAL or case.job.stale or misses < self.looks:
            return
        why = (facts.message or facts.reason or "").partition("\n")[0][:200]
        yield Signal(
            rule=self.id,
            severity=Severity.WATCH,
            title=f"no pod at {misses} looks in a row" + (f": {why}" if why else ""),
            evidence={"misses": misses, "reason": facts.reason},
            action="inspect",
        )

    def explain(self) -> str:
        return (
            "silent-wedge (watch): the job has neither ended nor is it held back, and no pod of it "
            f"was\nfound at {self.looks} looks in a row (a quota refuses them, or the controller "
            "is down). Looks\nthat failed count neither way. At the cluster's max_misses (default "
            "3) the job is LOST.\nClears when a pod is there.\n"
            f"Source: {self.source}."
        )
