"""Has it failed like this before, and will it again? Said from the failures that came before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip
_NUMBERS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
)  # fmt: skip
_SPREAD = 0.1  # of the middle life that lives of the same length may differ by …
_LEAST_SPREAD_S = 60  # … and always this much
_PROVES = 3  # failures alike that no chance explains; two where they lived equally long


@dataclass(frozen=True, slots=True)
class Earlier:
    """A failure that came before: when it ended, its signature, how long it had lived."""

    at: datetime
    fingerprint: str
    elapsed_s: int | None = None
    ref: str | None = None


@dataclass(frozen=True, slots=True)
class Recurrence:
    """How a failure stands among those before it.

    `count` is 1 where none was like it. `dates` are those of its likes, oldest first. `interval_s`
    is how long each of them lived where that was about the same; `fixed_s` how long the last
    attempts lived where all, whatever they died of, lived equally long. `transient` is false where
    trying again will not help, None where that is not known. `previous` is the signature of the
    attempt before. `words` says it in one line.
    """

    count: int
    dates: tuple[datetime, ...]
    interval_s: int | None
    fixed_s: int | None
    transient: bool | None
    previous: str | None
    words: str


def recurrence(
    earlier: Sequence[Earlier], *, fingerprint: str, at: datetime, elapsed_s: int | None = None
) -> Recurrence:
    """How the failure `fingerprint` at `at` stands among `earlier` ones of the same run.

    What lies after `at` does not count. The order of `earlier` does not matter.
    """
    before = sorted((each for each in earlier if each.at < at), key=lambda each: each.at)
    alike = [each for each in before if each.fingerprint == fingerprint]
    count = len(alike) + 1
    interval = _same([*(each.elapsed_s for each in alike), elapsed_s]) if alike else None
    lives = [*(each.elapsed_s for each in before[-(_PROVES - 1) :]), elapsed_s]
    fixed = _same(lives) if len(lives) >= _PROVES else None
    lasting = count >= _PROVES or interval is not None
    previous = before[-1].fingerprint if before else None
    return Recurrence(
        count=count,
        dates=tuple(each.at for each in alike),
        interval_s=interval,
        fixed_s=fixed,
        transient=False if lasting else None,
        previous=previous,
        words=_words(alike, at, interval=interval, fixed=fixed, previous=previous),
    )


def _words(
    alike: Sequence[Earlier],
    at: datetime,
    *,
    interval: int | None,
    fixed: int | None,
    previous: str | None,
) -> str:
    count = len(alike) + 1
    lasting = count >= _PROVES or interval is not None
    parts = [f"{_ordinal(count)} time"]
    if alike:
        parts[0] += f" in {_span((at - alike[0].at).total_seconds())}"
    if interval is not None:
        parts.append(f"each after about {_span(interval)}")
    text = ", ".join(parts) + (": not transient" if lasting else "")
    if interval is None and fixed is not None:
        text += f"; the last {_number(_PROVES)} attempts all ended after about {_span(fixed)}"
    if previous is not None and not alike:
        text += f"; the attempt before failed of {previous.partition(':')[0]}"
    return text


def _same(lives: Sequence[int | None]) -> int | None:
    """The middle of `lives` where all are known and about equal."""
    known = [life for life in lives if life is not None]
    if len(known) != len(lives) or len(known) < 2:
        return None
    middle = median(known)
    near = max(_LEAST_SPREAD_S, middle * _SPREAD)
    return round(middle) if max(known) - min(known) <= near else None


def _span(seconds: float) -> str:
    """A length of time as a person says it: the largest unit of which there are at least two."""
    for name, size in (("week", 604_800), ("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 1.5 * size:
            number = round(seconds / size)
            return f"{_number(number)} {name}s"
        if name != "week" and seconds >= 0.75 * size:
            return f"{'an' if name == 'hour' else 'a'} {name}"
    number = max(1, round(seconds))
    return f"{_number(number)} second" + ("" if number == 1 else "s")


def _ordinal(number: int) -> str:
    if number <= len(_ORDINALS):
        return _ORDINALS[number - 1]
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _number(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)
