"""Which reward regime a run is in: rewards of different regimes cannot be compared.

Source: OpenThoughts-Agent, monitor-job-tables notes (integrality of reward x rollouts per step).
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from math import isfinite

# What trainers call the number of rollouts that the mean reward of a step is taken over.
ROLLOUTS = ("generate/batch_num_seq",)

_SINGLE = 1e-6  # a share of the value: the mean may have been taken in single precision
_UNDECIDED = 0.25  # rollouts; with more uncertainty any sum could be a whole number


class Regime(StrEnum):
    """Whether every rollout was rewarded with a whole number, or partial credit was shaped in."""

    SHAPED = "shaped"
    BASE = "base"


def rollouts_per_step(metrics: Mapping[str, object]) -> int | None:
    """How many rollouts the last step had, where its trainer says so."""
    for name in ROLLOUTS:
        count = metrics.get(name)
        if isinstance(count, int | float) and isfinite(count) and count > 0 and count % 1 == 0:
            return int(count)
    return None


def regime(reward: object, rollouts: int | None, *, like: Iterable[float] = ()) -> Regime | None:
    """What `reward`, the mean over `rollouts`, tells; None where it tells nothing.

    A printed number is only as exact as its last decimal, which one value hides if it ends in
    zeros: `like` are rewards of other steps of the same log.
    """
    if rollouts is None or isinstance(reward, bool) or not isinstance(reward, int | float):
        return None
    if not isfinite(reward):
        return None
    printed = max(map(_decimals, [reward, *like]))
    unsure = rollouts * max(0.5 * 10.0**-printed, _SINGLE * abs(reward))
    if unsure > _UNDECIDED:
        return None
    total = Fraction(reward) * rollouts
    away = abs(total - round(total))
    return Regime.BASE if away <= unsure else Regime.SHAPED


def marks(regimes: Sequence[Regime | None]) -> list[Regime | None]:
    """How to mark rows that stand in one table: as they are once any of them is shaped, else not
    at all.
    """
    return list(regimes) if Regime.SHAPED in regimes else [None] * len(regimes)


def _decimals(value: float) -> int:
    """Decimals of the shortest text that means `value`; at most 30."""
    mantissa, _, exponent = repr(float(value)).partition("e")
    digits = mantissa.partition(".")[2].rstrip("0")
    return min(30, max(0, len(digits) - int(exponent or 0)))
