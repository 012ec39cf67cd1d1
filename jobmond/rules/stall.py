"""A job that runs and does not get on."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from jobmond import registry
from jobmond.analysis.evidence import at_work, awake_since, minutes
from jobmond.analysis.silence import silent_for
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case


@dataclass(frozen=True, slots=True)
class _Still:
    """What has been still, for how long, and how long it may be."""

    what: str
    span: timedelta
    limit: timedelta
    severity: Severity


@registry.rules.plugin("stall")
@dataclass(frozen=True, slots=True)
class Stall:
    """RUNNING, and the log has been still for longer than its bucket and phase allow; or it
    grows, and no step comes any more.
    """

    rl: timedelta = timedelta(minutes=60)
    sft: timedelta = timedelta(minutes=45)
    datagen: timedelta = timedelta(hours=3)
    eval: timedelta = timedelta(minutes=60)
    other: timedelta = timedelta(hours=6)
    bring_up: timedelta = timedelta(minutes=90)
    finishing: timedelta = timedelta(minutes=90)
    step_factor: float = 6.0
    steps_still: timedelta = timedelta(hours=2)
    steps_factor: float = 12.0
    most: timedelta = timedelta(hours=12)

    id = "stall"
    source = (
        "field practice: several times the run's own step, a floor, and phases of their own for "
        "start and save (PortOS 1330, horovod 2315, FlagScale 1267, marin 7344 and 7929, "
        "prime-rl 2142); OpenThoughts-Agent, monitor-job-tables notes (a hung chunk is silent "
        "for hours)"
    )
    needs = ("log",)

    def judge(self, case: Case) -> Iterable[Signal]:
        if not at_work(case) or case.job.native_id in case.view.hushed:
            return
        still = self._log(case) or self._steps(case)
        if still is None:
            return
        yield Signal(
            rule=self.id,
            severity=still.severity,
            title=f"{still.what} for {minutes(still.span)}",
            evidence={
                "still_s": int(still.span.total_seconds()),
                "limit_s": int(still.limit.total_seconds()),
                "phase": case.job.training.phase if case.job.training else None,
                "step": case.job.training.step if case.job.training else None,
            },
            action="inspect",
        )

    def _log(self, case: Case) -> _Still | None:
        span, limit = silent_for(case.job, case.log, case.now), self._limit(case)
        if span is None or span <= limit:
            return None
        grave = case.job.bucket is not Bucket.OTHER
        level = Severity.ALARM if grave else Severity.WATCH
        return _Still("nothing new in its log", span, limit, level)

    def _limit(self, case: Case) -> timedelta:
        training = case.job.training
        limits = {
            Bucket.RL: self.rl,
            Bucket.SFT: self.sft,
            Bucket.DATAGEN: self.datagen,
            Bucket.EVAL: self.eval,
            Bucket.OTHER: self.other,
        }
        limit = limits[case.job.bucket]
        if training is None or training.dialect is None:
            return max(limit, self.bring_up)
        if training.phase == "bring-up":
            return max(limit, self.bring_up)
        if training.phase == "finishing":
            limit = max(limit, self.finishing)
        own_s = (training.rate_s_per_step or 0.0) * self.step_factor
        return max(limit, min(self.most, timedelta(seconds=min(own_s, self.most.total_seconds()))))

    def _steps(self, case: Case) -> _Still | None:
        """A log can grow by heartbeats alone while every rank waits for another."""
        training = case.job.training
        if training is None or training.phase != "training" or training.behind_bytes:
            return None
        if training.stepped_at is None or silent_for(case.job, case.log, case.now) is None:
            return None
        own_s = (training.rate_s_per_step or 0.0) * self.steps_factor
        limit = max(self.steps_still, timedelta(seconds=min(own_s, self.most.total_seconds())))
        awake = awake_since(case.job)
        since = max(training.stepped_at, awake) if awake is not None else training.stepped_at
        span = case.now - since
        if span <= limit:
            return None
        return _Still("its log grows and no step has come", span, limit, Severity.WATCH)

    def explain(self) -> str:
        return (
            "stall (alarm; watch in the bucket other): RUNNING, the log was read, and it has been "
            "still for longer than\n"
            f"  rl {minutes(self.rl)}, sft {minutes(self.sft)}, datagen {minutes(self.datagen)}, "
            f"eval {minutes(self.eval)}, other {minutes(self.other)},\n"
            f"  at least {minutes(self.bring_up)} until the first step, "
            f"{minutes(self.finishing)} after the last,\n"
            f"  and {self.step_factor:g} times the run's own step (at most "
            f"{minutes(self.most)}).\n"
            "Or (watch): the log grows, and while training no step has come for "
            f"{minutes(self.steps_still)} and {self.steps_factor:g} of the run's steps.\n"
            "Not for a job that is suspended or labelled service, and not where most logs of the\n"
            "cluster fell silent together (mass-silence). A log that could not be read raises\n"
            "nothing and clears nothing.\n"
            f"Source: {self.source}."
        )
