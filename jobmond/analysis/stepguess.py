"""Which step a record belongs to where the trainer prints none (the Hugging Face family).

A trainer whose output is not buffered paints its bar again right after each record, and that bar
is at the record's step. Where standard output is buffered, records come in bursts long after
their steps; they are then counted, at the largest interval that puts none of them ahead of the
bar.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class StepGuess:
    """Steps of one life's records, corrected as more is read.

    `steps[i]` belongs to the i-th record of the life. `mode` is `live`, `burst` or not known
    yet. `interval` is the distance of two records; in a burst an upper bound that only falls.
    """

    start: int = 0
    mode: str = ""
    interval: int = 0
    count: int = 0  # records in this life
    since_bar: int = 0  # records since the last bar
    bar: int | None = None
    steps: list[int] = field(default_factory=list)  # of the records that may still move
    moved_from: int = 0  # from which entry of `steps` on somebody must be told

    def record(self) -> int | None:
        """The step of a new record, as far as is known now; None before any bar."""
        self.count += 1
        self.since_bar += 1
        if self.bar is None:
            return None
        if self.since_bar > 1 and not self.mode:
            self.mode, self.interval = "burst", 0
        if self.since_bar > 2 and self.mode == "live":
            self._buffered()
        expected = self._next()
        self.steps.append(expected)
        if self.mode == "burst":
            self.steps[-1] = self._counted(self.count)
            self._bound(self.bar)
        return self.steps[-1]

    def painted(self, n: int) -> None:
        """The training bar stands at `n`."""
        if self.since_bar and self.steps:
            if not self.mode and self.since_bar == 1:
                self.mode = "live"
            if self.mode == "live" and self.since_bar == 1:
                self._pinned(n)
            elif self.mode == "burst":
                self._bound(n)
        self.since_bar = 0
        self.bar = n

    def forget(self, count: int) -> None:
        """The first `count` entries of `steps` are settled."""
        del self.steps[:count]
        self.moved_from = max(0, self.moved_from - count)

    def _next(self) -> int:
        bar = self.bar or 0
        if not self.steps or not self.interval:
            return bar
        return max(bar, self.steps[-1] + self.interval)

    def _pinned(self, n: int) -> None:
        before = self.steps[-2] if len(self.steps) > 1 else None
        if before is not None and n <= before:
            return
        self.interval = n - before if before is not None else 0
        if self.steps[-1] != n:
            self.steps[-1] = n
            self.moved_from = min(self.moved_from, len(self.steps) - 1)

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
