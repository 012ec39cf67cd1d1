"""Logs of a launcher's jobs: its output file on this host, and what they write at the far side.

The launcher shows a job's output until it ends, or is killed itself. Where it did not see the job
end, the newest of the job's own logs tells the rest: after a requeue that has another name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from jobmond.backends._joined import JoinedLogs
from jobmond.model.observation import LogAsk, LogTail, Read, Reading
from jobmond.ports import LogSource, Transport

SORTS = (("sbatch_*.out",), ("log-*.out",))
_SEEN_TO_THE_END = (b" finished: FAILED", b" finished: CANCELLED", b" finished: SUCCEEDED")


class LauncherLogs:
    """`near` reads output files, `far` is where the jobs' own logs are: those of a job that has
    ended, whose folder is then asked for."""

    def __init__(self, near: LogSource, far: Transport) -> None:
        self._near = near
        self._far = JoinedLogs(far, SORTS)

    async def read_tails(
        self, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[LogTail]]:
        """See `jobmond.ports.LogSource`."""
        here = [replace(ask, workdir=None) for ask in asks if ask.path is not None]
        found: dict[str, Reading[LogTail]] = {}
        if here:
            found |= await self._near.read_tails(here, now=now, timeout_s=timeout_s / 2)
        rest = [ask for ask in asks if ask.workdir and not _whole(found.get(ask.native_id))]
        rest += [ask for ask in asks if not ask.workdir and ask.path is None]
        if rest:
            own = await self._far.read_tails(rest, now=now, timeout_s=timeout_s / 2)
            found |= {i: _both(found.get(i), reading) for i, reading in own.items()}
        return found


def _whole(reading: Reading[LogTail] | None) -> bool:
    """Whether the launcher's file is enough: it saw the end."""
    if not isinstance(reading, Read):
        return False
    return any(word in reading.value.tail for word in _SEEN_TO_THE_END)


def _both(near: Reading[LogTail] | None, far: Reading[LogTail]) -> Reading[LogTail]:
    if not isinstance(near, Read):
        return far
    if not isinstance(far, Read):
        return near
    tail = near.value.tail + b"\n" + far.value.tail
    size = near.value.size_bytes + far.value.size_bytes
    parts = near.value.examined + far.value.examined
    both = replace(near.value, tail=tail, size_bytes=size, joined=True, examined=parts)
    return Read(both, far.at)
