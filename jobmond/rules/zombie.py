"""An evaluation that is over and whose job still runs."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from jobmond import registry
from jobmond.analysis.evidence import at_work, minutes, progress, quiet_for, value
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case


@registry.rules.plugin("zombie")
@dataclass(frozen=True, slots=True)
class Zombie:
    """All trials done, RUNNING, and `grace` has passed since the last of them."""

    grace: timedelta = timedelta(minutes=10)

    id = "zombie"
    source = (
        "OpenThoughts-Agent, monitor-job-tables notes (eval red flags: all trials done but RUNNING)"
    )
    needs = ("trials",)

    def judge(self, case: Case) -> Iterable[Signal]:
        trials = value(case.trials)
        if case.job.bucket is not Bucket.EVAL or trials is None or not at_work(case):
            return
        quiet = quiet_for(case, trials)
        if not trials.all_done or quiet is None or quiet < self.grace:
            return
        yield Signal(
            rule=self.id,
            severity=Severity.ALARM,
            title=f"{progress(trials)} for {minutes(quiet)} and the job still runs",
            evidence={"trials_done": trials.done, "quiet_s": int(quiet.total_seconds())},
            action="cancel",
        )

    def explain(self) -> str:
        return (
            "zombie (alarm; eval only): every trial has a result, the job is RUNNING, and "
            f"{minutes(self.grace)} have passed since the last result (a job may tidy up).\n"
            "Action: cancel, by a person.\n"
            f"Source: {self.source}."
        )
