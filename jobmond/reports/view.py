"""How a report is laid out, and the cells that every table of jobs has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from jobmond.model.state import TERMINAL, State
from jobmond.reports.box import Column, table
from jobmond.reports.cells import cell, wrap
from jobmond.reports.times import ago, local, parse_instant


@dataclass(frozen=True, slots=True)
class View:
    """How text is laid out. `tz` None is this machine's zone, `fit` None any width."""

    now: datetime
    tz: tzinfo | None = None
    fit: int | None = None
    ascii_only: bool = False
    brief: bool = False

    def safe(self, text: object) -> str:
        """One line that a terminal can only print."""
        return cell(text, ascii_only=self.ascii_only)

    def wrapped(self, text: object, *, indent: int = 2) -> list[str]:
        """A line that goes on below, indented, where it is wider than there is room."""
        line = self.safe(text)
        if self.fit is None:
            return [line]
        lead = len(line) - len(line.lstrip(" "))
        room = max(self.fit - max(indent, lead), 1)
        first, *rest = wrap(line[lead:], room)
        return [" " * lead + first, *(" " * indent + more for more in rest)]

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> list[str]:
        """A table in this layout."""
        return table(columns, rows, fit=self.fit, ascii_only=self.ascii_only)

    def local(self, text: object) -> str:
        """A document's instant in local time."""
        return local(parse_instant(text), self.tz, now=self.now)

    def ago(self, text: object) -> str:
        """A document's instant as an age."""
        return ago(parse_instant(text), self.now)


def state_cell(job: Mapping[str, Any], view: View) -> str:
    """The state with the source's own word where it differs; how long ago for an end."""
    state, native = str(job["state"]), str(job.get("native_state") or "")
    word = state if not native or native.upper().startswith(state) else f"{state} ({native})"
    if native.upper().startswith(state) and len(native) > len(state):
        word = native
    if job.get("stale"):
        return f"{word} (stale)"
    ended = job.get("ended_at")
    over = state in TERMINAL or state == State.UNKNOWN
    return f"{word} {view.ago(ended)}" if over and ended else word


def note_cell(job: Mapping[str, Any], view: View) -> str:
    """The note, with what depends on the moment of reading."""
    parts = [job.get("note") or ""]
    if job.get("stale"):
        seen = job.get("seen_at")
        parts.insert(0, f"not asked since {view.local(seen)}" if seen else "never seen")
    if job["state"] == State.PENDING and job.get("start_estimate_at"):
        parts.append(f"may start {view.local(job['start_estimate_at'])}")
    return "; ".join(filter(None, parts)) or "—"
