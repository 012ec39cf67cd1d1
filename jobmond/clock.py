"""The one place that reads the clock."""

import time
from datetime import UTC, datetime


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Wall-clock time, aware UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back; may stand still while the machine is suspended."""
        return time.monotonic()
