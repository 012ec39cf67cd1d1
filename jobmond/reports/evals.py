"""The Eval table, and one aggregate line for each group of evaluations."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobmond.model.state import TERMINAL
from jobmond.reports.box import Column
from jobmond.reports.document import summary_line, tasks_line
from jobmond.reports.figures import metric, progress
from jobmond.reports.view import View, job_cell, trend_cell

_COLUMNS = (
    Column("Eval (model × benchmark)", min_width=28, least=12, whole=24),  # noqa: RUF001
    Column("Trials", min_width=9),
    Column("pass-rate"),
    Column("top exc", min_width=9, least=6),
    Column("Infra / Trend", min_width=30, least=14),
)
_CHECKS = ("tunnel", "api_base", "engine", "trials")
_MARKS = {True: "✓", False: "✗", None: "—"}


def lines(jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """The table of jobs that have metrics or scores, then the groups among them."""
    table = view.table(_COLUMNS, [_row(job, view) for job in jobs])
    return [*table, *map(view.safe, _groups(jobs))]


def _row(job: Mapping[str, Any], view: View) -> list[object]:
    metrics = job.get("metrics") or {}
    done, total = (_whole(metrics.get(name)) for name in ("trials_done", "trials_total"))
    return [
        _named(job, view),
        progress(done, total),
        metric(job, "pass_rate", 2),
        short_exception(job.get("top_exception")),
        _infra(job, view),
    ]


def _named(job: Mapping[str, Any], view: View) -> str:
    """Model and benchmark where they are known, else the run."""
    model, benchmark = job.get("model"), job.get("benchmark")
    if not model or not benchmark:
        return job_cell(job, view)
    named = f"{model} × {benchmark}"  # noqa: RUF001
    return named if view.brief else f"{named} {job['ref']}"


def _infra(job: Mapping[str, Any], view: View) -> str:
    """What was checked, each ✓, ✗ or — (could not be told); the headline scores of an end; the
    trend.
    """
    infra = job.get("infra") or {}
    marks = " ".join(f"{name}{_MARKS[infra[name]]}" for name in _CHECKS if name in infra)
    trend = trend_cell(job, view)
    over = job["state"] in TERMINAL
    scored = tasks_line(job) if job.get("tasks") and job.get("scores") else _scores(job)
    said = f"{scored}. {trend}" if scored and over else trend
    return f"{marks} ; {said}" if marks else said


def _scores(job: Mapping[str, Any]) -> str:
    return ", ".join(f"{one['name']}: {one['value']:.1f}%" for one in job.get("scores") or ())


def _groups(jobs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each run or invocation that has several rows."""
    every: dict[str, list[Mapping[str, Any]]] = {}
    for job in jobs:
        every.setdefault(group(job), []).append(job)
    for name, members in every.items():
        if len(members) > 1:
            yield f"{name}: {summary_line(members)}"


def group(job: Mapping[str, Any]) -> str:
    """What evaluations belong together by: a label `group=NAME`, the invocation, the run."""
    for label in job.get("labels") or ():
        name = re.fullmatch(r"group[=:](.+)", str(label))
        if name:
            return name[1]
    invocation = re.fullmatch(r"([0-9a-f]{8,16})\.\d+", str(job["native_id"]))
    return invocation[1] if invocation else str(job["run"])


def short_exception(name: object) -> str | None:
    """`AgentTimeoutError` as `AgentTO`: what tells exceptions apart, in a narrow column."""
    if not name:
        return None
    short = re.sub(r"(?<=.)(?:Error|Exception)$", "", str(name))
    return re.sub(r"(?<=.)Timeout", "TO", short)


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None
