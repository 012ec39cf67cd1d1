"""Which step a record belongs to where the trainer prints none (the Hugging Face family).

A trainer whose output is not buffered paints its bar right before each record, and most paint it
again right after, which tells more: the first may lag. Where standard output is buffered, records
come in bursts long after their steps; they are then counted, at the largest interval that puts
none of them ahead of the bar.
"""

from dataclasses import dataclass, field
from typing import Any

_PINS = 50


@dataclass(slots=True)
class StepGuess:
    """Steps of one life's records, corrected as more is read.

    `steps` holds those of the last records. `mode` is `live`, `burst` or not known yet.
    `interval` is the distance of two records; in a burst an upper bound that only falls.
    `repaints` says whether the bar is painted again after a record, None while `pins` (the bar
    before and after each record) allow both.
    """

    start: int = 0
    mode: str = ""
    interval: int = 0
    count: int = 0  # records in this life, or since bursts began
    since_bar: int = 0  # records since the last bar
    bar: int | None = None
    on_bar: bool = False  # the last record stands on the line of that bar
    repaints: bool | None = None
    pins: list[list[int]] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    moved_from: int = 0  # from which entry of `steps` on somebody must be told

    def record(self, *, on_bar: bool = False) -> int | None:
        """The step of a new record, as far as is known now; None before any bar."""
        self.on_bar = on_bar
        self.count += 1
        self.since_bar += 1
        if self.bar is None:
            return None
        if self.since_bar > 1 and not self.mode:
            self.mode, self.interval = "burst", 0
        if self.since_bar > 2 and self.mode == "live":
            self._buffered()
        self.steps.append(self._next(self.bar))
        if self.mode == "burst":
            self.steps[-1] = self._counted(self.count)
            self._bound(self.bar)
        return self.steps[-1]

    def painted(self, n: int) -> None:
        """The training bar stands at `n`."""
        if self.since_bar and self.steps and self.bar is not None:
            if not self.mode and self.since_bar == 1:
                self.mode = "live"
            if self.mode == "live" and self.since_bar == 1:
                self._pinned(self.bar, self.bar if self.on_bar else n)
            elif self.mode == "burst":
                self._bound(n)
        self.since_bar = 0
        self.bar = n

    def forget(self, count: int) -> None:
        """The first `count` entries of `steps` are settled."""
        del self.steps[:count]
        self.moved_from = max(0, self.moved_from - count)

    def _next(self, bar: int) -> int:
        if not self.steps or not self.interval or (self.on_bar and self.mode == "live"):
            return bar
        return max(bar, self.steps[-1] + self.interval)

    def _pinned(self, before: int, after: int) -> None:
        """One record between two bars: it is at the second if that was painted for it."""
        if self.repaints is None:
            self.pins.append([before, after])
            self.repaints = _repaints(self.pins)
            if self.repaints:
                self._place([pin[1] for pin in self.pins])
            if self.repaints is not None or len(self.pins) > _PINS:
                self.pins = []
                self.repaints = bool(self.repaints)
        self._place([after if self.repaints else before])

    def _place(self, ends: list[int]) -> None:
        """The last records are at `ends`, as far as they still can move."""
        for place, step in enumerate(reversed(ends), 1):
            if place <= len(self.steps) and self.steps[-place] != step:
                self.steps[-place] = step
                self.moved_from = min(self.moved_from, len(self.steps) - place)
        self.interval = 0
        if len(self.steps) > 1:
            self.interval = max(0, self.steps[-1] - self.steps[-2])

    def _buffered(self) -> None:
        """Records come without bars between them now; those before stay where they are."""
        before = len(self.steps) - self.since_bar + 1
        self.start = self.steps[before - 1] if before else self.start
        self.forget(before)
        self.mode, self.interval, self.count = "burst", 0, self.since_bar

    def _bound(self, n: int) -> None:
        """The last record is at `n` at most, which may pull all of them back."""
        most = max(1, (n - self.start) // self.count)
        if self.interval and most >= self.interval:
            return
        self.interval = most
        first = self.count - len(self.steps) + 1
        for place in range(len(self.steps)):
            self.steps[place] = self._counted(first + place)
        self.moved_from = 0

    def _counted(self, index: int) -> int:
        return self.start + self.interval * index

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


def _repaints(pins: list[list[int]]) -> bool | None:
    """Whether the second bar of each pair was painted for the record between them.

    Trainers log at multiples of their interval, so the side that holds multiples is the one.
    """
    before, after = pins[-1]
    if before in (after, 0):
        return True
    if len(pins) < 2:
        return None
    interval = after - pins[-2][1]
    if interval <= 0 or (before % interval == 0) == (after % interval == 0):
        return None
    return after % interval == 0
