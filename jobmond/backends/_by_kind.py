"""Logs of one cluster that lie in different places, by the kind of their jobs."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from jobmond.model.observation import LogAsk, LogTail, Reading
from jobmond.model.state import Kind
from jobmond.ports import LogSource


class ByKind:
    """Reads each job's log where jobs of its kind have it; `other` reads all the rest."""

    def __init__(self, other: LogSource, own: Mapping[Kind, LogSource]) -> None:
        self._other = other
        self._own = own

    async def read_tails(
        self, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[LogTail]]:
        """See `jobmond.ports.LogSource`; sources are asked one after the other."""
        groups: dict[LogSource, list[LogAsk]] = {}
        for ask in asks:
            source = self._other if ask.kind is None else self._own.get(ask.kind, self._other)
            groups.setdefault(source, []).append(ask)
        found: dict[str, Reading[LogTail]] = {}
        for source, group in groups.items():
            each_s = timeout_s / len(groups)
            found |= await source.read_tails(group, now=now, timeout_s=each_s)
        return found
