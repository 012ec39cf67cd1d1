"""What a log has said so far: lives, step, last metrics, series, checkpoints, pace."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from jobmond.analysis.pace import Pace
from jobmond.analysis.stepguess import StepGuess
from jobmond.analysis.track import AT_HAND, CURRENT, Track
from jobmond.model.metrics import (
    Bar,
    Checkpoint,
    Event,
    Failed,
    Finished,
    LifeStart,
    MaxStep,
    Record,
    Resumed,
)
from jobmond.model.state import Bucket
from jobmond.ports import MetricParser

JUDGE_EVERY = CURRENT // 2
_NAMES = 2_000  # metrics of one life; a hostile log could invent them without end
_CHECKPOINTS = 10_000
_JUMP = 8  # a first bar beyond this, followed by small steps, was a resume


@dataclass(slots=True)
class LogState:
    """The fold over a dialect's events. Everything but `checkpoints` and `track` is the newest
    life's. `judge` is called when records must be judged before they settle.
    """

    own_steps: bool
    dialect_bucket: Bucket = Bucket.OTHER
    life: int = 1
    resumed_from: int | None = None
    max_step: int | None = None
    record_step: int | None = None
    records: int = 0
    bar: int | None = None
    bar_first: int | None = None
    bar_second: int | None = None
    bar_elapsed_s: float | None = None
    finished: bool = False
    failed: bool = False
    rewarded: bool = False
    unjudged: int = 0
    withheld: dict[str, dict[str, Any]] = field(default_factory=dict)  # firings that wait
    inherited: bool = False  # what was read of this life may be another job's
    last: dict[str, float] = field(default_factory=dict)
    canonical: dict[str, float] = field(default_factory=dict)
    coarse: set[str] = field(default_factory=set)
    checkpoints: set[int] = field(default_factory=set)
    guess: StepGuess = field(default_factory=StepGuess)
    pace: Pace = field(default_factory=Pace)
    track: Track = field(default_factory=Track)

    @property
    def bucket(self) -> Bucket:
        """Where the log belongs by itself: what is rewarded is reinforcement learning."""
        return Bucket.RL if self.rewarded else self.dialect_bucket

    @property
    def step(self) -> int | None:
        """The newest step that the text proves within the newest life."""
        if self.own_steps:
            return self.record_step
        known = [step for step in (self.bar, self.record_step) if step is not None]
        return max(known, default=None)

    @property
    def moving(self) -> bool:
        """Whether this life got anywhere, so that another start is another life.

        Where records carry their step, the bar may be one ahead of a record still to come.
        """
        ahead = 1 if self.own_steps else 0
        advanced = (self.bar or 0) > (self.bar_first or 0) + ahead
        return self.records > 0 or advanced

    @property
    def phase(self) -> str:
        """`bring-up training finishing done failed`; most failures are proved elsewhere."""
        if self.finished:
            return "done"
        if self.failed:
            return "failed"
        if not self.moving and (self.own_steps or self.bar is None):
            return "bring-up"
        at = self.step if self.step is not None else self.bar
        return "finishing" if at is not None and at == self.max_step else "training"

    @property
    def rate_s_per_step(self) -> float | None:
        """Seconds a step takes, by the trailing window."""
        return self.pace.s_per_step()

    @property
    def eta_s(self) -> float | None:
        """Seconds the remaining steps take."""
        rate, step = self.rate_s_per_step, self.step
        if rate is None or step is None or self.max_step is None or self.finished:
            return None
        return max(0, self.max_step - step) * rate

    def take(
        self, event: Event, parser: MetricParser, judge: Callable[["LogState"], None] | None = None
    ) -> None:
        """Fold one event in."""
        match event:
            case Record():
                self._record(event, parser, judge)
            case Bar():
                self._bar(event, judge)
            case LifeStart():
                if self.moving or self.finished or self.failed:
                    self.begin(judge)
            case _:
                self._note(event)

    def _note(self, event: Event) -> None:
        """What is said beside records and bars."""
        match event:
            case MaxStep(step):
                self.max_step = step
            case Resumed(step):
                self.resumed_from = step
                self.guess.start = step if not self.guess.count else self.guess.start
            case Checkpoint(step):
                if len(self.checkpoints) < _CHECKPOINTS:
                    self.checkpoints.add(step)
            case Finished():
                self.finished = True
            case Failed():
                self.failed = True

    def begin(self, judge: Callable[["LogState"], None] | None = None) -> None:
        """A new life. What it logs wins over what earlier ones logged at the same steps."""
        if judge is not None and self.unjudged:
            judge(self)
        self.track.settle(len(self.track.current))
        self.track.begun = None
        fresh = LogState(self.own_steps)
        kept = {"own_steps", "dialect_bucket", "life", "checkpoints", "track", "rewarded"}
        for item in fields(self):
            if item.name not in kept:
                setattr(self, item.name, getattr(fresh, item.name))
        self.life += 1

    def _record(
        self, event: Record, parser: MetricParser, judge: Callable[["LogState"], None] | None
    ) -> None:
        training = event.kind == "train"
        if training and event.step is not None and event.step < (self.record_step or 0):
            self.begin(judge)
        canonical = parser.canonical(event.metrics)
        self.rewarded |= "reward" in canonical
        guessed = event.step is None and not self.own_steps
        step = event.step
        if guessed:
            step = self.guess.record(on_bar=event.on_bar) if training else self.step
        if len(self.last) < _NAMES:
            self.last.update(event.metrics)
        self.canonical.update(canonical)
        if event.coarse:
            self.coarse.update(name for name in event.coarse if name in parser.kept)
            self.coarse.update(parser.canonical(dict.fromkeys(event.coarse, 0.0)))
        metrics = event.metrics
        kept = {n: metrics[n] for n in parser.kept if n in metrics} if self.track.thin else metrics
        self.track.put(step, {**kept, **canonical}, trained=training, merge=not guessed)
        if guessed:
            self._moved()
        if training:
            self._advance(event, step, parser)
        if self.unjudged >= JUDGE_EVERY and judge is not None:
            judge(self)
        if len(self.track.current) > CURRENT:
            self._settle(JUDGE_EVERY)

    def put_away(self) -> None:
        """Keep at hand only what the next records need; all that is here must have been judged."""
        if not self.own_steps and self.guess.mode != "live":
            return  # all its steps may still move
        if len(self.track.current) > 2 * AT_HAND:
            self._settle(AT_HAND)
        self.track.put_away()

    def _settle(self, kept: int) -> None:
        self.track.settle(len(self.track.current) - kept)
        trained = sum(entry.trained for entry in self.track.current)
        self.guess.forget(max(0, len(self.guess.steps) - trained))

    def _advance(self, event: Record, step: int | None, parser: MetricParser) -> None:
        self.failed = False
        self.records += 1
        self.unjudged += 1
        if step is not None:
            self.record_step = step
        if parser.pace is not None and parser.pace[0] in event.metrics:
            self.pace.took(event.metrics[parser.pace[0]] * parser.pace[1])

    def _bar(self, event: Bar, judge: Callable[["LogState"], None] | None) -> None:
        if self._restarted(event):
            self.begin(judge)
        self.max_step = event.total
        if self.bar_first is None:
            self.bar_first = event.n
            begun_later = event.fresh and event.n and not self.records
            if self.own_steps and begun_later and self.resumed_from is None:
                self.resumed_from = event.n
        elif self.bar_second is None and event.n > self.bar_first:
            self.bar_second = event.n
        elif self.bar_second is not None and event.n > self.bar_second:
            self._jumped(event.n)
        self.bar, self.bar_elapsed_s = event.n, event.elapsed_s
        self.pace.painted(event.n, event.elapsed_s)
        if not self.own_steps:
            self.guess.painted(event.n)
            self._moved()

    def _restarted(self, event: Bar) -> bool:
        """A bar that goes back begins anew; one that only lags (another rank's) does not."""
        if self.bar is None or event.n >= self.bar or not self.moving:
            return False
        before, now = self.bar_elapsed_s, event.elapsed_s
        return event.n == 0 or (before is not None and now is not None and now < before / 2)

    def _jumped(self, n: int) -> None:
        """A bar that begins at nothing, leaps, and then goes in small steps was resumed."""
        second = self.bar_second or 0
        small = n - second <= second // _JUMP
        if not self.own_steps and not self.bar_first and second > _JUMP and small:
            self.resumed_from = self.resumed_from or second - 1
            if self.guess.mode != "live":
                self.guess.start = self.resumed_from

    def _moved(self) -> None:
        """Give records whose step was corrected the new one."""
        steps, since = self.guess.steps, self.guess.moved_from
        if since >= len(steps):
            return
        self.guess.moved_from = len(steps)
        trained = [entry for entry in self.track.current if entry.trained]
        for entry, step in zip(trained[-len(steps) :][since:], steps[since:], strict=False):
            entry.step = step
        self.record_step = steps[-1]
