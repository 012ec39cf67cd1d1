"""Instants and durations as people and scripts read them."""

from datetime import UTC, datetime


def rfc3339(at: datetime) -> str:
    """`2026-11-29T15:54:21Z`: UTC, whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration(seconds: float) -> str:
    """`42s`, `12m`, `3h05m`, `2d04h`: the two units that matter."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 48:
        return f"{hours}h{minutes % 60:02d}m"
    return f"{hours // 24}d{hours % 24:02d}h"
