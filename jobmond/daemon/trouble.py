"""Sweeps that failed because of the database: when to do them again."""

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(slots=True)
class Again:
    """Sweeps that the database did not take: done again sooner than at the next tick.

    `first` is the pause after a failure, which doubles up to `longest`. Instants are monotonic
    seconds.
    """

    first: timedelta
    longest: timedelta
    _due: dict[str, tuple[float, float]] = field(default_factory=dict)

    def failed(self, cluster: str, *, at_s: float) -> None:
        _, before_s = self._due.get(cluster, (0.0, 0.0))
        pause_s = min(max(2 * before_s, self.first.total_seconds()), self.longest.total_seconds())
        self._due[cluster] = (at_s + pause_s, pause_s)

    def worked(self, cluster: str) -> None:
        self._due.pop(cluster, None)

    def due(self, at_s: float) -> list[str]:
        """The clusters whose time has come, each until it failed or worked again."""
        return [cluster for cluster, (due_s, _) in self._due.items() if due_s <= at_s]
