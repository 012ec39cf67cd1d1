"""Has it failed like this before, and will it again? Said from the failures that came before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from jobmond.model.outcome import Recurrence

_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip
_NUMBERS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
)  # fmt: skip
_SPREAD = 0.1  # of the middle life that lives of the same length may differ by …
_LEAST_SPREAD_S = 60  # … and always this much
_DATES = 20  # of its last likes are kept
_PROVES = 3  # failures alike that no chance explains; two where they lived equally long


@dataclass(frozen=True, slots=True)
class Earlier:
    """A failure that came before: when it ended, its signature, how long it had lived."""

    at: datetime
    fingerprint: str
    elapsed_s: int | None = None
    ref: str | None = None


def recurrence(
    earlier: Sequence[Earlier],
    *,
    fingerprint: str,
    at: datetime,
    elapsed_s: int | None = None,
    others: Sequence[datetime] = (),
) -> Recurrence:
    """How the failure `fingerprint` at `at` stands among `earlier` ones of the same run.

    What lies after `at` does not count. The order of `earlier` does not matter. `others` are when
    other runs of the cluster failed in the same way.
    """
    before = sorted((each for each in earlier if each.at < at), key=lambda each: each.at)
    alike = [each for each in before if each.fingerprint == fingerprint]
    count = len(alike) + 1
    interval = _same([*(each.elapsed_s for each in alike), elapsed_s]) if alike else None
    lives = [*(each.elapsed_s for each in before[-(_PROVES - 1) :]), elapsed_s]
    fixed = _same(lives) if len(lives) >= _PROVES else None
    lasting = count >= _PROVES or interval is not None
    previous = before[-1].fingerprint if before else None
    elsewhere = sorted(each for each in others if each <= at)
    words = _words(alike, at, interval=interval, fixed=fixed, previous=previous)
    return Recurrence(
        count=count,
        dates=tuple(each.at for each in alike[-_DATES:]),
        interval_s=interval,
        fixed_s=fixed,
        transient=False if lasting else None,
        previous=previous,
        words=words + _beside(elsewhere, at),
        elsewhere=len(elsewhere),
    )


def _beside(others: Sequence[datetime], at: datetime) -> str:
    if not others:
        return ""
    runs = "one other job" if len(others) == 1 else f"{_number(len(others))} jobs of other runs"
    span = _span((at - others[0]).total_seconds())
    return f"; {runs} on the cluster failed in the same way in the last {span}"


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
        text += f"; the last {_number(_PROVES)} failures all came after about {_span(fixed)}"
    if previous is not None and not alike:
        text += f"; the failure before was {previous.partition(':')[0]}"
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
