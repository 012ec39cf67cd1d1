"""nel's execution database: one JSON object a line, the last for a job counts.

Source: nemo-evaluator-launcher 0.2.6, `common/execdb.py`. It lies in the home folder of whoever
called nel: another user's, or another home's, knows none of these jobs.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from jobmond.backends.nel.rows import Row, row_of


@dataclass(frozen=True, slots=True)
class Launched:
    """One job as it was launched; `row.status` is empty, for nobody was asked about it."""

    row: Row
    executor: str
    submitted_at: datetime | None = None

    @property
    def task(self) -> str | None:
        """What it evaluates: its folder is called after that."""
        name = (self.row.folder or "").rpartition("/")[2]
        return name.rpartition(".")[0] or name or None


def launched(text: bytes) -> dict[str, Launched]:
    """The jobs of a database, or of a piece of one, by job id; lines that are cut are passed over.

    A job that was resumed keeps the instant at which it was launched first.
    """
    found: dict[str, Launched] = {}
    for one in _objects(text.split(b"\n")):
        data = one.get("data")
        row = row_of(one, "", data if isinstance(data, dict) else {})
        if row.job is None:
            continue
        earlier = found.pop(row.job, None)
        fresh = Launched(row, str(one.get("executor")), _instant(one.get("timestamp")))
        if earlier is not None and earlier.submitted_at is not None:
            fresh = replace(fresh, submitted_at=earlier.submitted_at)
        found[row.job] = fresh
    return found


def _objects(lines: Iterable[bytes]) -> Iterable[Mapping[str, Any]]:
    for line in lines:
        try:
            one = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue
        if isinstance(one, dict):
            yield one


def _instant(value: object) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, ValueError, OSError):
        return None
