"""Traces that were made and never uploaded."""

from collections.abc import Iterable
from dataclasses import dataclass

from jobmond import registry
from jobmond.analysis.evidence import value
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity, State
from jobmond.ports import Case


@registry.rules.plugin("stranded-traces")
@dataclass(frozen=True, slots=True)
class StrandedTraces:
    """TIMEOUT killed the upload at the end: the traces are on disk only."""

    id = "stranded-traces"
    source = "OpenThoughts-Agent, monitor-job-tables notes (a TIMEOUT strands the traces)"
    needs = ("trials", "exported")

    def judge(self, case: Case) -> Iterable[Signal]:
        job, trials, exported = case.job, value(case.trials), value(case.exported)
        ended = job.state is State.TIMEOUT and job.successor is None
        if job.bucket is not Bucket.DATAGEN or not ended:
            return
        if trials is None or trials.done == 0 or exported is None or exported > 0:
            return
        yield Signal(
            rule=self.id,
            severity=Severity.ALARM,
            title=f"the time limit came before the upload: {trials.done} trials are on disk only",
            evidence={"trials_done": trials.done},
            action="consolidate",
        )

    def explain(self) -> str:
        return (
            "stranded-traces (alarm; datagen only): the job ended by TIMEOUT without a successor, "
            "its tree holds trials, and its log, which was read, says nothing of an export.\n"
            "Action: consolidate by hand. No thresholds.\n"
            f"Source: {self.source}."
        )
