"""A log that is followed: what is new in it, folded into what was read before."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime

from jobmond.analysis.bookmark import packed, unpacked
from jobmond.analysis.judge import Steps
from jobmond.analysis.logstate import LogState
from jobmond.analysis.reading import Candidate, LogReader
from jobmond.analysis.replay import Replay
from jobmond.analysis.track import Track
from jobmond.analysis.trend import TrendFacts, trend, trend_facts
from jobmond.analysis.withheld import released, withhold
from jobmond.model.job import Job
from jobmond.model.metrics import Segment
from jobmond.model.observation import LogNews, LogTail
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity
from jobmond.model.training import Bookmark, Place, Training
from jobmond.ports import MetricParser, Rule

RECENT, AROUND = 30, 15  # steps, for whoever writes down what was seen
CHECKPOINTS = 20  # of those the log names, the last ones are shown


@dataclass(frozen=True, slots=True)
class Kept:
    """A reading that was put down earlier.

    `own`: of this incarnation; otherwise of the one it continues, in whose log (`at.path`) it
    may go on writing.
    """

    at: Place
    packed: bytes
    own: bool


@dataclass(frozen=True, slots=True)
class Followed:
    """What following a log gave.

    `training` is None where no trainer is recognised; its trend is for whoever knows what else
    stands about the job. `recent` are the last logged steps with their numbers.
    """

    training: Training | None
    bookmark: Bookmark
    steps: Steps
    recent: tuple[tuple[int, Mapping[str, float]], ...] = ()


@dataclass(frozen=True, slots=True)
class Tools:
    """What logs are read with: the dialects, and the rules over steps."""

    parsers: Sequence[MetricParser]
    rules: Sequence[Rule]


NO_TOOLS = Tools((), ())  # nothing is followed


def followed(
    job: Job, tail: LogTail, news: LogNews, kept: Kept | None, tools: Tools, *, now: datetime
) -> Followed:
    """`job`'s log after `news`. `kept` is where its reading stood; None where it was not read."""
    bucket = job.bucket if job.bucket is not Bucket.OTHER else None
    work = job.work if job.work is not None and job.work.error is None else None
    done = work.recent_done if work is not None else 0
    rate = work.recent_passed / done if work is not None and done else None
    replay = Replay(tools.rules, job.labels, bucket, rate, done)
    reader = unpacked(kept.packed, tools.parsers, judge=replay.judge) if kept else None
    begun = reader is not None
    if reader is None:
        reader = LogReader(tools.parsers, judge=replay.judge)
        if kept is not None and not news.restarted:  # another version's: from the beginning again
            again = Bookmark(Place(tail.path, None, reader.needles), packed(reader))
            return Followed(job.training, again, Steps({}, None))
    elif news.restarted or (kept is not None and kept.at.path != tail.path):
        reader.another()
    known = _known_life(job, reader, kept) if begun else None
    came_on = kept is not None and not kept.own and kept.at.path == tail.path
    for segment in news.segments:
        if segment.closed:
            reader.take(segment)
    best = reader.best
    if best is not None:
        replay.judge(best.state)
    at = Place(tail.path, news.place, reader.needles)
    if best is None:
        return Followed(None, Bookmark(at, packed(reader)), Steps({}, None))
    same_life = kept is not None and kept.own and known == best.state.life
    shown = _glimpse(best, [s for s in news.segments if not s.closed])
    if news.behind_bytes:
        shown = _newest(best, tail) or shown
    facts = trend_facts(best.state, job.bucket if bucket else best.state.bucket)
    training = _training(job.training if same_life else None, shown, facts, now=now)
    _inherited(best.state, came_on=came_on and known == best.state.life, judged=replay.judged)
    steps = _steps(replay, best.state, same_life=same_life)
    steps = _sure(steps, best.state, behind=news.behind_bytes > 0)
    return Followed(
        replace(training, behind_bytes=news.behind_bytes),
        Bookmark(at, packed(reader)),
        steps,
        _recent(best.state, steps),
    )


def _known_life(job: Job, reader: LogReader, kept: Kept | None) -> int | None:
    """The life that was the newest one at the look before."""
    if reader.best is not None:
        return reader.best.state.life
    # A reading that begins anew, as another version's does, says nothing of lives.
    own = kept is not None and kept.own and kept.at.place is None
    return job.training.log_life if own and job.training is not None else None


def _inherited(state: LogState, *, came_on: bool, judged: bool) -> None:
    """Note whether the steps read last may be those of the job before, in whose log this goes on.

    What is new at a second look is its own: by then the job before wrote nothing any more.
    """
    if came_on:
        state.inherited = True
    elif judged:
        state.inherited = False


def _sure(steps: Steps, state: LogState, *, behind: bool) -> Steps:
    """Of what fired, only what is certainly this job's, and of its newest life."""
    if behind or state.inherited:
        withhold(state, steps.fired)
        return replace(steps, fired={}, newest=None)
    if not state.withheld:
        return steps
    return replace(steps, fired=released(state, steps.fired), newest=state.record_step)


def needles_at_first(parsers: Sequence[MetricParser]) -> tuple[bytes, ...]:
    """What a segment must hold to matter where nothing was read yet."""
    return LogReader(parsers).needles


def _glimpse(best: Candidate, opened: Sequence[Segment]) -> Candidate:
    """With what stands at the end of the log without a line feed: shown, not kept."""
    if not opened:
        return best
    track, best.state.track = best.state.track, Track()  # the series is large, and not asked
    try:
        glimpse = deepcopy(best)
    finally:
        best.state.track = track
    for segment in opened:
        for event in glimpse.parser.read(segment, glimpse.memory):
            glimpse.state.take(event, glimpse.parser, None)
    return glimpse


def _newest(best: Candidate, tail: LogTail) -> Candidate | None:
    """Where the reading is far behind, what the log's last bytes say by themselves."""
    reader = LogReader([best.parser])
    text = tail.tail[tail.tail.find(b"\n") + 1 :] if tail.offset else tail.tail
    reader.feed(text)
    ahead = reader.finish()
    if ahead is None or ahead.state.step is None:
        return None
    ahead.state.max_step = ahead.state.max_step or best.state.max_step
    ahead.state.life = best.state.life
    return ahead


def _training(
    before: Training | None, best: Candidate, facts: TrendFacts, *, now: datetime
) -> Training:
    state = best.state
    moved = before is None or before.step != state.step
    return Training(
        dialect=best.parser.name,
        bucket=state.bucket,
        phase=state.phase,
        step=state.step,
        max_step=state.max_step,
        metrics={**state.last, **state.canonical},
        rate_s_per_step=state.rate_s_per_step,
        eta_s=state.eta_s,
        log_life=state.life,
        resumed_from=state.resumed_from,
        records=state.records,
        checkpoints=tuple(sorted(state.checkpoints)[-CHECKPOINTS:]),
        values=facts.values,
        grad_norms=facts.grad_norms,
        first_step=facts.first_step,
        before_step=before.step if before is not None else None,
        stepped_at=now if before is None or moved else min(before.stepped_at or now, now),
        began_at=before.began_at if before is not None else now,
    )


def with_trend(job: Job, *, now: datetime) -> Job:
    """`job` with how it goes in words, all that stands about it considered."""
    training = job.training
    if training is None or training.dialect is None:
        return job
    begun_at = job.facts.started_at or training.began_at
    told = TrendFacts(
        phase=training.phase,
        step=training.step,
        max_step=training.max_step,
        descending=training.bucket is not Bucket.RL,
        values=training.values,
        grad_norms=training.grad_norms,
        life=training.log_life,
        life_steps=training.records,
        first_step=training.first_step,
        resumed_from=training.resumed_from,
        saved=_saved(training),
        before_step=training.before_step,
        phase_s=_since(begun_at, now) if training.phase == "bring-up" else None,
        still_s=_since(training.stepped_at, now) if training.step is not None else None,
        rate_s_per_step=training.rate_s_per_step,
        troubled=any(map(_troubles, job.signals)),
        seqnorm="seqnorm" in job.labels,
        behind=training.behind_bytes > 0,
    )
    return replace(job, training=replace(training, trend=trend(told)))


def _troubles(signal: Signal) -> bool:
    standing = signal.cleared_at is None and signal.recovered_at is None
    return standing and signal.severity is not Severity.INFO


def _saved(training: Training) -> int | None:
    """The newest checkpoint of the way to the present step; a life before may have got further."""
    step = training.step
    return max((at for at in training.checkpoints if step is None or at <= step), default=None)


def _since(then: datetime | None, now: datetime) -> float | None:
    return max(0.0, (now - then).total_seconds()) if then is not None else None


def _recent(state: LogState, steps: Steps) -> tuple[tuple[int, Mapping[str, float]], ...]:
    """The last ones, and those around the first firing of each rule."""
    logged = [(e.step, e.values) for e in state.track.current if e.step is not None]
    since = logged[-RECENT:][0][0] if logged else 0
    fired = [signal.step for signal in steps.fired.values() if signal.step is not None]
    return tuple(
        (step, dict(values))
        for step, values in logged
        if step >= since or any(abs(step - first) <= AROUND for first in fired)
    )


def _steps(replay: Replay, state: LogState, *, same_life: bool) -> Steps:
    fired: dict[str, Signal] = {}
    for firing in replay.firings:
        if firing.life != state.life:
            continue
        known = fired.get(firing.signal.rule)
        fired[firing.signal.rule] = (
            firing.signal if known is None else replace(known, last_step=firing.signal.last_step)
        )
    logged = [e.step for e in state.track.current if e.trained and e.step is not None]
    return Steps(
        fired,
        state.record_step if replay.judged else None,
        logged=logged,
        same_life=same_life,
    )
