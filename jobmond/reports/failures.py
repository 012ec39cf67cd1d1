"""What failed and how often: a table by signature."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobmond.reports.box import Column, least_width
from jobmond.reports.buffer import JOB
from jobmond.reports.view import View

_COLUMNS = (
    Column("Count"),
    Column("Last", least=10, whole=10),
    Column("First", least=10, whole=10),
    JOB,
    Column("Cause", least=8),
    Column("Again", least=8),
    Column("Fingerprint", least=8),
)


def failures_text(failures: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """One row a signature; the job is the last that failed like this."""
    if not failures:
        return ["Nothing has failed."]
    rows = [_row(failure, view) for failure in failures]
    table = view.table(_COLUMNS, rows)
    if view.fit is not None and least_width(_COLUMNS, rows, ascii_only=view.ascii_only) > view.fit:
        narrow = [[row[0], row[1], row[3], f"{row[4]} ({row[6]})"] for row in rows]
        table = view.table((_COLUMNS[0], _COLUMNS[1], JOB, _COLUMNS[4]), narrow)
    entries = [failure["last"].get("agent_log") for failure in failures[:1]]
    return [*table, *(view.safe(f"The entry about the last: {path}") for path in entries if path)]


def _row(failure: Mapping[str, Any], view: View) -> list[object]:
    again = (failure.get("recurrence") or {}).get("words")
    return [
        failure["count"],
        view.local(failure.get("last_at")),
        view.local(failure.get("first_at")),
        failure["last"]["ref"],
        f"{failure['cause']}: {failure['summary']}",
        again if failure["count"] > 1 else "—",
        failure["fingerprint"],
    ]
