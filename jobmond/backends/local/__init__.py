"""Processes of this host: `pid-<number>`."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from jobmond.analysis.benign import NOTHING, Benign
from jobmond.backends.local.probe import Asked, Unreadable, read, script
from jobmond.backends.local.verdict import sighting
from jobmond.errors import NeedsPersonError, TransportError
from jobmond.model.observation import Ask, Poll, Sighting, Unreachable
from jobmond.model.state import TERMINAL, State
from jobmond.ports import Transport
from jobmond.registry import backends

_ID = re.compile(r"pid-(?P<pid>[1-9][0-9]{0,6})")  # Linux goes no higher than 4,194,304
_BASE_BYTES = 4 << 20
_BYTES_PER_JOB = 256 << 10


@backends.plugin("local")
class LocalBackend:
    """Asks `/proc`, and the records that `jobmonctl run` leaves in the folder `runs`.

    The two together are one script. A process that is gone and left no record of its end is told
    by the end of its log, where that proves something, and is gone without a word otherwise; what
    is `benign` here proves nothing.
    """

    kind = "local"
    discovers = False

    def __init__(self, transport: Transport, *, runs: Path, benign: Benign = NOTHING) -> None:
        self._transport = transport
        self._runs = str(runs)
        self._benign = benign

    async def poll(
        self, asks: Sequence[Ask], *, since: datetime, now: datetime, timeout_s: float
    ) -> Poll:
        """See `jobmond.ports.Backend`."""
        known = {ask.native_id: ask for ask in sorted(asks, key=_relevance)}
        pids = {native: int(found["pid"]) for native in known if (found := _ID.fullmatch(native))}
        sightings: dict[str, Sighting] = {
            native: Unreachable(self.valid_id(native) or "") for native in known.keys() - pids
        }
        if not pids:
            return Poll(sightings)
        asked = [
            Asked(pid, known[native].facts.log_path, known[native].state is not State.LOST)
            for native, pid in pids.items()
        ]
        try:
            answer = await self._transport.run(
                script(asked, runs=self._runs, patience_s=int(min(6, timeout_s / 3))),
                timeout_s=timeout_s,
                max_bytes=_BASE_BYTES + _BYTES_PER_JOB * len(asked),
            )
            host, processes = read(answer)
        except (TransportError, Unreadable) as error:
            return _silent(known, error)
        for native, pid in pids.items():
            sightings[native] = sighting(
                known[native], processes.get(pid), host, now=now, benign=self._benign
            )
        complaints = tuple(line for process in processes.values() for line in process.complaints)
        return Poll(sightings, calls={"proc": 1}, complaints=complaints)

    def valid_id(self, native_id: str) -> str | None:
        """See `jobmond.ports.Backend`."""
        if _ID.fullmatch(native_id):
            return None
        return f"{native_id!r} is no process of this host: write pid- and a number, like pid-4711"


def _relevance(ask: Ask) -> tuple[bool, datetime]:
    """Of two incarnations under one id the one that is not over, else the later, is asked about."""
    return ask.state not in TERMINAL, ask.added_at


def _silent(known: Mapping[str, Ask], error: Exception) -> Poll:
    needs_login = isinstance(error, NeedsPersonError)
    return Poll(
        {native: Unreachable(str(error)) for native in known},
        trouble=str(error),
        needs_login=needs_login,
        remedy=error.remedy if isinstance(error, NeedsPersonError) else None,
        calls={"proc": 1},
    )
