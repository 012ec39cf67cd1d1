"""A run in a setting that nobody has tried: its numbers alone are not to be trusted."""

from collections.abc import Iterable
from dataclasses import dataclass

from jobmond import registry
from jobmond.analysis.evidence import at_work
from jobmond.analysis.tried import DEEP_PROBE, plain_setting, words_of
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case


@registry.rules.plugin("deep-probe")
@dataclass(frozen=True, slots=True)
class DeepProbe:
    """RUNNING RL, its setting has no completed run, and no person has probed it."""

    id = DEEP_PROBE
    source = (
        "OpenThoughts-Agent, monitor-job-tables notes (new or untested RL run: deep-probe it, "
        "do not trust the row)"
    )

    def judge(self, case: Case) -> Iterable[Signal]:
        job, setting = case.job, case.untested
        if setting is None or job.bucket is not Bucket.RL or not at_work(case):
            return
        if "tested" in job.labels:
            return
        what = "smoke test" if setting.smoke is not None else f"new setting ({words_of(setting)})"
        yield Signal(
            rule=self.id,
            severity=Severity.INFO,
            title=f"{what}: deep probe due",
            evidence=plain_setting(setting),
            action="inspect",
        )

    def explain(self) -> str:
        return (
            "deep-probe (info; RL only): the job runs in a setting (submit line or script, nodes\n"
            "and GPUs, labels model= image= config= commit=) of which no run has COMPLETED, or is\n"
            "a smoke test (label `smoke`): a row can read healthy on a silently dead run.\n"
            "Opens one follow-up a setting. Clears when that is closed with its verdict, when a\n"
            "run of the setting completes, and with the label `tested`. No thresholds.\n"
            f"Source: {self.source}."
        )
