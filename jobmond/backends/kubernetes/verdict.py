"""What a Job, with its pods, its place in a queue and its events, amounts to. Pure.

The Job itself says very little: it is `active` while its pod cannot be placed, pulled, mounted or
kept up, and says nothing at all where no pod could be made.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from jobmond.backends.kubernetes.indexes import index_of, spans, tasks
from jobmond.backends.kubernetes.pods import (
    Doing,
    End,
    attempts,
    doing,
    ended,
    last_failure,
    log_place,
)
from jobmond.backends.kubernetes.queueing import queued
from jobmond.backends.kubernetes.records import QUEUE, Happening, JobRecord, Pod, Workload
from jobmond.model.observation import Ask, Facts, Seen
from jobmond.model.state import TERMINAL, State

NO_PODS = "no-pods"
RECORD_GONE = "record-gone"
# How long the controller waits before it tries again. Source: its DefaultJobPodFailureBackOff and
# MaxJobPodFailureBackOff.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 10, 600
_NODES = 20
_SAID_CHARS = 160
_VICTIMS = frozenset({137, 143})  # ended by somebody else, most often because a peer had failed


@dataclass(frozen=True, slots=True)
class Picture:
    """A Job and everything that was said about it.

    `max_misses`: looks without pods that end it, if they span `patience` at least: people may ask
    for one look right after another.
    """

    job: JobRecord
    pods: Sequence[Pod]
    workload: Workload | None = None
    happenings: Sequence[Happening] = ()
    max_misses: int = 3
    patience: timedelta = timedelta()

    @property
    def live(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.live]


@dataclass(frozen=True, slots=True)
class _Word:
    state: State
    native: str
    reason: str | None = None
    message: str | None = None
    end: End | None = None
    ended_at: datetime | None = None
    misses: int = 0
    empty_since: datetime | None = None
    held: bool = False
    suspended: bool = False


def seen(picture: Picture, ask: Ask | None, *, now: datetime) -> Seen:
    """The verdict about a Job. `ask` is None for one that nobody tracks.

    Raises:
        Unreadable: a word that has no meaning here.
    """
    looks = (_over, _leaving, _held_back, _left_to_others, _at_work, _unreconciled)
    word = next((word for look in looks if (word := look(picture))), None)
    word = word or _without_pods(picture, ask, now)
    job = picture.job
    return Seen(word.state, word.native, job.meta.uid, _facts(picture, word, now), "jobs and pods")


def needs_events(picture: Picture) -> frozenset[str]:
    """The uids whose events may say what the records do not."""
    looks = (_over, _leaving, _held_back, _left_to_others)
    if any(look(picture) for look in looks):
        return frozenset()
    waiting = [p for p in picture.live if not p.meta.deleting and silent(doing(p))]
    if waiting:
        return frozenset({waiting[0].meta.uid})
    return frozenset() if picture.live else frozenset({picture.job.meta.uid})


def silent(now: Doing) -> bool:
    """Whether a pod waits and does not say for what."""
    return now.state is State.PENDING and now.reason in (None, "ContainerCreating", "Scheduled")


def _over(picture: Picture) -> _Word | None:
    job = picture.job
    if failed := job.holds("Failed"):
        return _failed(picture, failed.reason, failed.message, failed.at)
    if complete := job.holds("Complete"):
        end = next((e for e in _ends(picture.pods) if e.state is State.COMPLETED), None)
        at = job.completed_at or complete.at
        return _Word(
            State.COMPLETED, "Complete", complete.reason, complete.message, end, ended_at=at
        )
    return None


def _failed(
    picture: Picture, reason: str | None, message: str | None, at: datetime | None
) -> _Word:
    end = _telling(picture)
    if reason == "DeadlineExceeded":
        return _Word(State.TIMEOUT, "Failed", reason, message, end, at)
    if end is None:
        return _Word(State.FAILED, "Failed", reason, message, None, at)
    known = reason == "BackoffLimitExceeded" and not end.plain
    if end.state is not State.FAILED or known:
        return _Word(end.state, "Failed", end.reason, end.message or message, end, at)
    told = [message, end.message] if reason == "PodFailurePolicy" else [end.message or message]
    return _Word(State.FAILED, "Failed", reason, "\n".join(filter(None, told)) or None, end, at)


def _telling(picture: Picture) -> End | None:
    """The end that explains a failure: of parts beside each other the first, of attempts one
    after the other the last."""
    job = picture.job
    given_up = spans(job.bad_indexes)
    bad = [p for p in picture.pods if (i := index_of(p)) is not None and i in given_up]
    ends = [end for end in _ends(bad or picture.pods) if end.state is not State.COMPLETED]
    if not ends:
        return None
    ends.sort(key=lambda end: end.at.timestamp() if end.at else float("inf"))
    if job.parallelism == 1 and not job.indexed:
        return ends[-1]
    own = [end for end in ends if not (end.plain and end.exit_code in _VICTIMS)]
    return (own or ends)[0]


def _ends(pods: Iterable[Pod]) -> Iterable[End]:
    return (end for pod in pods if (end := ended(pod)))


def _leaving(picture: Picture) -> _Word | None:
    """A Job whose end is decided and not yet reached."""
    job = picture.job
    if doomed := job.holds("FailureTarget"):
        return _Word(State.RUNNING, "FailureTarget", doomed.reason, doomed.message)
    if done := job.holds("SuccessCriteriaMet"):
        return _Word(State.RUNNING, "SuccessCriteriaMet", done.reason, done.message)
    if job.meta.deleting:
        return _Word(State.RUNNING, "Deleting", "Deleting")
    return None


def _held_back(picture: Picture) -> _Word | None:
    job = picture.job
    said = job.holds("Suspended")
    if not (job.suspended or said):
        return None
    if picture.workload is None:
        message = said.message if said else None
        return _Word(State.PENDING, "Suspended", "Suspended", message, suspended=True)
    place = queued(picture.workload)
    reason = place.reason or "Suspended"
    return _Word(State.PENDING, "Suspended", reason, place.message, held=place.held, suspended=True)


def _left_to_others(picture: Picture) -> _Word | None:
    job = picture.job
    if job.foreign is None or picture.live:
        return None
    state = State.RUNNING if job.ready or job.active else State.PENDING
    return _Word(state, "ManagedBy", "ManagedBy", f"left to {job.foreign}")


def _unreconciled(picture: Picture) -> _Word | None:
    if picture.job.reconciled or picture.live:
        return None
    return _Word(State.PENDING, "Unreconciled", "Unreconciled", "no controller has looked at it")


def _at_work(picture: Picture) -> _Word | None:
    """By what its pods do: those that stay, and where none does those that are going."""
    live = picture.live
    if not live:
        return None
    staying = [pod for pod in live if not pod.meta.deleting]
    if not staying:
        return _going(live[0])
    doings = [doing(pod, picture.happenings) for pod in staying]
    running = any(one.state is State.RUNNING for one in doings)
    stuck = next((one for one in doings if one.stuck), None)
    waits = next((one for one in doings if one.state is State.PENDING), None)
    if running:
        return _Word(State.RUNNING, "Running", *_said(stuck or _first_running(doings)))
    return _Word(State.PENDING, "Pending", *_said(stuck or waits))


def _said(one: Doing | None) -> tuple[str | None, str | None]:
    return (one.reason, one.message) if one else (None, None)


def _first_running(doings: Iterable[Doing]) -> Doing | None:
    return next((one for one in doings if one.state is State.RUNNING and one.reason), None)


def _going(pod: Pod) -> _Word:
    disrupted = pod.conditions.get("DisruptionTarget")
    if disrupted and disrupted.true:
        return _Word(State.RUNNING, "Terminating", disrupted.reason, disrupted.message)
    return _Word(State.RUNNING, "Terminating", "Terminating")


def _without_pods(picture: Picture, ask: Ask | None, now: datetime) -> _Word:
    """Not ended, not held back, and nothing of it runs: once may be bad luck."""
    job = picture.job
    refused = _refused(picture)
    last = max(_ends(picture.pods), key=lambda e: e.at.timestamp() if e.at else 0.0, default=None)
    if _backing_off(picture, now):
        message = _told(last)
        return _Word(State.RUNNING, "Active", "BackOff", message)
    known = ask is not None and ask.birth in (None, job.meta.uid)
    misses = ((ask.facts.misses if ask and known else None) or 0) + 1
    since = (ask.facts.empty_since if ask and known and misses > 1 else None) or now
    long = now - since >= picture.patience or (ask is not None and ask.state is State.LOST)
    message = refused.message if refused else _told(last)
    if misses >= picture.max_misses and long and ask is not None:
        return _Word(State.LOST, NO_PODS, NO_PODS, message, misses=misses, empty_since=since)
    reason = refused.reason if refused else None
    if reason is None:
        reason = "BackOff" if job.failed else (last.reason if last else None)
    waiting = job.active and not job.ready and last is None
    state = State.PENDING if waiting else State.RUNNING
    return _Word(state, "Active", reason, message, misses=misses, empty_since=since)


def _refused(picture: Picture) -> Happening | None:
    """The event that says why no pod could be made."""
    about = [
        one
        for one in picture.happenings
        if one.uid == picture.job.meta.uid and one.warning and one.reason == "FailedCreate"
    ]
    return max(about, key=lambda one: one.at.timestamp() if one.at else 0.0, default=None)


def _backing_off(picture: Picture, now: datetime) -> bool:
    failures = picture.job.failed
    last = last_failure(picture.pods)
    if not failures or last is None:
        return False
    wait_s = min(_FIRST_WAIT_S * 2 ** min(failures - 1, 10), _LONGEST_WAIT_S)
    return now - last < timedelta(seconds=wait_s)


def _told(end: End | None) -> str | None:
    if end is None:
        return None
    said = f"its last pod ended: {end.reason or end.state.value}"
    return said if end.exit_code is None else f"{said}, exit code {end.exit_code}"


def _facts(picture: Picture, word: _Word, now: datetime) -> Facts:
    job, pods = picture.job, picture.pods
    over = word.state in TERMINAL
    code = word.end.exit_code if over and word.end else None
    shown = _shown(picture, word)
    ended_at = word.ended_at if over else None
    nodes = sorted({pod.node for pod in (picture.live or pods) if pod.node})
    return Facts(
        name=job.meta.name,
        partition=job.meta.labels.get(QUEUE),
        workdir=job.template.workdir,
        command=job.template.command,
        reason=word.reason,
        message=word.message,
        exit_code=code,
        signal=signal_of(code),
        submitted_at=job.meta.created_at,
        started_at=job.started_at,
        ended_at=ended_at,
        elapsed_s=span_s(job.started_at, ended_at or now),
        time_limit_s=job.deadline_s,
        nodes=",".join(nodes[:_NODES]) or None,
        restarts=max(map(attempts, pods), default=0) or None,
        log_path=log_place(shown, word.end.container if word.end and over else None)
        if shown
        else None,
        held=word.held,
        suspended=word.suspended,
        tasks=tasks(job, pods),
        misses=word.misses or None,
        empty_since=word.empty_since,
        progress=in_words(word.state, word.reason, word.message),
    )


def _shown(picture: Picture, word: _Word) -> Pod | None:
    """The pod whose log people want: the one that explains the end, else the first that works."""
    if word.end is not None and word.end.container is not None:
        for pod in picture.pods:
            if any(c is word.end.container for c in (*pod.init, *pod.containers)):
                return pod
    staying = [pod for pod in picture.live if not pod.meta.deleting]
    order = sorted(staying or picture.pods, key=_rank)
    return order[0] if staying else (order[-1] if order else None)


def _rank(pod: Pod) -> tuple[bool, int, float]:
    waits = pod.live and doing(pod).state is State.PENDING
    return (
        waits,
        index_of(pod) or 0,
        pod.meta.created_at.timestamp() if pod.meta.created_at else 0.0,
    )


def in_words(state: State, reason: str | None, message: str | None) -> str | None:
    """What a running job is in the middle of, such as a crash loop."""
    if state is not State.RUNNING or reason is None:
        return None
    said = (message or "").partition("\n")[0][:_SAID_CHARS]
    return f"{reason}: {said}" if said else reason


def signal_of(code: int | None) -> int | None:
    """The signal that a shell's or runtime's exit code stands for."""
    return code - 128 if code is not None and 128 < code < 160 else None


def span_s(start: datetime | None, end: datetime) -> int | None:
    """Whole seconds between two instants, never below zero."""
    return max(0, int((end - start).total_seconds())) if start else None


def orphaned(ask: Ask, pods: Sequence[Pod]) -> Seen | None:
    """A job whose record is gone and whose pods were left running."""
    mine = [p for p in pods if p.job_uid == ask.birth and p.live and not p.meta.deleting]
    if ask.birth is None or not mine:
        return None
    facts = replace(
        ask.facts,
        reason="Orphaned",
        message=f"the Job was deleted, {len(mine)} of its pods run on",
        log_path=log_place(mine[0]),
        misses=None,
        empty_since=None,
    )
    return Seen(State.RUNNING, "Orphaned", ask.birth, facts, "pods")
