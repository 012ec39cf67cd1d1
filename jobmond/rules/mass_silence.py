"""Many jobs that fall silent at once: their file system, or whoever reads it."""

from collections.abc import Iterable
from dataclasses import dataclass

from jobmond import registry
from jobmond.model.outcome import Signal
from jobmond.model.state import Severity
from jobmond.ports import Case


@registry.rules.plugin("mass-silence")
@dataclass(frozen=True, slots=True)
class MassSilence:
    """Most running jobs of a cluster stopped writing within one sweep of each other."""

    id = "mass-silence"
    source = (
        "field practice: a whole cluster silent is its file system or the monitor (jobgpumonitor)"
    )
    needs = ("log",)

    def judge(self, case: Case) -> Iterable[Signal]:
        if case.job.native_id not in case.view.hushed:
            return
        count, read = len(case.view.hushed), case.view.read
        yield Signal(
            rule=self.id,
            severity=Severity.WATCH,
            title=f"{count} of {read} running jobs of {case.job.cluster} fell silent together: "
            "look at the file system before the jobs",
            evidence={"silent": count, "running": read},
            action="inspect",
        )

    def explain(self) -> str:
        return (
            "mass-silence (watch): at least 3, and 80 % of the cluster's running jobs whose log "
            "was read,\nhave not written for 30 minutes and stopped within 20 minutes of each "
            "other. That is the\nfile system, or the reading of it, and is said once for all of "
            "them; none of them counts\nas stalled meanwhile. Clears by itself.\n"
            f"Source: {self.source}."
        )
