"""The status report as text, from the status document: live and stored reports look the same."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from jobmond.model.state import Bucket, ClusterStatus
from jobmond.reports import buffer, catch_all, datagen, evals, grid, rl, sft
from jobmond.reports.times import ago, parse_instant, span
from jobmond.reports.training import restart_line, restarted
from jobmond.reports.view import View

_TITLES = {
    Bucket.RL: "RL",
    Bucket.SFT: "SFT",
    Bucket.DATAGEN: "Datagen",
    Bucket.EVAL: "Eval",
    Bucket.OTHER: "Catch-all",
}

# What shows job objects of one bucket that have metrics, line by line; one file a bucket.
Tabled: TypeAlias = Callable[[Sequence[Mapping[str, Any]], View], list[str]]
TABLES: Mapping[Bucket, Tabled] = {
    Bucket.RL: rl.lines,
    Bucket.SFT: sft.lines,
    Bucket.DATAGEN: datagen.lines,
    Bucket.EVAL: evals.lines,
}

NOT_ASKED = "not asked yet"  # the error of a cluster of which nothing is known so far
_PROBLEMS = 5  # shown of what is wrong with files; the JSON has them all
_LATELY = timedelta(days=1)  # what was given up longer ago is in the JSON only


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
        lines += _bucket(bucket, [job for job in jobs if job["bucket"] == bucket], view)
        if bucket is Bucket.SFT:
            lines += grid.lines(document.get("sft_grid"), view)
    return lines


def _bucket(bucket: Bucket, jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    """One table across clusters, and one of its own for the jobs that have no metrics yet."""
    if bucket is Bucket.OTHER:
        return _titled(_TITLES[bucket], catch_all.lines, jobs, view)
    gone = restarted(jobs)
    left = {id(job) for job in gone}
    present = [job for job in jobs if id(job) not in left]
    tabled = TABLES.get(bucket)
    known = [job for job in present if tabled is not None and not buffer.filling(job)]
    filling = [job for job in present if tabled is None or buffer.filling(job)]
    shown = _titled(_TITLES[bucket], tabled, known, view) if tabled is not None else []
    shown += _titled(f"{_TITLES[bucket]}, no metrics yet", buffer.lines, filling, view)
    return [*shown, *(restart_line(job, view) for job in gone)]


def _titled(title: str, tabled: Tabled, jobs: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    return ["", title, *tabled(jobs, view)] if jobs else []


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
        ahead = "none due until a job is tracked"
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
    if not last and cluster.get("error") == NOT_ASKED:
        return f"{name}: {NOT_ASKED}"
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
