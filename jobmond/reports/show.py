"""One job in full."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobmond.analysis.visible import visible
from jobmond.model.metrics import CANONICAL
from jobmond.reports.figures import progress
from jobmond.reports.lists import owed_standing
from jobmond.reports.times import span
from jobmond.reports.view import View, state_cell

_LABEL = 12
_BANKED = 5  # shown of the earlier checkpoints
_METRICS = 200  # shown of what a trainer prints; the JSON has them all


def show_text(job: Mapping[str, Any], view: View) -> list[str]:
    """Everything known of a job, one thing a line, what is not known left out."""
    lines = [
        *_facts(_identity(job), view),
        *_facts(_course(job, view), view),
        *_facts(_training(job), view),
        *_facts(_log(job), view),
    ]
    lines += _signals("Signals", job.get("signals") or (), view)
    lines += _signals("Signals that were cleared", job.get("past_signals") or (), view)
    lines += _metrics(job.get("metrics") or {}, view)
    lines += _diagnosis(job.get("diagnosis"), view)
    lines += _lives(job.get("lives") or (), view)
    lines += _transitions(job.get("transitions") or (), view)
    lines += _owed(job.get("followups") or (), view)
    return lines + _entries(job.get("entries") or (), view)


def _identity(job: Mapping[str, Any]) -> list[tuple[str, object]]:
    return [
        ("Job", job["ref"]),
        ("Name", job["name"]),
        ("About", job.get("description")),
        ("Run", f"{job['run']}, life {job['life']}"),
        ("Bucket", f"{job['bucket']} ({job['type']})"),
        ("Labels", " ".join(job.get("labels") or ())),
        ("User", job.get("user")),
        ("Added by", job.get("owner")),
        ("Tracked", "yes" if job.get("tracked") else "no"),
    ]


def _course(job: Mapping[str, Any], view: View) -> list[tuple[str, object]]:
    return [
        ("State", state_cell(job, view)),
        ("Proof", job.get("proof")),
        ("Reason", job.get("reason")),
        ("Message", job.get("message")),
        ("Exit code", job.get("exit_code")),
        ("Signal", job.get("signal")),
        ("Submitted", _at(job, "submitted_at", view)),
        ("May start", _at(job, "start_estimate_at", view)),
        ("Started", _at(job, "started_at", view)),
        ("Ended", _at(job, "ended_at", view)),
        ("Last seen", _at(job, "seen_at", view)),
        ("Elapsed", _elapsed(job)),
        ("Nodes", job.get("nodes")),
        ("Partition", job.get("partition")),
        ("Account", job.get("account")),
        ("Work dir", job.get("workdir")),
        ("Command", job.get("command")),
        ("Waits for", job.get("dependency")),
        ("Restarts", job.get("restarts")),
        ("Parts", _parts(job.get("tasks"))),
        ("Goes on as", job.get("successor")),
        ("Deep probe", job.get("probe")),
        ("Note", job.get("note")),
    ]


def _log(job: Mapping[str, Any]) -> list[tuple[str, object]]:
    log = job.get("log") or {}
    if log.get("status") in (None, "none") and not log.get("path"):
        return []
    size = f", {log['bytes']} bytes" if log.get("bytes") is not None else ""
    error = f": {log['error']}" if log.get("error") else ""
    path = log.get("path")
    if not path:
        return [("Log", f"no path known{error}")]
    return [("Log", path), ("", f"{log.get('status')}{size}{error}")]


def _at(job: Mapping[str, Any], key: str, view: View) -> str | None:
    return f"{view.local(job[key])} ({view.ago(job[key])})" if job.get(key) else None


def _elapsed(job: Mapping[str, Any]) -> str | None:
    if job.get("elapsed_s") is None:
        return None
    limit = job.get("time_limit_s")
    return span(job["elapsed_s"]) + (f" of {span(limit)}" if limit else "")


def _parts(tasks: Mapping[str, Any] | None) -> str | None:
    if not tasks:
        return None
    counts = ", ".join(f"{n} {state.lower()}" for state, n in tasks["by_state"].items())
    failed = f"; failed: {', '.join(map(str, tasks['failed']))}" if tasks.get("failed") else ""
    return f"{tasks['total']}: {counts}{failed}"


def _facts(facts: Iterable[tuple[str, object]], view: View) -> list[str]:
    return [
        f"{label:<{_LABEL}}{view.safe(value)}" for label, value in facts if value not in (None, "")
    ]


def _block(title: str, lines: Sequence[str], view: View) -> list[str]:
    return ["", title, *(f"  {view.safe(line)}" for line in lines)] if lines else []


def _training(job: Mapping[str, Any]) -> list[tuple[str, object]]:
    rate, eta, resumed = job.get("rate_s_per_step"), job.get("eta_s"), job.get("resumed_from")
    shaping = job.get("shaping")
    return [
        ("Phase", job.get("phase") if job.get("metrics") or job.get("max_step") else None),
        ("Step", progress(job.get("step"), job.get("max_step"))),
        ("Resumed at", f"step {resumed}" if resumed is not None else None),
        ("Pace", f"{rate:.3g} s a step" if rate is not None else None),
        ("To go", span(eta) if eta is not None else None),
        ("Banked", _on_disk(job.get("banked")) or _banked(job.get("checkpoints") or ())),
        ("Rewards", f"{shaping} (by reward x rollouts per step)" if shaping else None),
        ("Trend", job.get("trend")),
    ]


def _on_disk(bank: Mapping[str, Any] | None) -> str | None:
    """The highest complete checkpoint in the run's folders, and whether its log agrees."""
    if not bank or bank.get("step") is None:
        return None
    log = "and by its log" if bank.get("in_log") else "its log does not name it"
    left = bank.get("unfinished") or ()
    unfinished = f"; not complete: {', '.join(map(str, left[-_BANKED:]))}" if left else ""
    return f"step {bank['step']} on disk ({bank.get('folder')}), {log}{unfinished}"


def _banked(steps: Sequence[int]) -> str | None:
    """The last steps that were saved, the newest first."""
    if not steps:
        return None
    newest, *others = sorted(steps, reverse=True)
    earlier = f" (before: {', '.join(map(str, others[:_BANKED]))})" if others else ""
    more = f" and {len(others) - _BANKED} more" if len(others) > _BANKED else ""
    return f"step {newest} by its log{earlier}{more}"


def _metrics(metrics: Mapping[str, Any], view: View) -> list[str]:
    """The last values, first those that have one name whatever the trainer calls them."""
    known = [name for name in metrics if name in CANONICAL]
    names = [*known, *(name for name in metrics if name not in CANONICAL)]
    rest = len(names) - _METRICS
    wide = max((len(name) for name in names[:_METRICS]), default=0)
    lines = [f"{name:<{min(wide, 48)}}  {_value(metrics[name])}" for name in names[:_METRICS]]
    return _block("Metrics", [*lines, *([f"and {rest} more"] if rest > 0 else [])], view)


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _signals(title: str, signals: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    lines = []
    for signal in signals:
        step = _steps(signal)
        action = signal.get("action") or "none"
        advice = f" → {action}" if action != "none" else ""
        lines.append(f"{signal['severity']} {signal['rule']}{step}: {signal['title']}{advice}")
    return _block(title, lines, view)


def _steps(signal: Mapping[str, Any]) -> str:
    first, last = signal.get("step"), signal.get("last_step")
    if first is None:
        return ""
    return f" at step {first}" if last in (None, first) else f" at steps {first} to {last}"


def _diagnosis(diagnosis: Mapping[str, Any] | None, view: View) -> list[str]:
    if not diagnosis:
        return []
    where = f" (line {diagnosis['line']})" if diagnosis.get("line") is not None else ""
    head = f"{diagnosis['cause']}{where}: {diagnosis['summary']}"
    known = diagnosis.get("recurrence") or {}
    again = [known["words"]] if known.get("words") else []
    excerpt = [f"  {visible(str(line))}" for line in diagnosis.get("excerpt") or ()]
    return _block("Cause", [head, *again, *excerpt], view)


def _lives(lives: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    return _block("Lives", [_life(life, view) for life in lives], view) if len(lives) > 1 else []


def _life(life: Mapping[str, Any], view: View) -> str:
    state = state_cell(life, view) if "state" in life else "?"
    return f"{life.get('life', '?')}  {life.get('ref', '?')}  {state}"


def _transitions(transitions: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    lines = []
    for change in transitions:
        before = change.get("before") or "first seen"
        corrected = " (correction)" if change.get("correction") else ""
        lines.append(f"{view.local(change.get('at'))}  {before} → {change.get('after')}{corrected}")
    return _block("Transitions", lines, view)


def _owed(followups: Sequence[Mapping[str, Any]], view: View) -> list[str]:
    lines = [f"{f.get('id')}  {_owed_kind(f)}: {f.get('title')}" for f in followups]
    return _block("Follow-ups", lines, view)


def _owed_kind(followup: Mapping[str, Any]) -> str:
    standing = owed_standing(followup)
    kind = str(followup.get("kind"))
    return kind if standing == "open" else f"{kind}, {standing}"


def _entries(entries: Sequence[object], view: View) -> list[str]:
    paths = [str(e.get("path")) if isinstance(e, Mapping) else str(e) for e in entries]
    return _block("Entries", paths, view)
