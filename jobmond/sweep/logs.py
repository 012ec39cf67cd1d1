"""The end of a job's log for a person who asks, through the connection that sweeps use."""

from datetime import datetime
from typing import Any

from jobmond.analysis.mask import mask
from jobmond.analysis.visible import readable, visible
from jobmond.model.job import Job
from jobmond.model.observation import Absent, LogAsk, LogTail, Read, Unavailable
from jobmond.model.state import TERMINAL, Kind
from jobmond.sweep.cluster import Cluster

LINES_BYTES = 200  # bytes fetched for each line that was asked for; longer lines make fewer lines
MIN_BYTES = 65536
MAX_BYTES = 4 * 2**20


async def log_text(
    cluster: Cluster, job: Job, *, n: int, after: int | None, now: datetime
) -> dict[str, Any]:
    """The last `n` lines of the log, or what came after byte `after`; masked, safe to show.

    `offset` is where `text` begins in the file, `next` where it ends, to ask from next time.
    What lies further back than a few MiB is left out.
    """
    wanted = job.choices.log_path or job.log.path or job.facts.log_path
    size = min(MAX_BYTES, max(MIN_BYTES, n * LINES_BYTES))
    near = job.kind is Kind.LAUNCHER and job.state not in TERMINAL
    folder = None if near else job.facts.workdir
    ask = LogAsk(job.native_id, wanted, folder, size, kind=job.kind)
    readings = await cluster.logs.read_tails([ask], now=now, timeout_s=cluster.budget_s / 2)
    reading = readings[job.native_id]
    if isinstance(reading, Read):
        return _shown(reading.value, n, after)
    nothing: dict[str, Any] = {"path": wanted, "text": "", "offset": None, "next": None}
    if isinstance(reading, Absent):
        looked = ", ".join(reading.looked)
        return {**nothing, "status": "absent", "size": None, "error": f"looked for {looked}"}
    if isinstance(reading, Unavailable):
        return {**nothing, "status": "unavailable", "size": None, "error": reading.why}
    return {**nothing, "status": "none", "size": None, "error": None}


def _shown(tail: LogTail, n: int, after: int | None) -> dict[str, Any]:
    end = tail.offset + len(tail.tail)
    if after is not None and after <= end:  # a file that shrank was replaced: show its end
        start = max(after, tail.offset)
    else:
        start = tail.offset + _last_lines(tail.tail, n)
    text = readable(tail.tail[start - tail.offset :])
    return {
        "path": visible(tail.path),
        "status": "read" if tail.size_bytes else "empty",
        "text": visible(mask(text), keep="\n\t\r"),
        "offset": start,
        "next": end,
        "size": tail.size_bytes,
        "error": None,
    }


def _last_lines(data: bytes, n: int) -> int:
    """Where the last `n` lines begin."""
    at = len(data) - 1 if data.endswith(b"\n") else len(data)
    for _ in range(n):
        at = data.rfind(b"\n", 0, max(at, 0))
        if at < 0:
            return 0
    return at + 1
