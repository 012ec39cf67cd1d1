"""The status report as text, from the status document: live and stored reports look the same."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from jobmond.model.state import TERMINAL, Bucket, ClusterStatus, State
from jobmond.reports.box import Column, table
from jobmond.reports.cells import cell
from jobmond.reports.times import ago, local, parse_instant, span

_TITLES = {
    Bucket.RL: "RL",
    Bucket.SFT: "SFT",
    Bucket.DATAGEN: "Datagen",
    Bucket.EVAL: "Eval",
    Bucket.OTHER: "Catch-all",
}
_JOB = Column("Job", least=10)
_STATE = Column("State", least=13)
_ELAPSED = Column("Elapsed")
_NOTE = Column("Note", least=8)
_LIST = (_JOB, Column("Type", least=6), _STATE, _ELAPSED, _NOTE)
_FILLING = (_JOB, Column("Step"), _STATE, _ELAPSED, _NOTE)
_BRIEF = (_JOB, _STATE, _ELAPSED, _NOTE)
_PROBLEMS = 5  # shown of what is wrong with files; the JSON has them all
_LATELY = timedelta(days=1)  # what was given up longer ago is in the JSON only


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

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> list[str]:
        """A table in this layout."""
        return table(columns, rows, fit=self.fit, ascii_only=self.ascii_only)

    def local(self, text: object) -> str:
        """A document's instant in local time."""
        return local(parse_instant(text), self.tz, now=self.now)

    def ago(self, text: object) -> str:
        """A document's instant as an age."""
        return ago(parse_instant(text), self.now)


def status_text(document: Mapping[str, Any], view: View) -> list[str]:
    """The whole report, line by line."""
    lines = [
        *daemon_lines(document, view),
        *cluster_lines(document["clusters"], view),
        *sink_lines(document.get("sinks", ()), view),
    ]
    jobs = document["jobs"]
    if not jobs:
        return [
            *lines,
            "No jobs. `jobmonctl add ID` tracks one, `jobmonctl discover` lists what runs.",
        ]
    lines.append(view.safe(document["summary"]["line"]))
    for bucket in Bucket:
        rows = [job for job in jobs if job["bucket"] == bucket]
        if rows:
            lines += ["", _title(bucket), *_bucket(bucket, rows, view)]
    return lines


def daemon_lines(document: Mapping[str, Any], view: View) -> list[str]:
    """Who made the report and how old it is."""
    daemon = document["daemon"]
    host = daemon.get("host") or "an unknown host"
    if not daemon.get("running"):
        at = document.get("generated_at")
        return [
            view.safe(f"No daemon answers. Report of {host}, {view.ago(at)} ({view.local(at)}).")
        ]
    swept, following = daemon.get("last_sweep_at"), parse_instant(daemon.get("next_sweep_at"))
    last = f"last sweep {view.ago(swept)}" if swept else "no sweep yet"
    if following is None:
        ahead = "none due"
    elif following <= view.now:
        ahead = "next one due"
    else:
        ahead = f"next in {span((following - view.now).total_seconds())}"
    return [view.safe(f"jobmond on {host}: {last}, {ahead}"), *_problems(daemon, view)]


def _problems(daemon: Mapping[str, Any], view: View) -> list[str]:
    """What is wrong with files that other people and programs write, the first few."""
    every = daemon.get("problems") or []
    rest = len(every) - _PROBLEMS
    shown = [f"problem: {problem}" for problem in every[:_PROBLEMS]]
    return [view.safe(line) for line in [*shown, *([f"and {rest} more"] if rest > 0 else [])]]


def cluster_lines(clusters: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """One line for each cluster that is not ok: since when, why, and what helps."""
    return [
        view.safe(_trouble(cluster, view))
        for cluster in clusters
        if cluster["status"] != ClusterStatus.OK
    ]


def _trouble(cluster: Mapping[str, Any], view: View) -> str:
    name = cluster["name"]
    if cluster["status"] == ClusterStatus.INACTIVE:
        why = f" ({cluster['error']})" if cluster.get("error") else ""
        more = f" ({cluster['notes']})" if cluster.get("notes") else ""
        return f"{name}: inactive{why}, its jobs are not polled{more}"
    last = cluster.get("last_ok_at")
    answered = f"last answer {view.ago(last)}" if last else "never answered"
    text = f"{name}: {cluster['status']} since {view.local(cluster.get('since'))} ({answered})"
    if cluster.get("error"):
        text += f": {cluster['error']}"
    return f"{text} → {cluster['remedy']}" if cluster.get("remedy") else text


def sink_lines(sinks: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """One line for each sink that news wait for because it failed, or that lost some lately."""
    return [view.safe(text) for sink in sinks for text in _owed(sink, view)]


def _owed(sink: Mapping[str, Any], view: View) -> Iterator[str]:
    parts = []
    if sink["undelivered"] and not sink["configured"]:
        parts.append(f"{sink['undelivered']} undelivered, this sink is not configured any more")
    elif sink["undelivered"] and sink.get("retry_at"):
        parts.append(f"{sink['undelivered']} undelivered")
    at = parse_instant(sink.get("given_up_at"))
    if at is not None and view.now - at < _LATELY:
        parts.append(f"{sink['given_up']} given up, the last {ago(at, view.now)}")
    if parts:
        error = f": {sink['last_error']}" if sink.get("last_error") else ""
        yield f"sink {sink['name']}: {'; '.join(parts)}{error}"


def _title(bucket: Bucket) -> str:
    if bucket is Bucket.OTHER:
        return _TITLES[bucket]
    return f"{_TITLES[bucket]}, no metrics yet"


def _bucket(bucket: Bucket, jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    if view.brief:
        return view.table(_BRIEF, [_row(job, view) for job in jobs])
    columns = _LIST if bucket is Bucket.OTHER else _FILLING
    rows = [_row(job, view) for job in jobs]
    for row, job in zip(rows, jobs, strict=True):
        row.insert(1, job["type"] if bucket is Bucket.OTHER else job.get("step"))
    return view.table(columns, rows)


def _row(job: Mapping[str, Any], view: View) -> list[object]:
    return [job["ref"], state_cell(job, view), span(job.get("elapsed_s")), note_cell(job, view)]


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
