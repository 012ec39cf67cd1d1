"""What does not work: said once, and once more when it works again."""

from dataclasses import dataclass, field
from datetime import timedelta

import structlog

journal = structlog.get_logger("jobmond.daemon")


@dataclass(slots=True)
class Troubles:
    """Which kinds of work fail, by what they say. Work that failed is called by its name."""

    _known: dict[str, set[str]] = field(default_factory=dict)

    @property
    def newest(self) -> str | None:
        """The trouble that began last, of those that are not over."""
        return next(reversed(self._known), None)

    def failed(self, work: str, error: str) -> None:
        """`work` failed; the journal hears of every error once, however much fails of it."""
        for other in [e for e, works in self._known.items() if e != error and work in works]:
            self._without(work, other)
        if error not in self._known:
            journal.error("failed", what=work, error=error)
        self._known.setdefault(error, set()).add(work)

    def worked(self, work: str) -> None:
        """`work` was done. A trouble is over when all that failed of it was done since."""
        for error in [e for e, works in self._known.items() if work in works]:
            if self._without(work, error):
                journal.info("works again", what=work, was=error)

    def _without(self, work: str, error: str) -> bool:
        self._known[error].discard(work)
        if self._known[error]:
            return False
        del self._known[error]
        return True


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
