"""How long a step takes: a trailing window, free of the pauses that saving makes."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

WINDOW = 50
_DURATIONS = 20
_SPIKE = 2.5
_CLOCK_S = 1.0  # bars show whole seconds


@dataclass(slots=True)
class Pace:
    """The last bar frames (`[n, elapsed_s]`) and the last durations a trainer printed."""

    frames: list[list[float]] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)

    def painted(self, n: int, elapsed_s: float | None) -> None:
        if elapsed_s is None:
            return
        if self.frames and (n < self.frames[-1][0] or elapsed_s < self.frames[-1][1]):
            self.frames.clear()
        if self.frames and n == self.frames[-1][0]:
            return
        self.frames.append([n, elapsed_s])
        del self.frames[:-WINDOW]

    def took(self, seconds: float) -> None:
        if 0 <= seconds < float("inf"):
            self.durations.append(seconds)
            del self.durations[:-_DURATIONS]

    def s_per_step(self) -> float | None:
        """Seconds a step takes now; None before two steps are known."""
        if self.durations:
            return median(self.durations)
        return _without_spikes(
            [
                (later[0] - sooner[0], later[1] - sooner[1])
                # The first step of a bar pays for compilation, and after a resume it counts for
                # all the steps that were skipped.
                for sooner, later in zip(self.frames[1:], self.frames[2:], strict=False)
            ]
        )

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {"frames": self.frames, "durations": self.durations}


def _without_spikes(gaps: list[tuple[float, float]]) -> float | None:
    for _ in range(3):
        steps = sum(n for n, _ in gaps)
        if not steps:
            return None
        mean = sum(s for _, s in gaps) / steps
        calm = [(n, s) for n, s in gaps if s <= _SPIKE * mean * n + _CLOCK_S]
        if len(calm) == len(gaps):
            break
        gaps = calm
    return mean
