"""From moves and logs to everything one sweep of one cluster commits."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from jobmond.analysis import notices
from jobmond.analysis.acting import ACTED_ON, NO_LEAVE, Leave, decided
from jobmond.analysis.benign import NOTHING, Benign
from jobmond.analysis.ends import to_explain
from jobmond.analysis.failures import History
from jobmond.analysis.followed import Followed, with_trend
from jobmond.analysis.judge import Judged, carried, judged, judged_steps
from jobmond.analysis.logscan import Scan
from jobmond.analysis.owed_news import followup_news
from jobmond.analysis.owing import ended, fresh, opened
from jobmond.analysis.probing import NOT_PROBED, Probing, after, probing, untested
from jobmond.analysis.settle import Move
from jobmond.analysis.silence import said_once, view_of
from jobmond.analysis.tried import NOTHING_TRIED, Tried, completed_now
from jobmond.analysis.worked import NO_LINES, Evidence, InfraLines, worked
from jobmond.model.commit import NO_PAST, JobChange, Past
from jobmond.model.intent import Intent
from jobmond.model.job import Job, LogEvidence
from jobmond.model.observation import LogTail, NotApplicable, Reading
from jobmond.model.outcome import Delivery, Followup, News, Signal, Transition
from jobmond.model.setting import Setting as TriedSetting
from jobmond.model.state import TERMINAL, State
from jobmond.ports import Case, Rule, SweepView
from jobmond.reports.collapse import collapse_entry
from jobmond.sweep.observe import log_readers
from jobmond.sweep.postmortem import Autopsy, Story, autopsy, evidence, scanned
from jobmond.sweep.trees import NO_TREES, Trees

AGENT_LOG = "agent_log"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What changed, what to tell, and the files that must stand."""

    changes: tuple[JobChange, ...]
    news: tuple[News, ...]
    deliveries: tuple[Delivery, ...]
    opened: tuple[Followup, ...] = ()
    closed: tuple[Followup, ...] = ()
    completed: tuple[TriedSetting, ...] = ()


@dataclass(frozen=True, slots=True)
class Terms:
    """What is decided elsewhere: rules, and how long a post-mortem stays open (sweeps).

    `agent_logs` is the directory of failure entries, absolute. `recurrence_window` is for how long
    a failure is remembered when others are compared with it.
    """

    rules: tuple[Rule, ...]
    sinks: tuple[str, ...]
    agent_logs: str
    post_mortem_sweeps: int = 3
    recurrence_window: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Setting:
    """What all jobs of one sweep have in common.

    `answered` says that the cluster as a whole did: what then moved nothing is that job's own
    trouble, and shown with it. What is `benign` on that cluster explains nothing. `leave` is what
    may follow from a collapse there. `trees` are this sweep's looks at trials, `infra_lines` lines
    by which the cluster's logs tell of its infrastructure. `steady_since` is when our clock was
    set while we ran. `past` is what explaining ends needs. `tried` are
    settings of earlier runs there, `owed` is what is owed for its jobs.
    """

    terms: Terms
    now: datetime
    answered: bool = True
    benign: Benign = NOTHING
    leave: Leave = NO_LEAVE
    trees: Trees = NO_TREES
    infra_lines: InfraLines = NO_LINES
    steady_since: datetime | None = None
    past: Past = NO_PAST
    tried: Tried = NOTHING_TRIED
    owed: Sequence[Followup] = ()


@dataclass(frozen=True, slots=True)
class _Concluded:
    """What came of one move."""

    change: JobChange | None
    news: tuple[News, ...]
    entries: tuple[Delivery, ...]
    opened: tuple[Followup, ...] = ()
    closed: tuple[Followup, ...] = ()
    probing: Probing = NOT_PROBED


def concluded(
    moves: Sequence[Move],
    readings: Mapping[str, Reading[LogTail]],
    setting: Setting,
    read: Mapping[str, Followed] | None = None,
) -> Conclusion:
    """Judge every move, explain what failed, compose the news. `read` is by native id, what is
    new in the logs that are followed.
    """
    terms, now = setting.terms, setting.now
    readers = log_readers(moves)
    looks = [_reading_for(move, readers, readings) for move in moves]
    logs = [_log(m.job, look, now=now) for m, look in zip(moves, looks, strict=True)]
    seen = (replace(move.job, log=log) for move, log in zip(moves, logs, strict=True))
    view, history = view_of(seen, readings, now=now), History(setting.past.failures)
    by_place: dict[int, _Concluded] = {}
    shared = _shared(moves, logs)
    completed = completed_now(m.job for m in moves if m.transition is not None)
    tried = replace(setting.tried, completed=(*setting.tried.completed, *completed))
    for place in _by_end(moves, now):
        move = moves[place]
        mine = readers.get(move.job.native_id) is move
        followed = (read or {}).get(move.job.native_id) if mine else None
        trees = setting.trees if mine else NO_TREES
        sight = _Evidence(looks[place], logs[place], followed, view, trees, history, tried)
        own = setting if logs[place].path not in shared else _without_leave(setting)
        by_place[place] = _one(move, sight, own)
        tried = after(tried, by_place[place].probing)
    done = [by_place[place] for place in range(len(moves))]
    changes = tuple(one.change for one in done if one.change is not None)
    news = said_once((n for one in done for n in one.news), moves, changes)
    entries = (entry for one in done for entry in one.entries)
    return Conclusion(
        changes,
        tuple(news),
        (*entries, *news_deliveries(news, terms.sinks, now)),
        tuple(owed for one in done for owed in one.opened),
        tuple(owed for one in done for owed in one.closed),
        tuple(completed),
    )


def _shared(moves: Iterable[Move], logs: Iterable[LogEvidence]) -> frozenset[str]:
    """Logs to which several running jobs write: what stands in one may be about any of them.

    An array has its log from one of its tasks.
    """
    running = (
        log.path
        for move, log in zip(moves, logs, strict=True)
        if move.job.state is State.RUNNING and move.job.facts.tasks is None and log.path
    )
    return frozenset(path for path, jobs in Counter(running).items() if jobs > 1)


def _without_leave(setting: Setting) -> Setting:
    why = setting.leave.no_kill or "another running job writes to the same log"
    return replace(setting, leave=replace(setting.leave, no_kill=why))


def _log(job: Job, look: Reading[LogTail], *, now: datetime) -> LogEvidence:
    log = evidence(job.log, look, now=now)
    return replace(log, rested_at=now) if job.facts.suspended else log


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What was seen of one job beside its state."""

    reading: Reading[LogTail]
    log: LogEvidence
    followed: Followed | None
    view: SweepView
    trees: Trees
    history: History
    tried: Tried


def _by_end(moves: Sequence[Move], now: datetime) -> list[int]:
    """The places of `moves` in the order in which they ended: what failed first is the past of
    what failed after it, in the same sweep too.
    """
    return sorted(range(len(moves)), key=lambda place: moves[place].job.ended_at or now)


def _one(move: Move, seen: _Evidence, setting: Setting) -> _Concluded:
    terms, now, followed = setting.terms, setting.now, seen.followed
    examined = autopsy(
        move.job,
        seen.reading,
        ended_now=to_explain(move),
        agent_logs=terms.agent_logs,
        sweeps=terms.post_mortem_sweeps,
        now=now,
        benign=setting.benign,
        story=Story(seen.history, _went_through(move, setting)),
    )
    job = replace(examined.job, log=seen.log)
    tree = seen.trees.of(job)
    work, found = worked(job, tree, seen.reading, now=now, lines=setting.infra_lines)
    job = seen.trees.banked(replace(job, work=work), now=now)
    verdict = judged(_case(move, job, seen, found, setting), terms.rules)
    verdict += judged_steps(job, followed.steps, now=now) if followed else carried(job)
    probe = probing(job, verdict.signals, seen.tried, now=now)
    note = move.error if setting.answered else None
    job = replace(job, signals=verdict.signals, probe=probe.standing, note=note)
    if followed is not None or (job.state is State.RUNNING and not job.stale):
        job = with_trend(job, now=now)
    scan = scanned(seen.reading, setting.benign)
    acts = [_act(job, s, followed, scan, setting) for s in verdict.opened if s.rule == ACTED_ON]
    entries = [act.entry for act in acts]
    if examined.entry is not None:
        entries.append(_entry_delivery(job, examined, now))
    change = None
    kept = seen.trees.memory(job)
    if job != move.before or followed is not None or kept is not None:
        change = JobChange(
            job,
            (move.transition,) if move.transition else (),
            followed.bookmark if followed else None,
            tuple(act.intent for act in acts if act.intent is not None),
            kept,
        )
    owed = (*fresh(opened(move, job, verdict.opened, now=now), setting.owed), *probe.opened)
    over = (*ended(job, setting.owed, now=now), *probe.closed)
    news = (
        *_news(replace(move, job=job), examined, verdict, acts, now),
        *(followup_news(one, at=now) for one in (*owed, *over)),
    )
    return _Concluded(change, news, tuple(entries), owed, over, probe)


def _case(move: Move, job: Job, seen: _Evidence, found: Evidence, setting: Setting) -> Case:
    return Case(
        move.before,
        job,
        setting.now,
        steady_since=setting.steady_since,
        log=seen.reading,
        view=seen.view,
        trials=found.trials,
        engine=found.engine,
        exported=found.exported,
        completion=seen.trees.completion(job),
        untested=untested(job, seen.tried),
    )


@dataclass(frozen=True, slots=True)
class _Act:
    """What follows from a collapse: what is written down of it, and whether it is cancelled."""

    entry: Delivery
    path: str
    decision: str
    intent: Intent | None


def _act(
    job: Job, signal: Signal, followed: Followed | None, scan: Scan | None, setting: Setting
) -> _Act:
    now, decision = setting.now, decided(job, signal, setting.leave)
    steps = followed.recent if followed else ()
    path, text = collapse_entry(job, signal, steps=steps, scan=scan, decision=decision.why, now=now)
    life = job.training.log_life if job.training is not None else 1
    key = f"{notices.transition_key(job)}:{signal.rule}:{life}:{signal.step}"
    where = f"{setting.terms.agent_logs}/{path}"
    entry = Delivery(0, key, AGENT_LOG, {"path": where, "text": text}, created_at=now, due_at=now)
    intent = Intent(0, job.id, signal.rule, signal.step, key, decision.why, now)
    return _Act(entry, where, decision.why, intent if decision.cancel else None)


def news_deliveries(news: Iterable[News], sinks: Sequence[str], now: datetime) -> list[Delivery]:
    """One delivery a sink and event, grouped by sink, in the order of the events."""
    told = list(news)
    return [
        Delivery(0, n.key, sink, {"key": n.key, **n.payload}, created_at=now, due_at=now)
        for sink in sinks
        for n in told
    ]


def _reading_for(
    move: Move, readers: Mapping[str, Move], readings: Mapping[str, Reading[LogTail]]
) -> Reading[LogTail]:
    """The reading of a life's log.

    An earlier life under the same id has lost its own, and where several are waiting for theirs
    only one was read.
    """
    other = readers.get(move.job.native_id, move) is not move
    if other or move.restarted_as == move.job.ref:
        return NotApplicable()
    return readings.get(move.job.native_id, NotApplicable())


def _went_through(move: Move, setting: Setting) -> tuple[Transition, ...]:
    known = setting.past.transitions.get(move.job.id, ())
    return known if move.transition is None else (*known, move.transition)


def _entry_delivery(job: Job, examined: Autopsy, now: datetime) -> Delivery:
    body: dict[str, Any] = {"path": job.agent_log, "text": examined.entry}
    key = f"{notices.transition_key(job)}:entry:{job.post_mortem_tries}"
    return Delivery(0, key, AGENT_LOG, body, created_at=now, due_at=now)


def _news(
    move: Move, examined: Autopsy, verdict: Judged, acts: Sequence[_Act], now: datetime
) -> Iterable[News]:
    job = move.job
    if move.transition is not None and not move.silent:
        if move.restarted_as is not None and move.restarted_in is not None:
            yield notices.restart_news(
                job,
                move.transition,
                after=move.restarted_in,
                successor=move.restarted_as,
                at=now,
            )
        elif notices.worth_telling(job, move.transition):
            yield notices.transition_news(job, move.transition, at=now)
    # Also where the same sweep first saw it run: the failure must not wait for the array's end.
    if move.first_part_failed and move.restarted_as is None and job.state not in TERMINAL:
        yield notices.array_news(job, at=now)
    if examined.cause_changed:
        yield notices.cause_news(job, at=now)
    for signal in verdict.opened:
        act = acts[0] if acts and signal.rule == ACTED_ON else None
        told = (act.decision, act.path) if act is not None else None
        yield notices.signal_news(job, signal, "signal", at=now, decision=told)
    for signal in verdict.recovered:
        yield notices.signal_news(job, signal, "recovered", at=now)
    if job.state not in TERMINAL:
        for signal in verdict.cleared:
            yield notices.signal_news(job, signal, "cleared", at=now)
