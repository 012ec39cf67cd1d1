"""Which logs nel's jobs leave, in the order in which they are to be believed.

The client shows the symptom of what the server died of, so the server's log comes before its own.
`nel info --logs` names the server's log by a name that it does not have, and copies all of them.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from jobmond.backends._joined import JoinedLogs
from jobmond.model.observation import LogAsk, LogTail, Reading
from jobmond.ports import LogSource, Transport

SORTS = (
    ("logs/slurm-*.log",),
    ("logs/server-*.log", "logs/server-*.out", "logs/server_stdout.log"),
    ("logs/proxy-*.log",),
    ("logs/client-*.log", "logs/client_stdout.log"),
    ("logs/export-*.log", "logs/stdout.log"),
)


class NelLogs:
    """Reads them where nel's jobs work; `files` reads a log that a person named."""

    def __init__(self, files: LogSource, far: Transport) -> None:
        self._files = files
        self._folders = JoinedLogs(far, SORTS)

    async def read_tails(
        self, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[LogTail]]:
        """See `jobmond.ports.LogSource`."""
        named = [ask for ask in asks if ask.path is not None]
        rest = [ask for ask in asks if ask.path is None]
        found: dict[str, Reading[LogTail]] = {}
        for source, some in ((self._files, named), (self._folders, rest)):
            if some:
                found |= await source.read_tails(some, now=now, timeout_s=timeout_s / 2)
        return found
