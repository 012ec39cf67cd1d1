"""The note of a job: what it is, the one thing that matters, what is to be done."""

from datetime import datetime

from jobmond.model.job import Job
from jobmond.model.observation import PERMISSION
from jobmond.model.outcome import Signal
from jobmond.model.state import TERMINAL, Severity, State

_WEIGHT = {Severity.ALARM: 0, Severity.WATCH: 1, Severity.INFO: 2}
_FAILED = frozenset({State.FAILED, State.OUT_OF_MEMORY, State.NODE_FAIL, State.TIMEOUT})
_NO_REASON = frozenset({"", "None", "(null)"})
_SAID_CHARS = 160
_WHY = {
    State.TIMEOUT: "ran into its time limit and nothing continues it",
    State.OUT_OF_MEMORY: "ran out of memory",
    State.NODE_FAIL: "its node failed",
    State.LOST: "no source knows it any more",
    State.PREEMPTED: "preempted and not queued again",
}
_LOG = {
    "absent": "no log at the path the source names",
    "empty": "log still empty",
    "unavailable": "log could not be read",
}


def note(job: Job) -> str:
    """What matters (first, for a narrow terminal), what it is, and where to go on, by `; `."""
    over = job.state in TERMINAL or job.state is State.UNKNOWN
    what = job.choices.description or job.name
    parts = [
        *(_ended(job) if over else _live(job)),
        *([what] if what != job.native_id else []),
        *(_onward(job) if over else []),
    ]
    return "; ".join(parts)


def open_signals(job: Job) -> list[Signal]:
    """Signals that still stand, the gravest first."""
    standing = [s for s in job.signals if s.cleared_at is None]
    return sorted(standing, key=lambda s: _WEIGHT[s.severity])


def alarming(job: Job) -> bool:
    """Whether the way a job ended asks for a person."""
    if continued(job.state, job.successor, job.ref):
        return False
    return job.state in _FAILED or job.state is State.LOST


def continued(state: str, successor: str | None, ref: str) -> bool:
    """Whether an end is a normal restart: a time limit or a preemption that another job goes on
    from, or any end after which the scheduler queued the same job (`ref`) again. A failure that
    an `afterany` successor happens to follow is still a failure.
    """
    if successor is None:
        return False
    return state in (State.TIMEOUT, State.PREEMPTED) or successor == ref


def _live(job: Job) -> list[str]:
    signals = open_signals(job)
    if signals:
        advice = f", {signals[0].action}" if signals[0].action not in {"", "none"} else ""
        return [signals[0].title + advice]
    if job.seen_at is None:
        return ["not asked about yet"]
    said = (job.facts.progress, _tasks(job) or _standing(job))
    return [part for part in said if part]


def _standing(job: Job) -> str | None:
    if job.state is State.PENDING:
        return _waiting(job)
    if job.facts.suspended:
        return "suspended"
    if job.log.status in _LOG:
        denied = (job.log.error or "").startswith(PERMISSION)
        return _LOG[job.log.status] + (": permission" if denied else "")
    return f"log: {job.log.last_line}" if job.log.last_line else None


def _waiting(job: Job) -> str:
    if job.facts.held:
        return f"held ({_reason(job) or 'nobody says why'})"
    if job.facts.dependency:
        return f"waits for {job.facts.dependency}"
    reason = _reason(job)
    if reason is None:
        return "waiting"
    said = (job.facts.message or "").partition("\n")[0][:_SAID_CHARS]
    return f"waiting: {reason} ({said})" if said else f"waiting: {reason}"


def _tasks(job: Job) -> str | None:
    tasks = job.facts.tasks
    if tasks is None:
        return None
    counts = [f"{n} {state.lower()}" for state, n in tasks.by_state.items() if n]
    failed = f" (failed: {', '.join(tasks.failed)})" if tasks.failed else ""
    return f"{tasks.total} parts: {', '.join(counts)}{failed}"


def _ended(job: Job) -> list[str]:
    if job.state is State.COMPLETED:
        return ["no action", *filter(None, [_tasks(job)])]
    if continued(job.state, job.successor, job.ref):
        return [f"no action: goes on as {job.successor}"]
    if job.state is State.CANCELLED:
        return [f"no action: {_cancelled(job)}"]
    if job.state is State.UNKNOWN:
        return ["over or gone, and no source can tell how; see its log"]
    action = "needs action" if alarming(job) else "look whether it is wanted"
    return [f"{action}: {_cause(job)}", *filter(None, [_again(job), _tasks(job)])]


def _onward(job: Job) -> list[str]:
    if job.state is State.COMPLETED or continued(job.state, job.successor, job.ref):
        return []
    return [f"followed by {job.successor}"] if job.successor is not None else []


def _cause(job: Job) -> str:
    if job.diagnosis is not None and job.diagnosis.cause != "unknown":
        return f"{job.diagnosis.summary}{_code(job, ' (', ')')}"
    if job.state is State.LOST and job.facts.message:
        last = job.facts.message.partition("\n")[0][:_SAID_CHARS]
        return f"{_reason(job)}: {last}" if _reason(job) else last
    if job.state in _WHY:
        return _WHY[job.state] + _code(job, " (", ")")
    said = _code(job) or _reason(job)
    return said or "no source says why"


def _again(job: Job) -> str | None:
    """That it has failed like this before, where it has."""
    known = job.diagnosis.recurrence if job.diagnosis else None
    return known.words if known is not None and known.telling else None


def _code(job: Job, before: str = "", after: str = "") -> str:
    if job.facts.signal:
        return f"{before}signal {job.facts.signal}{after}"
    if job.facts.exit_code:
        return f"{before}exit code {job.facts.exit_code}{after}"
    return ""


def _cancelled(job: Job) -> str:
    native = job.native.strip()
    return native.lower() if native.upper().startswith("CANCELLED") else "cancelled"


def _reason(job: Job) -> str | None:
    reason = (job.facts.reason or "").strip()
    return None if reason in _NO_REASON else reason


def since_started_s(job: Job, now: datetime) -> int | None:
    """Elapsed seconds as far as anybody looked: a stale job counts to when it was last seen.

    None for a job that has not started; a suspended one stands where the source last said.
    """
    facts = job.facts
    if job.state is State.PENDING:
        return None
    if job.state is State.RUNNING and not facts.suspended and facts.started_at is not None:
        until = (job.seen_at or now) if job.stale else now
        return max(0, int((until - facts.started_at).total_seconds()))
    if facts.elapsed_s is not None:
        return facts.elapsed_s
    ended = facts.ended_at
    if facts.started_at is None or ended is None:
        return None
    return max(0, int((ended - facts.started_at).total_seconds()))
