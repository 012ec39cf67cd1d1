"""Rules over a log that nobody watches any more: every step once, as if it came in now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from jobmond.analysis.logstate import LogState
from jobmond.model.job import Choices, Job
from jobmond.model.observation import Facts
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Kind, State
from jobmond.ports import Case, Rule

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Firing:
    """A run of firing steps of one rule in one life."""

    life: int
    signal: Signal


@dataclass(slots=True)
class Replay:
    """Judges the records of a log as they come, life by life."""

    rules: Sequence[Rule]
    labels: frozenset[str]
    bucket: Bucket | None = None
    pass_rate: float | None = None  # of the last `trials` trials
    trials: int = 0
    firings: list[Firing] = field(default_factory=list)
    _before: int | None = None

    @property
    def judged(self) -> bool:
        """Whether any record was."""
        return self._before is not None

    def judge(self, state: LogState) -> None:
        """Every record that was not judged yet."""
        series = state.track.for_rules(state.life, state.coarse)
        state.unjudged = 0
        if not series.judged:
            return
        bucket = self.bucket or state.bucket
        series = replace(series, pass_rate=self.pass_rate, trials=self.trials)
        case = Case(None, _job(bucket, self.labels, state.life), _LONG_AGO, series)
        for rule in self.rules:
            for signal in rule.judge(case):
                self._add(Firing(state.life, signal), series.judged[0])
                state.track.protected.update(
                    step for step in (signal.step, signal.last_step) if step is not None
                )
        self._before = series.judged[-1]

    def _add(self, firing: Firing, first: int) -> None:
        """A run that goes on from the records judged before is one run."""
        for place, known in enumerate(self.firings):
            same = known.life == firing.life and known.signal.rule == firing.signal.rule
            if same and firing.signal.step == first and known.signal.last_step == self._before:
                longer = replace(known.signal, last_step=firing.signal.last_step)
                self.firings[place] = Firing(firing.life, longer)
                return
        self.firings.append(firing)


def standing(
    firings: Iterable[Firing], *, life: int, newest: int | None, latched: Iterable[str]
) -> list[Signal]:
    """The signals of a life as a report shows them: one a rule, from its first firing to its
    last. What is not latched stands only while its last firing is at the newest step.
    """
    found: dict[str, Signal] = {}
    for firing in firings:
        if firing.life != life:
            continue
        known = found.get(firing.signal.rule)
        found[firing.signal.rule] = (
            firing.signal if known is None else replace(known, last_step=firing.signal.last_step)
        )
    kept = frozenset(latched)
    return [s for s in found.values() if s.rule in kept or s.last_step == newest]


def _job(bucket: Bucket, labels: frozenset[str], life: int) -> Job:
    return Job(
        id=0,
        cluster="",
        kind=Kind.LOCAL,
        native_id="",
        birth=None,
        run="",
        life=life,
        bucket=bucket,
        type=str(bucket),
        labels=labels,
        choices=Choices(),
        facts=Facts(),
        state=State.RUNNING,
        native="RUNNING",
        added_at=_LONG_AGO,
    )
