"""Agentic training whose rollouts do not end."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from jobmond import registry
from jobmond.analysis.evidence import at_work, minutes, progress, quiet_for, value
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case


@registry.rules.plugin("no-trials")
@dataclass(frozen=True, slots=True)
class NoTrials:
    """An agentic RL run has a tree, and no trial has ended for `quiet`."""

    quiet: timedelta = timedelta(hours=2)

    id = "no-trials"
    source = "OpenThoughts-Agent, monitor-job-tables notes (zero trials completing on a silent run)"
    needs = ("trials",)

    def judge(self, case: Case) -> Iterable[Signal]:
        trials = value(case.trials)
        if case.job.bucket is not Bucket.RL or "agentic" not in case.job.labels:
            return
        if trials is None or not at_work(case):
            return
        quiet = quiet_for(case, trials)
        if quiet is None or quiet < self.quiet:
            return
        yield Signal(
            rule=self.id,
            severity=Severity.WATCH,
            title=f"no trial has ended for {minutes(quiet)} ({progress(trials)})",
            evidence={"quiet_s": int(quiet.total_seconds()), "trials_done": trials.done},
            action="inspect",
        )

    def explain(self) -> str:
        return (
            "no-trials (watch; RL with the label agentic): RUNNING, a tree of trials was read, and "
            f"none of them has ended for {minutes(self.quiet)}.\n"
            "A standard run has no tree and is not in error for that.\n"
            f"Source: {self.source}."
        )
