"""How often people may ask for a sweep. Time is an argument."""

from collections import deque
from dataclasses import dataclass, field

_HOUR_S = 3600.0


@dataclass(slots=True)
class _Purse:
    tokens: float
    at_s: float
    taken: deque[float] = field(default_factory=deque)


@dataclass(slots=True)
class SweepBudget:
    """A token bucket for each cluster, and never more than `per_hour` within any hour.

    The bucket alone would let `burst` + `per_hour` through in the first hour, so what was taken
    is remembered for an hour as well.
    """

    per_hour: int = 30
    burst: int = 10
    _purses: dict[str, _Purse] = field(default_factory=dict)

    def take(self, cluster: str, now_s: float) -> bool:
        """Whether one more sweep of `cluster` is allowed at `now_s` (monotonic seconds).

        An allowed one is counted. A clock that stands still or goes back gives no tokens.
        """
        purse = self._purses.setdefault(cluster, _Purse(float(self.burst), now_s))
        self._refill(purse, now_s)
        if purse.tokens < 1.0 or len(purse.taken) >= self.per_hour:
            return False
        purse.tokens -= 1.0
        purse.taken.append(now_s)
        return True

    def _refill(self, purse: _Purse, now_s: float) -> None:
        passed_s = max(0.0, now_s - purse.at_s)
        purse.at_s = max(purse.at_s, now_s)
        # The slack keeps a request made exactly every 1/per_hour from failing on rounding.
        gained = passed_s * self.per_hour / _HOUR_S + 1e-9
        purse.tokens = min(float(self.burst), purse.tokens + gained)
        while purse.taken and now_s - purse.taken[0] >= _HOUR_S:
            purse.taken.popleft()
