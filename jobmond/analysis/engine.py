"""What a window of a log says about an inference engine and about the traces that were exported.

Sources: vLLM `v1/metrics/loggers.py` (an engine without work soon stops printing statistics),
SGLang `Decode batch` lines, uvicorn's access lines; OpenThoughts-Agent `[traces] Exported`.
"""

import re
from collections.abc import Iterator
from datetime import datetime

from jobmond.model.trials import Engine

NEEDLES = (b"Running: ", b"#running-req: ", b'"POST /', b"[traces] Exported ")

_STATISTICS = re.compile(
    r"(?P<at>\d\d-\d\d \d\d:\d\d:\d\d).{0,200}?Engine (?P<engine>\d{1,6}): .{0,300}?"
    r"Running: (?P<running>\d{1,9}) reqs, Waiting: (?P<waiting>\d{1,9}) reqs"
)
_BATCH = re.compile(
    r"\d{4}-(?P<at>\d\d-\d\d \d\d:\d\d:\d\d)(?: (?P<engine>[\w ]{1,20}))?\] (?:Decode|Prefill) "
    r"batch.{0,300}?#running-req: (?P<running>\d{1,9})"
    r"(?:.{0,300}?#queue-req: (?P<waiting>\d{1,9}))?"
)
_POST = re.compile(r'"POST /\S{1,200} HTTP/[\d.]{1,4}" (\d{3})\b')
_EXPORTED = re.compile(r"\[traces\] Exported ([\d,]{1,20}) rows")
_YEAR_S = 366 * 86400


def engine(window: str, *, age_s: float = 0.0) -> Engine | None:
    """The engine in a window of its log that was written `age_s` before now; None where no line
    is an engine's. Silence after a line without requests goes on being idle.
    """
    busy: dict[str, float] = {}
    first: float | None = None
    newest, idle, after = 0.0, False, False
    answered = refused = 0
    for line in window.splitlines():
        status = _POST.search(line)
        if status is not None:
            answered += status[1] == "200"
            refused += status[1] != "200"
            after = after or (idle and status[1] == "200")
        said = _STATISTICS.search(line) or _BATCH.search(line)
        if said is None:
            continue
        at = _seconds(said["at"])
        if at is None:
            continue
        first, newest = at if first is None else first, at
        if int(said["running"]) or int(said["waiting"] or 0):
            busy[said["engine"] or ""] = at
            idle = after = False
        elif not idle:
            idle, after = True, False
    if first is None:
        found = answered or refused
        return Engine(None, answered, refused) if found else None
    last_busy = max(busy.values(), default=first)
    idle_s = (newest - last_busy) % _YEAR_S + max(0.0, age_s) if idle else 0.0
    return Engine(idle_s, answered, refused, answered_after_idle=after)


def exported_rows(window: str) -> int:
    """Rows of traces that a log says were exported."""
    return sum(_rows(window))


def _rows(window: str) -> Iterator[int]:
    for found in _EXPORTED.finditer(window):
        digits = found[1].replace(",", "")
        yield int(digits) if digits else 0


def _seconds(text: str) -> float | None:
    """Seconds into a year; the lines name none."""
    try:
        at = datetime.strptime(f"2024-{text}+0000", "%Y-%m-%d %H:%M:%S%z")
    except ValueError:
        return None
    return at.timestamp() % _YEAR_S
