"""Instants and durations as people and programs read them."""

import re
from datetime import UTC, datetime, timedelta, tzinfo

from jobmond.analysis.instants import instant, span

__all__ = ["ago", "instant", "local", "parse_instant", "seconds", "since", "span"]

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN = re.compile(r"(\d{1,9})([smhdw])")


def parse_instant(text: object) -> datetime | None:
    """The inverse of `instant`; None for what is no RFC 3339 instant (a report may be older)."""
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


def ago(at: datetime | None, now: datetime) -> str:
    """How long ago, in one unit pair (`3m ago`, `just now`); an instant ahead counts as now."""
    if at is None:
        return "never"
    seconds = (now - at).total_seconds()
    return "just now" if seconds < 1 else f"{span(seconds)} ago"


def local(at: datetime | None, tz: tzinfo | None, *, now: datetime | None = None) -> str:
    """Local time to the minute; only the time of day where the day is that of `now`.

    `tz` None means the zone of this machine.
    """
    if at is None:
        return "—"
    here = at.astimezone(tz)
    if now is not None and here.date() == now.astimezone(tz).date():
        return here.strftime("%H:%M")
    return here.strftime("%Y-%m-%d %H:%M")


def since(text: str, *, now: datetime, tz: tzinfo | None = None) -> datetime:
    """What a person means by `2h`, `1d12h`, `2026-11-29`, `12:30` or an RFC 3339 instant.

    A duration counts back from `now`; a date or time without a zone is local.

    Raises:
        ValueError: none of these; the message is one line.
    """
    word = text.strip()
    parts = _SPAN.findall(word)
    if parts and "".join(n + u for n, u in parts) == word:
        try:
            return now - timedelta(seconds=sum(int(n) * _UNITS_S[u] for n, u in parts))
        except OverflowError:
            raise ValueError(f"{text!r} is longer ago than time goes back") from None
    if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", word):
        today = now.astimezone(tz).date().isoformat()
        word = f"{today}T0{word}" if word[1] == ":" else f"{today}T{word}"
    try:
        at = datetime.fromisoformat(word)
    except ValueError:
        raise ValueError(
            f"{text!r} is no time: write 2h, 1d, 12:30, 2026-11-29 or 2026-11-29T12:00:00Z"
        ) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=tz) if tz is not None else at.astimezone()
    return at.astimezone(UTC)


def seconds(text: str) -> float:
    """`90`, `30s`, `2h`, `1h30m` as seconds.

    Raises:
        ValueError: no such duration; the message is one line.
    """
    word = text.strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", word):
        return float(word)
    parts = _SPAN.findall(word)
    if not parts or "".join(n + u for n, u in parts) != word:
        raise ValueError(f"{text!r} is no duration: write 90, 30s, 10m, 2h or 1h30m")
    return float(sum(int(n) * _UNITS_S[u] for n, u in parts))
