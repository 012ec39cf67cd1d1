"""How a run goes, in words: what happened since the last look, and where its numbers are going."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from statistics import fmean, pstdev

from jobmond.analysis.figures import figure
from jobmond.analysis.instants import span
from jobmond.analysis.logstate import LogState
from jobmond.model.state import Bucket

WINDOW = 10  # logged values before the newest: what the rules call a window
_EARLY = 3  # with fewer values nothing has a direction
_NEW_LIFE = 10  # steps for which a restart is news
_STILL_S = 600.0
_STILL_STEPS = 3.0

# The most that a value moves, as a share of what is usual, and how that is called.
_SLIGHT = 0.10
_SHARP = 0.30
_NOISE = 2.0  # standard deviations
_DRIFT_NOISE = 1.5  # of the two halves of the window

GRADIENTS_STRONG = 0.01
GRADIENTS_LARGE = 1.0
_EXPLODING = 100.0


@dataclass(frozen=True, slots=True)
class TrendFacts:
    """All that a trend is told from. What is not known is None or empty.

    `values` are the last logged values of what leads (the reward, or the loss where
    `descending` is good), the newest last; `grad_norms` likewise. `first_step` is the first one
    logged in this life, `life_steps` how many were. `saved` is the newest checkpoint that the log
    names; `before_step` the step at the look before this one. `phase_s` is how long the phase
    lasts, `still_s` how long no step came. `troubled`: a signal stands, so that nothing may be
    called healthy. `seqnorm`: gradients of 1e-5 are what the regime has. `behind`: much of the
    log is still to be read, so that its last values are not the newest.
    """

    phase: str
    step: int | None = None
    max_step: int | None = None
    descending: bool = False
    values: tuple[float, ...] = ()
    grad_norms: tuple[float, ...] = ()
    life: int = 1
    life_steps: int = 0
    first_step: int | None = None
    resumed_from: int | None = None
    saved: int | None = None
    before_step: int | None = None
    phase_s: float | None = None
    still_s: float | None = None
    rate_s_per_step: float | None = None
    troubled: bool = False
    seqnorm: bool = False
    behind: bool = False


def trend_facts(
    state: LogState,
    bucket: Bucket,
    *,
    phase: str | None = None,
    phase_s: float | None = None,
    still_s: float | None = None,
    before_step: int | None = None,
    troubled: bool = False,
    seqnorm: bool = False,
) -> TrendFacts:
    """The facts that a log gives, with those that only its watcher knows.

    `phase` is the log's own where none is given. `before_step` is that of the same life.
    """
    leading = "reward" if bucket is Bucket.RL else "loss"
    columns = state.track.columns({leading, "grad_norm"})
    until = 0 if state.step is None else state.step + 1
    recent = {name: tuple(column.before(until, WINDOW + 1)) for name, column in columns.items()}
    return TrendFacts(
        phase=phase or state.phase,
        step=state.step,
        max_step=state.max_step,
        descending=leading == "loss",
        values=recent.get(leading, ()),
        grad_norms=recent.get("grad_norm", ()),
        life=state.life,
        life_steps=state.records,
        first_step=state.track.first_made,
        resumed_from=state.resumed_from,
        saved=max((step for step in state.checkpoints if step < until), default=None),
        before_step=before_step,
        phase_s=phase_s,
        still_s=still_s,
        rate_s_per_step=state.rate_s_per_step,
        troubled=troubled,
        seqnorm=seqnorm,
    )


def trend(facts: TrendFacts) -> str | None:
    """One line for the tables: events as sentences, then the direction. None: nothing to say."""
    match facts.phase:
        case "queued":
            return f"Queued{_lasting(facts)}"
        case "bring-up":
            resuming = f", resuming from {_begin(facts)}" if _begin(facts) is not None else ""
            return f"Bring-up{_lasting(facts)}{resuming}"
        case "done":
            return _over(facts, "Done")
        case "failed":
            return _over(facts, "Failed")
    if facts.behind:
        return ". ".join([*_events(facts), "Its log is still being read"])
    said = [*_events(facts), *_direction(facts)]
    if not said and facts.step is not None:
        said = ["Too early to tell" if facts.values else "No metrics yet"]
    return ". ".join(said) or None


def _lasting(facts: TrendFacts) -> str:
    return "" if facts.phase_s is None else f" for {span(facts.phase_s)}"


def _begin(facts: TrendFacts) -> int | None:
    """The step a later life went on from."""
    if facts.resumed_from is not None:
        return facts.resumed_from or None
    first = facts.first_step
    return first - 1 if facts.life > 1 and first is not None and first > 1 else None


def _over(facts: TrendFacts, word: str) -> str:
    if facts.step is None:
        return f"{word} before the first step" if word == "Failed" else word
    if facts.max_step is not None and facts.step < facts.max_step:
        return f"{word} at step {facts.step} of {facts.max_step}"
    return f"{word} at step {facts.step}"


def _events(facts: TrendFacts) -> list[str]:
    """What has just changed, in the order in which it matters."""
    told = [_still(facts), _restart(facts), _checkpoint(facts)]
    if facts.phase == "finishing":
        told.append("Last step reached")
    return [text for text in told if text]


def _still(facts: TrendFacts) -> str | None:
    patience_s = max(_STILL_S, _STILL_STEPS * (facts.rate_s_per_step or 0.0))
    if facts.still_s is None or facts.still_s <= patience_s:
        return None
    return f"No new step for {span(facts.still_s)}"


def _restart(facts: TrendFacts) -> str | None:
    if facts.life_steps > _NEW_LIFE:
        return None
    begin = _begin(facts)
    if begin is not None:
        return f"Resumed at {begin}"
    if facts.life > 1 and facts.first_step is not None:
        return "Started over"
    return "First step landed" if facts.life_steps == 1 else None


def _checkpoint(facts: TrendFacts) -> str | None:
    """A checkpoint that is new since the last look."""
    saved, step = facts.saved, facts.step
    if saved is None or step is None or saved > step:
        return None
    if saved == step:
        return "Checkpoint saved"
    fresh = facts.before_step is not None and saved > facts.before_step
    return f"Checkpoint saved at {saved}" if fresh else None


def _direction(facts: TrendFacts) -> list[str]:
    if not facts.values:
        return []
    newest = facts.values[-1]
    if not isfinite(newest):
        subject = "Loss" if facts.descending else "Reward"
        return [f"{subject} is {'NaN' if isnan(newest) else 'infinite'}"]
    finite = [value for value in facts.values[-WINDOW - 1 :] if isfinite(value)]
    if len(finite) < _EARLY:
        return []
    return [(_loss if facts.descending else _reward)(_Course.of(finite), facts)]


@dataclass(frozen=True, slots=True)
class _Course:
    """Where a series of finite values goes; shares are of what is usual in it.

    `drift` is by how much its later half differs from its earlier one, `departure` by how much
    the newest value differs from the mean of those before; both None within the noise. `beyond`
    is how far it is outside all of those, `wobble` how far values stray within the halves.
    `settled`: the later half is one value.
    """

    constant: bool
    settled: bool
    newest: float
    begin: float
    level: float
    wobble: float
    beyond: float
    drift: float | None
    departure: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "_Course":
        most = max(abs(v) for v in values) or 1.0
        shares = [v / most for v in values]  # so that no sum overflows
        *window, newest = shares
        usual = fmean(abs(v) for v in shares) or 1.0
        level = fmean(window)
        half = len(shares) // 2
        sooner, later = shares[:half], shares[-half:]
        begin = fmean(sooner)
        drift, departure = fmean(later) - begin, newest - level
        wobble = max(pstdev(sooner), pstdev(later))
        beyond = max(newest - max(window), min(window) - newest, 0.0)
        return cls(
            constant=min(values) == max(values),
            settled=half >= _EARLY and min(later) == max(later),
            newest=values[-1],
            begin=begin * most,
            level=level * most,
            wobble=wobble / usual,
            beyond=beyond / usual,
            drift=drift / usual if abs(drift) > _DRIFT_NOISE * wobble else None,
            departure=departure / usual if abs(departure) > _NOISE * pstdev(window) else None,
        )

    def moves(self, least: float) -> float:
        """The drift if it is at least that, else 0."""
        return self.drift if self.drift is not None and abs(self.drift) >= least else 0.0

    def departs(self, least: float) -> float:
        """The departure if it is at least that, else 0."""
        return self.departure if self.departure and abs(self.departure) >= least else 0.0


_REWARD_DRIFT = 0.05
_REWARD_DEPARTURE = 0.03
_LOSS_DRIFT = 0.01
_LOSS_DEPARTURE = 0.05


def _reward(course: _Course, facts: TrendFacts) -> str:
    departure, drift = course.departs(_REWARD_DEPARTURE), course.moves(_REWARD_DRIFT)
    level = figure(course.level, 3)
    if course.constant or (course.settled and not drift):
        return f"Unchanged at {figure(course.newest, 3)}{_gradients(facts)}"
    if departure and course.beyond > _SHARP:
        return f"{'Sharp drop' if departure < 0 else 'Jump'} from {level}{_gradients(facts)}"
    if drift > 0:
        return f"Rising from {figure(course.begin, 3)}{_gradients(facts, praised=True)}"
    if drift < 0:
        return f"Falling from {figure(course.begin, 3)}{_gradients(facts)}"
    if departure:
        word = "dip" if departure < 0 else "rise"
        named = f"Slight {word}" if abs(departure) < _SLIGHT else word.capitalize()
        return f"{named} from {level}{_gradients(facts)}"
    return f"Stable{_gradients(facts, praised=True)}"


def _gradients(facts: TrendFacts, *, praised: bool = False) -> str:
    """What the newest gradient norm adds; that it is as it should be only where asked."""
    newest = facts.grad_norms[-1] if facts.grad_norms else None
    if newest is None or not isfinite(newest):
        return ""
    if newest == 0:
        return ", gradients zero"
    if newest > GRADIENTS_LARGE:
        return ", gradients large"
    if not praised or facts.seqnorm:
        return ""
    if newest < GRADIENTS_STRONG:
        return ", gradients small"
    return "" if facts.troubled else ", gradients strong"


def _loss(course: _Course, facts: TrendFacts) -> str:
    departure, drift = course.departs(_LOSS_DEPARTURE), course.moves(_LOSS_DRIFT)
    level = figure(course.level, 2)
    if course.constant or (course.settled and not drift):
        return f"Loss unchanged at {figure(course.newest, 2)}{_health(facts)}"
    if departure > 0 and course.beyond > _SHARP:
        return f"Loss jumped from {level}{_health(facts)}"
    if drift:
        rising = f"rising from {figure(course.begin, 2)}"
        return f"Loss {rising if drift > 0 else 'descending'}{_health(facts, drift < 0)}"
    if departure:
        word = "down" if departure < 0 else "up"
        return f"Loss {word} from {level}{_health(facts)}"
    steady = course.wobble <= _SHARP
    return f"Loss {'flat' if steady else f'unsteady around {level}'}{_health(facts, steady)}"


def _health(facts: TrendFacts, praised: bool = False) -> str:
    """What gradients add to what the loss does; that all is well only where asked."""
    if not facts.grad_norms:
        return ""
    *before, newest = facts.grad_norms
    if not isfinite(newest):
        return "; gradients not finite"
    if newest == 0:
        return "; gradients zero"
    window = [value for value in before[-WINDOW:] if isfinite(value)]
    usual = sum(value / len(window) for value in window)
    if newest > _EXPLODING or (len(window) >= WINDOW // 2 and newest / 2 > usual):
        return "; gradients up"
    return "; healthy" if praised and not facts.troubled else ""
