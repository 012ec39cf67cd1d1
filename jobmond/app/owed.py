"""What people are reminded of, and the commands they gave for it."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime

from jobmond.analysis.owed_news import digest
from jobmond.ports import Clock
from jobmond.settings import Settings
from jobmond.settings.followups import FollowupCommand, FollowupKind
from jobmond.store import Store
from jobmond.store.writer import Writer
from jobmond.sweep.conclude import news_deliveries
from jobmond.sweep.errands import Errand, Errands
from jobmond.sweep.trouble import Troubles
from jobmond.transports._process import said

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "SSH_AUTH_SOCK", "TMPDIR")


def environment() -> dict[str, str]:
    """What a person's command sees of ours: nothing that may hold a secret."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


def errands_of(tables: Mapping[FollowupKind, FollowupCommand]) -> dict[str, Errand]:
    """The commands by kind of follow-up."""
    return {
        kind: Errand(table.command, table.timeout.total_seconds()) for kind, table in tables.items()
    }


def errands(store: Store, writer: Writer, clock: Clock, troubles: Troubles) -> Errands:
    """What runs them."""
    return Errands(store, writer.call, clock, said, env=environment(), troubles=troubles)


class Reminders:
    """One a period, of what was open when it began; its key is the period's, so that a restart
    tells nothing twice.
    """

    def __init__(self, store: Store, writer: Writer, clock: Clock) -> None:
        self._store, self._writer, self._clock = store, writer, clock
        self._told: datetime | None = None

    async def look(self, settings: Settings) -> bool:
        """Whether there is something to deliver now."""
        every, now = settings.remind_every, self._clock.now()
        since = _EPOCH + (now - _EPOCH) // every * every if every else None
        if since is None or since == self._told:
            return False
        owed = await self._writer.call(self._store.followups)
        waiting = [one for one in owed if one.opened_at <= since]
        if waiting:
            told = digest(waiting, at=since)
            deliveries = news_deliveries([told], tuple(settings.sinks), now)
            await self._writer.call(self._store.publish, [told], deliveries)
        self._told = since
        return bool(waiting)
