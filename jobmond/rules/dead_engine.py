"""Generation in which nobody answers the agents."""

from collections.abc import Iterable
from dataclasses import dataclass

from jobmond import registry
from jobmond.analysis.evidence import at_work, value
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case


@registry.rules.plugin("dead-engine")
@dataclass(frozen=True, slots=True)
class DeadEngine:
    """Agents take one turn each: on average over all trials, or each of the last `last`."""

    turns_max: float = 1.05
    least: int = 10
    last: int = 20

    id = "dead-engine"
    source = "OpenThoughts-Agent, monitor-job-tables notes (avg_turns near 1.0 is a dead engine)"
    needs = ("trials",)

    def judge(self, case: Case) -> Iterable[Signal]:
        trials = value(case.trials)
        if case.job.bucket is not Bucket.DATAGEN or trials is None or trials.avg_turns is None:
            return
        newest = [t.turns for t in trials.recent if t.turns is not None][-self.last :]
        lately = len(newest) == self.last and max(newest) <= 1
        throughout = trials.turns_of >= self.least and trials.avg_turns <= self.turns_max
        if not throughout and not (lately and at_work(case)):
            return
        what = (
            f"{trials.avg_turns:.2f} turns a trial over {trials.turns_of}"
            if throughout
            else f"one turn in each of the last {self.last} trials"
        )
        yield Signal(
            rule=self.id,
            severity=Severity.ALARM,
            title=f"{what}: dead engine, do not consolidate",
            evidence={
                "avg_turns": trials.avg_turns,
                "trials": trials.turns_of,
                "source": trials.turns_source,
            },
            action="inspect",
        )

    def explain(self) -> str:
        return (
            f"dead-engine (alarm; datagen only): the average of turns is at most {self.turns_max} "
            f"over at least {self.least} trials, or each of the last {self.last} took one turn.\n"
            "Such traces are empty: do not consolidate them. Exceptions do not matter here: a\n"
            "fifth to a quarter of trials with one is normal for hard sets.\n"
            f"Source: {self.source}."
        )
