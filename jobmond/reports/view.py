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


def job_cell(job: Mapping[str, Any], view: View, mark: str = "") -> str:
    """The run and, unless it should be brief, what every command takes for it."""
    run, ref, native = str(job["run"]), str(job["ref"]), str(job.get("native_id"))
    if run == native:
        return f"{ref}{mark}"
    marked = run if not mark or run.endswith(mark.strip()) else f"{run}{mark}"
    return marked if view.brief or run == ref else f"{marked} {ref}"


def trend_cell(job: Mapping[str, Any], view: View) -> str:
    """The trend, behind whatever matters more: a state other than running, a standing signal."""
    state = state_cell(job, view)
    if job["state"] in TERMINAL or job["state"] == State.UNKNOWN:
        return f"{state}: {_without_name(note_cell(job, view), job)}"
    parts = [] if state == State.RUNNING else [state]
    if job.get("stale"):
        seen = job.get("seen_at")
        parts.append(f"Not asked since {view.local(seen)}" if seen else "Never seen")
    signals = job.get("signals") or ()
    if signals:
        more = f" (and {len(signals) - 1} more)" if len(signals) > 1 else ""
        parts.append(f"{signals[0]['title']}{more}")
    return ". ".join(filter(None, [*parts, job.get("trend")])) or "—"


def _without_name(note: str, job: Mapping[str, Any]) -> str:
    """The note without the name, which the row begins with."""
    parts = note.split("; ")
    return "; ".join([part for part in parts if part != job["name"]] or parts)
