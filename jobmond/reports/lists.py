"""The short lists: history, discovery, follow-ups, sweeps, events."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobmond.reports.box import Column, least_width
from jobmond.reports.buffer import JOB, STATE
from jobmond.reports.times import span
from jobmond.reports.view import View, state_cell


def history_text(jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """What ended: how, when, after how long and why."""
    if not jobs:
        return ["Nothing has ended."]
    columns = (
        JOB,
        Column("Name", least=8),
        STATE,
        Column("Ended", least=10, whole=10),
        Column("Elapsed"),
        Column("Cause", least=8),
    )
    rows = [_ended(job, view) for job in jobs]
    if view.fit is None or least_width(columns, rows, ascii_only=view.ascii_only) <= view.fit:
        return view.table(columns, rows)
    joined = [
        [f"{ref} {name}", state, f"{ended} after {elapsed}", cause]
        for ref, name, state, ended, elapsed, cause in rows
    ]
    return view.table((JOB, STATE, columns[3], columns[5]), joined)


def _ended(job: Mapping[str, Any], view: View) -> list[object]:
    return [
        job["ref"],
        job["name"],
        state_cell({**job, "ended_at": None}, view),
        view.local(job.get("ended_at")),
        span(job.get("elapsed_s")),
        _cause(job),
    ]


def _cause(job: Mapping[str, Any]) -> str:
    diagnosis = job.get("diagnosis")
    if diagnosis and diagnosis["cause"] != "unknown":
        return f"{diagnosis['cause']}: {diagnosis['summary']}"
    if job.get("successor"):
        return f"goes on as {job['successor']}"
    if job.get("signal"):
        return f"signal {job['signal']}"
    if job.get("exit_code") is not None:
        return f"exit code {job['exit_code']}"
    return job.get("reason") or "—"


def discovery_text(jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """Jobs nobody registered, and how to track them."""
    if not jobs:
        return ["No jobs that are not tracked already."]
    columns = (
        JOB,
        Column("Name", least=8),
        STATE,
        Column("User", least=6),
    )
    rows = [[job["ref"], job.get("name"), job.get("state"), job.get("user")] for job in jobs]
    return [
        *view.table(columns, rows),
        "`jobmonctl add JOB` tracks one of them, `jobmonctl discover --track` all.",
    ]


def followups_text(followups: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """What is owed, the oldest first, and how to close it."""
    if not followups:
        return ["Nothing is owed."]
    columns = (
        Column("Id"),
        JOB,
        Column("Kind", least=8, whole=16),
        Column("Since", least=10, whole=10),
        STATE,
        Column("What", least=8),
    )
    rows = [
        [
            f.get("id"),
            f.get("ref"),
            f.get("kind"),
            view.local(f.get("opened_at")),
            owed_standing(f),
            f.get("title"),
        ]
        for f in followups
    ]
    table = view.table(columns, rows)
    if view.fit is not None and least_width(columns, rows, ascii_only=view.ascii_only) > view.fit:
        joined = [
            [owed, ref, f"{kind}, {state} since {since}: {title}"]
            for owed, ref, kind, since, state, title in rows
        ]
        table = view.table((columns[0], JOB, columns[-1]), joined)
    return [*table, "`jobmonctl done ID` closes one."]


def owed_standing(followup: Mapping[str, Any]) -> str:
    """`open`, `held`, `closed (no-kill)`."""
    verdict = followup.get("verdict")
    state = str(followup.get("state") or "open")
    return f"{state} ({verdict})" if verdict else state


def sweep_line(cluster: Mapping[str, Any], view: View) -> str:
    """One cluster's answer: status, jobs, changes, and the age where it is an older sweep's."""
    text = f"{cluster['name']}: {cluster['status']}"
    if cluster.get("jobs") is not None:
        text += f", {counted(cluster['jobs'], 'job')}"
    if cluster.get("changes") is not None:
        text += f", {counted(cluster['changes'], 'change')}"
    if cluster.get("age_s") is not None and cluster["age_s"] >= 1:
        text += f" (answer of {span(cluster['age_s'])} ago)"
    if cluster.get("error"):
        text += f": {cluster['error']}"
    if cluster.get("remedy"):
        text += f" → {cluster['remedy']}"
    return view.safe(text)


def counted(number: int, what: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def event_line(news: Mapping[str, Any], view: View) -> str:
    """One event: when, how grave, whose, what."""
    job = news.get("job") or {}
    title = str(news.get("title"))
    whose = job.get("ref") or news.get("cluster") or ""
    subject = "" if whose in title else f"{whose}  "
    severity = str(news.get("severity") or "")
    correction = " (correction)" if news.get("correction") else ""
    return view.safe(f"{view.local(news.get('at'))}  {severity:<5}  {subject}{title}{correction}")
