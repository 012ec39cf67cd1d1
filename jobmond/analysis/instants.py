"""Instants and durations as people and scripts read them."""

from datetime import UTC, datetime


def instant(at: datetime | None) -> str | None:
    """RFC 3339 in UTC with `Z`, to the second; None stays None."""
    if at is None:
        return None
    return at.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def span(seconds: float | None) -> str:
    """A duration in at most two units: `45s`, `12m`, `3h05m`, `2d04h`; `—` where unknown."""
    if seconds is None:
        return "—"
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if hours < 1:
        return f"{minutes}m"
    if days < 1:
        return f"{hours}h{minutes % 60:02d}m"
    return f"{days}d{hours % 24:02d}h"
