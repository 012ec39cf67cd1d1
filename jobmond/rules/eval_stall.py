"""An evaluation in which no trial ends any more."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from jobmond import registry
from jobmond.analysis.evidence import at_work, minutes, progress, quiet_for, value
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case


@registry.rules.plugin("eval-stall")
@dataclass(frozen=True, slots=True)
class EvalStall:
    """No new result for `quiet` while the job runs and trials are left."""

    quiet: timedelta = timedelta(minutes=60)

    id = "eval-stall"
    source = (
        "OpenThoughts-Agent, monitor-job-tables notes (eval red flags: no result.json for 60+ min)"
    )
    needs = ("trials",)

    def judge(self, case: Case) -> Iterable[Signal]:
        trials = value(case.trials)
        if case.job.bucket is not Bucket.EVAL or trials is None or not at_work(case):
            return
        quiet = quiet_for(case, trials)
        if quiet is None or quiet < self.quiet or trials.all_done:
            return
        engine = value(case.engine)
        works = engine is not None and engine.idle_s == 0
        yield Signal(
            rule=self.id,
            severity=Severity.WATCH if works else Severity.ALARM,
            title=f"no trial has ended for {minutes(quiet)} ({progress(trials)})"
            + ("; the engine is at work" if works else ""),
            evidence={
                "quiet_s": int(quiet.total_seconds()),
                "trials_done": trials.done,
                "trials_total": trials.total,
                "engine_idle_s": None if engine is None else engine.idle_s,
            },
            action="inspect",
        )

    def explain(self) -> str:
        return (
            f"eval-stall (alarm; eval only): RUNNING, trials left, and none has ended for "
            f"{minutes(self.quiet)}, counted over the whole tree and from this life's start.\n"
            "Trials that end by timeout are trials that end: a late burst of them is the hard\n"
            "tail. A tree that could not be read raises nothing. Where the engine's log shows\n"
            "requests being served it is only a watch signal. Not under the label service.\n"
            f"Source: {self.source}."
        )
