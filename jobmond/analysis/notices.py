"""What changed, as news."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobmond.analysis.instants import instant, span
from jobmond.analysis.mask import mask
from jobmond.analysis.objects import diagnosis_object, signal_object
from jobmond.analysis.visible import visible
from jobmond.model.job import ClusterHealth, Job
from jobmond.model.outcome import News, Signal, Transition
from jobmond.model.state import ClusterStatus, Severity, State

_ALARM = frozenset({State.FAILED, State.OUT_OF_MEMORY, State.NODE_FAIL, State.LOST, State.TIMEOUT})
_WATCH = frozenset({State.PREEMPTED, State.UNKNOWN})


def severity(after: State) -> Severity:
    """How bad an end is that nothing continues."""
    if after in _ALARM:
        return Severity.ALARM
    return Severity.WATCH if after in _WATCH else Severity.INFO


def worth_telling(job: Job, transition: Transition) -> bool:
    """Whether a transition is news: the first sighting is only if it tells something new."""
    if transition.before is not None:
        return True
    if transition.after in _ALARM | _WATCH | {State.COMPLETED, State.CANCELLED}:
        return True
    last = job.choices.last_status
    return job.facts.held or (
        last is not None and last.split(" ")[0] not in (job.native, job.state)
    )


def transition_news(job: Job, transition: Transition, *, at: datetime) -> News:
    """One net change of one incarnation. `job` is as it is afterwards."""
    before = transition.before.value if transition.before else None
    return _job_news(
        job,
        at=at,
        type_="transition",
        key=f"{transition_key(job)}",
        level=severity(transition.after),
        title=_title(job, transition),
        more={
            "before": before,
            "after": transition.after.value,
            "native": visible(transition.native),
            "correction": transition.correction,
        },
    )


def restart_news(
    job: Job, transition: Transition, *, after: State, successor: str, at: datetime
) -> News:
    """A life ended and another goes on: a chain's next link, or the same id queued again."""
    how = "requeued" if successor == job.ref else f"continues as {successor}"
    return _job_news(
        job,
        at=at,
        type_="restart",
        key=f"{transition_key(job)}",
        level=Severity.INFO,
        title=f"{_label(job)}: {transition.after.value.lower()}, {how}",
        more={
            "before": _before_restart(job, transition, successor),
            "after": after.value,
            "native": visible(transition.native),
            "correction": False,
            "successor": successor,
        },
    )


def _before_restart(job: Job, transition: Transition, successor: str) -> str | None:
    if successor == job.ref:  # the ended life's state, because the ref itself goes on
        return transition.after.value
    return transition.before.value if transition.before else None


def array_news(job: Job, *, at: datetime) -> News:
    """The first failure among the parts of a job that runs on."""
    tasks = job.facts.tasks
    failed = ", ".join(tasks.failed[:3]) if tasks else ""
    return _job_news(
        job,
        at=at,
        type_="transition",
        key=f"{transition_key(job)}:parts",
        level=Severity.ALARM,
        title=f"{_label(job)}: first failure among its tasks ({visible(failed)})",
        more={
            "before": job.state.value,
            "after": job.state.value,
            "native": visible(job.native),
            "correction": False,
        },
    )


def cause_news(job: Job, *, at: datetime) -> News:
    """A failure reported earlier whose cause became known only now."""
    cause = job.diagnosis.cause if job.diagnosis else "unknown"
    return _job_news(
        job,
        at=at,
        type_="transition",
        key=f"{transition_key(job)}:cause:{cause}",
        level=severity(job.state),
        title=f"{_label(job)}: {job.state.value}, cause found: {_cause(job)}{_again(job)}",
        more={
            "before": job.state.value,
            "after": job.state.value,
            "native": visible(job.native),
            "correction": True,
        },
    )


def signal_news(
    job: Job,
    signal: Signal,
    type_: str,
    *,
    at: datetime,
    decision: tuple[str, str] | None = None,
) -> News:
    """A rule's remark came (`signal`), went (`cleared`) or the run recovered (`recovered`).

    `decision` is what follows from it, and the path of what was written down.
    """
    opened = signal.opened_at or at
    more: dict[str, Any] = {"signal": signal_object(signal)}
    if decision is not None:
        why, path = decision
        more |= {"body": visible(mask(f"{why}; {_body(job)}")), "agent_log": path}
    return _job_news(
        job,
        at=at,
        type_=type_,
        key=f"{_identity(job)}!{signal.rule}:{int(opened.timestamp())}:{type_}",
        level=signal.severity if type_ == "signal" else Severity.INFO,
        title=f"{_label(job)}: {signal.title}{'' if type_ == 'signal' else f' ({type_})'}",
        more=more,
    )


def cluster_news(before: ClusterHealth | None, after: ClusterHealth, *, at: datetime) -> News:
    """A cluster's trouble, or its end."""
    level = {
        ClusterStatus.UNREACHABLE: Severity.WATCH,
        ClusterStatus.NEEDS_LOGIN: Severity.ALARM,
    }.get(ClusterStatus(after.status), Severity.INFO)
    body = " ".join(t for t in (after.error, after.remedy and f"Try: {after.remedy}") if t)
    title = f"cluster {after.name}: {after.status}"
    if after.status == ClusterStatus.OK and before is not None:
        title += f" again, after {span((at - before.since).total_seconds())}"
    payload = {
        "schema": 1,
        "at": instant(at),
        "type": "cluster",
        "severity": level.value,
        "cluster": after.name,
        "job": None,
        "before": before.status if before else None,
        "after": after.status,
        "native": None,
        "correction": False,
        "title": title,
        "body": visible(mask(body)),
        "diagnosis": None,
        "agent_log": None,
    }
    key = f"cluster:{after.name}:{int(after.since.timestamp() * 1000)}:{after.status}"
    return News(key, at, "cluster", level, after.name, None, payload)


def _identity(job: Job) -> str:
    return f"{job.ref}@{job.birth or 'unseen'}"


def transition_key(job: Job) -> str:
    """The key of the newest transition of an incarnation, the same however often it is composed."""
    return f"{_identity(job)}#{job.transitions}"


def _label(job: Job) -> str:
    # In brackets: of a job called `password` or `secret` a colon right after the name would make
    # the state look like a secret, and whoever masks the line would take it out.
    return f"{job.ref} ({visible(job.name)})"


def _cause(job: Job) -> str:
    return visible(job.diagnosis.summary) if job.diagnosis else "no cause known yet"


def _again(job: Job) -> str:
    """That it has failed like this before, where it has."""
    known = job.diagnosis.recurrence if job.diagnosis else None
    return f"; {visible(known.words)}" if known is not None and known.telling else ""


def _cause_after(job: Job, transition: Transition) -> str:
    """The cause, without the state and code with which a summary begins that has none to tell."""
    said = _cause(job)
    how, _, rest = said.partition("; ")
    known = job.diagnosis is None or job.diagnosis.cause != "unknown"
    return said if known or not rest or not how.startswith(transition.after.value) else rest


def _title(job: Job, transition: Transition) -> str:
    before = f"{transition.before.value} → " if transition.before else ""
    end = ""
    if job.facts.exit_code is not None and transition.after is State.FAILED:
        end = f" (exit code {job.facts.exit_code})"
    if job.facts.signal:
        end = f" (signal {job.facts.signal})"
    cause = f": {_cause_after(job, transition)}" if job.diagnosis else ""
    corrected = "correction: " if transition.correction else ""
    said = f"{corrected}{_label(job)}: {before}{transition.after.value}{end}{cause}"
    return mask(said + _again(job))


def _body(job: Job) -> str:
    facts = job.facts
    said = (
        ("native", job.native),
        ("reason", facts.reason),
        ("elapsed", span(facts.elapsed_s) if facts.elapsed_s is not None else None),
        ("nodes", facts.nodes),
        ("proof", job.proof),
    )
    return visible(mask("; ".join(f"{k} {v}" for k, v in said if v)))


def _job_news(
    job: Job,
    *,
    at: datetime,
    type_: str,
    key: str,
    level: Severity,
    title: str,
    more: Mapping[str, Any],
) -> News:
    payload = {
        "schema": 1,
        "at": instant(at),
        "type": type_,
        "severity": level.value,
        "job": {
            "ref": job.ref,
            "name": visible(job.name),
            "bucket": job.bucket.value,
            "run": visible(job.run),
        },
        "before": None,
        "after": None,
        "native": visible(job.native),
        "correction": False,
        "title": title,
        "body": _body(job),
        "diagnosis": diagnosis_object(job.diagnosis),
        "agent_log": job.agent_log,
        **more,
    }
    return News(key, at, type_, level, job.cluster, job.ref, payload)
