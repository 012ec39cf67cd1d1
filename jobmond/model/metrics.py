"""What training logs say: segments of text, events read from them, series of numbers."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

# The quantities that have one name whatever the trainer calls them.
CANONICAL = frozenset(
    {
        "reward",
        "reward_std",
        "pass_at_n",
        "policy_loss",
        "entropy",
        "grad_norm",
        "clip_ratio",
        "importance_ratio",
        "importance_capped_fraction",
        "log_ratio_abs_mean",
        "log_ratio_abs_max",
        "kl",
        "loss",
        "eval_loss",
        "learning_rate",
        "epoch",
    }
)

# What a dialect remembers between segments: plain JSON values, so that reading can stop anywhere.
Memory: TypeAlias = dict[str, Any]


class Segment(NamedTuple):
    """A piece of a log between line feeds or carriage returns, without either.

    `offset` is the byte at which it begins in the file. `closed` is False for the last piece of
    what was read where no terminator followed yet: more of it may come.
    """

    offset: int
    raw: bytes
    closed: bool = True


@dataclass(frozen=True, slots=True)
class Record:
    """The numbers of one step, under the trainer's names; complete.

    `step` is None where the dialect prints none. `kind` is `train`, `eval` (says nothing about
    progress) or `end` (a summary after the last step). `coarse` names values that print as zero
    only because the trainer rounds. `on_bar`: it stands on the line of a bar.
    """

    step: int | None
    metrics: Mapping[str, float]
    kind: str = "train"
    coarse: tuple[str, ...] = ()
    on_bar: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A painted training bar (`n` of `total` steps after `elapsed_s` seconds).

    `fresh` says that it is the first frame of a bar: it begins at `n`.
    """

    n: int
    total: int
    elapsed_s: float | None = None
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class MaxStep:
    """The last step, as a banner or a rendered configuration says."""

    step: int


@dataclass(frozen=True, slots=True)
class LifeStart:
    """The trainer starts; a new life if the one before got anywhere."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """This life continues from `step`."""

    step: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The log says that `step` is saved, completely."""

    step: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The trainer says that it reached its end."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The trainer says that it failed, or its shell that it was killed; taken back by a record."""


Event: TypeAlias = Record | Bar | MaxStep | LifeStart | Resumed | Checkpoint | Finished | Failed


@dataclass(frozen=True, slots=True)
class Column:
    """One metric over steps, ascending; a step without a value is absent."""

    steps: Sequence[int]
    values: Sequence[float]

    def at(self, step: int) -> float | None:
        """The value logged at `step`."""
        place = bisect_left(self.steps, step)
        found = place < len(self.steps) and self.steps[place] == step
        return self.values[place] if found else None

    def before(self, step: int, count: int) -> Sequence[float]:
        """Up to `count` values logged before `step`, oldest first."""
        place = bisect_left(self.steps, step)
        return self.values[max(0, place - count) : place]


_NOTHING = Column((), ())


@dataclass(frozen=True, slots=True)
class RunSeries:
    """What rules see of a run's numbers: every life, the later value wins at each step.

    `columns` holds canonical names and those trainer's names that a rule asks for. `judged` are
    the steps that no rule has seen yet, ascending; `first_step` is the first logged step of the
    life they belong to. `coarse` names metrics whose zeros may be rounding. The pass rate of the
    last hundred trials pairs with the newest step only.
    """

    columns: Mapping[str, Column]
    judged: Sequence[int]
    life: int = 1
    first_step: int | None = None
    coarse: frozenset[str] = frozenset()
    pass_rate: float | None = None
    trials: int = 0

    def column(self, *names: str) -> Column:
        """The first of `names` that was ever logged, else an empty column."""
        return next((self.columns[name] for name in names if name in self.columns), _NOTHING)
