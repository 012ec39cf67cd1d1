"""From the controller's records to what was seen of a job. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from jobmond.backends.iris.records import Children, Record, Task
from jobmond.backends.iris.words import BAD_TASKS, JOB_STATES, LIVE_TASKS, TASK_STATES
from jobmond.model.observation import (
    Ask,
    EndedLife,
    Facts,
    Gone,
    Seen,
    TaskCounts,
    Unreachable,
)
from jobmond.model.state import TERMINAL, State

GONE = "record-gone"
NO_TASKS = "no-pods"
REPLACED = "record-replaced"
_PARTS = 10
_KILL_SIGNALS = 64


@dataclass(frozen=True, slots=True)
class Terms:
    """How patient a verdict is.

    `grace`: how young a job may be that the controller never knew, and the least time over
    which a running job must have been without tasks; `max_misses`: at how many looks.
    """

    grace: timedelta
    max_misses: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """One job's record with what else was asked about it; `tasks` None: they were not."""

    record: Record
    tasks: tuple[Task, ...] | None = None
    children: Children | None = None
    looks: str | None = None  # says how often a running job had no task


def sighting(ask: Ask, evidence: Evidence, now: datetime) -> Seen | Unreachable:
    """What the record says of the job that `ask` means.

    A name can be submitted again, and the record is then the new job's: nobody can tell any more
    how the one before ended.
    """
    shown = seen(evidence, now)
    if isinstance(shown, Unreachable) or ask.birth is None or ask.birth == shown.birth:
        return shown
    if ask.birth.isdigit() and int(shown.birth) < int(ask.birth):
        return Unreachable("the controller shows an earlier submission of it")
    ended = replace(
        ask.facts, reason=REPLACED, exit_code=None, signal=None, ended_at=shown.facts.submitted_at
    )
    known = EndedLife(ask.birth, State.LOST, REPLACED, ended)
    return replace(shown, previous=(known,))


def seen(evidence: Evidence, now: datetime) -> Seen | Unreachable:
    """What the record says, whoever asked."""
    record = evidence.record
    if record.word is None:
        return Unreachable(f"unknown state word {record.native!r}")
    if record.birth is None:
        return Unreachable("its record does not say when it was submitted")
    state = JOB_STATES[record.word]
    return Seen(state, record.word, record.birth, _facts(evidence, state, now), "controller")


def empty(record: Record) -> bool:
    """Whether the record says that the job runs, and that none of its tasks is alive."""
    if record.word != "running" or record.away or record.tasks < 1 or record.counts is None:
        return False
    return not any(record.counts.get(word) for word in LIVE_TASKS)


def alive(tasks: Sequence[Task]) -> bool:
    """Whether any task may be alive; a word that we do not know may mean that."""
    return any(task.word is None or task.word in LIVE_TASKS for task in tasks)


def wants_tasks(record: Record) -> bool:
    """Whether only the tasks tell what should be known: exit codes, which failed, restarts."""
    if record.word is None or record.word == "succeeded":
        return False
    return JOB_STATES[record.word] in TERMINAL or bool(record.failures or record.preemptions)


def old(record: Record, since: datetime) -> bool:
    """Whether the job ended before `since`, or at an instant that nobody knows."""
    if record.word is None or JOB_STATES[record.word] not in TERMINAL:
        return False
    return record.finished_at is None or record.finished_at < since


def young(ask: Ask, now: datetime, terms: Terms) -> bool:
    """Whether a job that the controller has never known may still be on its way to it."""
    if ask.birth is not None:
        return False
    born = max(filter(None, (ask.submitted_at, ask.facts.submitted_at, ask.added_at)))
    return now - born < terms.grace


def gone(ask: Ask) -> Gone:
    """No record: what was last seen is all that will ever be known."""
    if ask.state is None or ask.state is State.LOST:
        return Gone(GONE, message=ask.facts.message)
    last = f"last seen {ask.state}" + (f" ({ask.facts.reason})" if ask.facts.reason else "")
    return Gone(GONE, message=last)


def culprit(tasks: Sequence[Task]) -> Task | None:
    """The task that failed first: what fell with it is not the cause."""
    failed = [task for task in tasks if task.word == "failed"]
    late = max((task.finished_ms or 0 for task in failed), default=0) + 1
    return min(failed, key=lambda task: task.finished_ms or late, default=None)


def _facts(evidence: Evidence, state: State, now: datetime) -> Facts:
    record, tasks = evidence.record, evidence.tasks or ()
    user, _, name = record.job_id.partition("/")
    code, signal = _exit(state, tasks)
    end = record.finished_at if state in TERMINAL else None
    reason, first = _reason(evidence, state), culprit(tasks)
    return Facts(
        name=name,
        user=user,
        reason=reason,
        message=first.last_words if state in TERMINAL and first else None,
        progress=reason if state is State.RUNNING else None,
        exit_code=code,
        signal=signal,
        submitted_at=record.submitted_at,
        started_at=record.started_at,
        ended_at=end,
        elapsed_s=_elapsed_s(record.started_at, end or now),
        nodes=_nodes(tasks),
        restarts=max((max(0, task.attempt) for task in tasks), default=None),
        log_path=log_place(record.job_id, record.birth),
        tasks=_counted(record, tasks),
        detailed=evidence.tasks is not None,
    )


def log_place(job_id: str, birth: str | None) -> str:
    """What a log is called that has no path: whose it is, and since when."""
    return f"iris:/{job_id}@{birth}" if birth else f"iris:/{job_id}"


def _exit(state: State, tasks: Sequence[Task]) -> tuple[int | None, int | None]:
    """Exit code and signal. The job's own exit code is 0 whatever happened: tasks have theirs."""
    if state is State.COMPLETED:
        return 0, None
    first = culprit(tasks) if state in TERMINAL else None
    if first is None or not first.exit_code:
        return None, None
    if -_KILL_SIGNALS <= first.exit_code < 0:
        return 128 - first.exit_code, -first.exit_code
    return first.exit_code, None


def _reason(evidence: Evidence, state: State) -> str | None:
    record, tasks = evidence.record, evidence.tasks or ()
    first = culprit(tasks)
    said: list[str | None] = []
    if state in TERMINAL:
        if state is not State.COMPLETED:
            said = [record.error or record.waits_for or (first.error if first else None)]
    else:
        said = [record.waits_for if state is State.PENDING else None, _setbacks(record, tasks)]
    said += [evidence.looks, _children(evidence.children)]
    return "; ".join(filter(None, said)) or None


def _setbacks(record: Record, tasks: Sequence[Task]) -> str | None:
    """What a live job has survived."""
    lost = sum(task.worker_failures for task in tasks)
    said = (
        (record.preemptions, "preemption", "preemptions"),
        (lost, "worker failure", "worker failures"),
        (record.failures, "failed attempt", "failed attempts"),
    )
    return ", ".join(f"{n} {one if n == 1 else many}" for n, one, many in said if n) or None


def _children(children: Children | None) -> str | None:
    if children is None or not children.counts:
        return None
    counts = ", ".join(f"{number} {word}" for word, number in sorted(children.counts.items()))
    named = f" ({', '.join(children.bad[:3])})" if children.bad else ""
    newest = sum(children.counts.values())
    part = f" (the newest {newest} of {children.total})" if children.total > newest else ""
    return f"child jobs{part}: {counts}{named}"


def _counted(record: Record, tasks: Sequence[Task]) -> TaskCounts | None:
    if record.tasks < 2 or record.counts is None:
        return None
    failed = (f"{record.job_id}/{t.index}" for t in tasks if t.word in BAD_TASKS)
    return TaskCounts(record.tasks, _by_state(record.counts), tuple(failed)[:_PARTS])


def _by_state(counts: Mapping[str, int]) -> dict[State, int]:
    found: dict[State, int] = {}
    for word, number in counts.items():
        state = TASK_STATES[word]
        found[state] = found.get(state, 0) + number
    return {state: number for state, number in found.items() if number}


def _nodes(tasks: Sequence[Task]) -> str | None:
    places = list(dict.fromkeys(task.place for task in tasks if task.place))
    if not places:
        return None
    rest = len(places) - 3
    return ",".join(places[:3]) + (f" and {rest} more" if rest > 0 else "")


def _elapsed_s(started: datetime | None, end: datetime) -> int | None:
    return None if started is None else max(0, int((end - started).total_seconds()))
