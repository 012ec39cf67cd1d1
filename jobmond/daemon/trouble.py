"""Work that failed because of the database: when to do it again."""

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(slots=True)
class Again:
    """Sweeps and chores that the database did not take: done again sooner than they would be.

    `first` is the pause after a failure, which doubles up to `longest`. Instants are monotonic
    seconds.
    """

    first: timedelta
    longest: timedelta
    _due: dict[str, tuple[float, float]] = field(default_factory=dict)

    def failed(self, work: str, *, at_s: float) -> None:
        _, before_s = self._due.get(work, (0.0, 0.0))
        pause_s = min(max(2 * before_s, self.first.total_seconds()), self.longest.total_seconds())
        self._due[work] = (at_s + pause_s, pause_s)

    def worked(self, work: str) -> None:
        self._due.pop(work, None)

    def due(self, at_s: float) -> list[str]:
        """What is to be done by now, each until it failed or worked again."""
        return [work for work, (due_s, _) in self._due.items() if due_s <= at_s]
