"""An engine that nobody asks anything."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from jobmond import registry
from jobmond.analysis.evidence import at_work, minutes, value
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case


@registry.rules.plugin("engine-idle")
@dataclass(frozen=True, slots=True)
class EngineIdle:
    """The engine's own log says that no request has been running for `idle`."""

    idle: timedelta = timedelta(minutes=10)

    id = "engine-idle"
    source = "OpenThoughts-Agent, monitor-job-tables notes (zero running requests for 10+ min)"
    needs = ("engine", "trials")

    def judge(self, case: Case) -> Iterable[Signal]:
        engine, trials = value(case.engine), value(case.trials)
        over = trials is not None and trials.all_done
        if case.job.bucket not in (Bucket.EVAL, Bucket.DATAGEN) or not at_work(case) or over:
            return
        if engine is None or engine.idle_s is None or engine.answered_after_idle:
            return
        idle, rested_at = timedelta(seconds=engine.idle_s), case.job.log.rested_at
        if rested_at is not None:
            idle = min(idle, case.now - rested_at)
        if idle < self.idle:
            return
        yield Signal(
            rule=self.id,
            severity=Severity.ALARM,
            title=f"the engine has had no running request for {minutes(idle)}",
            evidence={"idle_s": idle.total_seconds(), "posts_ok": engine.answered},
            action="inspect",
        )

    def explain(self) -> str:
        return (
            "engine-idle (alarm; eval and datagen): RUNNING, trials left, and the engine's "
            f"statistics say zero running requests for {minutes(self.idle)} up to their newest\n"
            "line, with no POST answered since. Only where the log was read and is current.\n"
            f"Source: {self.source}."
        )
