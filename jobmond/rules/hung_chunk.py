"""A chunk of generation that neither says nor finishes anything."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from jobmond import registry
from jobmond.analysis.evidence import at_work, minutes, progress, quiet_for, value
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case


@registry.rules.plugin("hung-chunk")
@dataclass(frozen=True, slots=True)
class HungChunk:
    """Log silent and no trial ended for `quiet` while the job runs."""

    quiet: timedelta = timedelta(hours=2)

    id = "hung-chunk"
    source = (
        "OpenThoughts-Agent, monitor-job-tables notes (log silent for hours, stalled trial count)"
    )
    needs = ("trials",)

    def judge(self, case: Case) -> Iterable[Signal]:
        job, trials = case.job, value(case.trials)
        if job.bucket is not Bucket.DATAGEN or trials is None or not at_work(case):
            return
        quiet = quiet_for(case, trials)
        known = job.log.status in ("read", "empty") and job.log.mtime_at is not None
        if quiet is None or not known or trials.all_done or job.log.mtime_at is None:
            return
        silent = min(quiet, case.now - job.log.mtime_at)
        if silent < self.quiet:
            return
        yield Signal(
            rule=self.id,
            severity=Severity.ALARM,
            title=f"log and trials have stood still for {minutes(silent)} ({progress(trials)})",
            evidence={"quiet_s": int(silent.total_seconds()), "trials_done": trials.done},
            action="inspect",
        )

    def explain(self) -> str:
        return (
            "hung-chunk (alarm; datagen only): RUNNING, trials left, and for "
            f"{minutes(self.quiet)} neither has the log grown nor a trial ended; both were read.\n"
            f"Source: {self.source}."
        )
