"""Since when the clock of this host has run on as clocks do."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from jobmond.ports import Clock

journal = structlog.get_logger("jobmond.sweep")

# Far above what a clock that is slewed gains between two looks, far below any patience of ours.
SET = timedelta(minutes=2)


@dataclass(slots=True)
class Steadiness:
    """`since` is when the clock was found set, as the clock now has it; None while it never was.

    A host that slept looks the same: nobody looked at anything meanwhile.
    """

    since: datetime | None = None
    _seen: tuple[datetime, float] | None = None

    def look(self, clock: Clock) -> datetime | None:
        """`since` as of now; tells the journal where the clock was set since the last look."""
        now, mono_s = clock.now(), clock.monotonic()
        if self._seen is not None:
            jump = (now - self._seen[0]) - timedelta(seconds=mono_s - self._seen[1])
            if abs(jump) >= SET:
                self.since = now
                journal.warning(
                    "the clock of this host was set, or the host slept: what lasts is counted anew",
                    by_s=round(jump.total_seconds()),
                )
        self._seen = (now, mono_s)
        return self.since
