"""Trials of one or many jobs summed up."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobmond.analysis.harbor import (
    AGENT_STEPS,
    ALL_TRIALS,
    EPISODE_FOLDERS,
    EPISODES,
    SCORED_TRIALS,
    JobResult,
    named,
)
from jobmond.model.trials import Trial, Trials

RECENT = 100


@dataclass(frozen=True, slots=True)
class JobTree:
    """One job's folder: its own result, its trials in the order they ended (newest last), how
    many folders of trials have no result yet, how many have one that was not read.
    """

    result: JobResult | None = None
    trials: Sequence[Trial] = ()
    running: int = 0
    unread: int = 0


def tally(
    trees: Sequence[JobTree],
    *,
    chunks: int | None = None,
    last_result_at: datetime | None = None,
) -> Trials:
    """The numbers of all jobs together. `chunks` is how many there will be, None where the work
    is not cut into any.
    """
    counts = [_counted(tree) for tree in trees]
    totals = [tree.result.total if tree.result else None for tree in trees]
    trials = [trial for tree in trees for trial in tree.trials]
    turns, source, of = _turns(trials)
    exceptions: Counter[str] = Counter()
    for one in counts:
        exceptions.update(one.exceptions)
    mean, basis = _mean(counts)
    model, benchmark = named(n for tree in trees if tree.result for n in tree.result.evals)
    return Trials(
        done=sum(one.done or 0 for one in counts),
        total=_total(totals, chunks),
        running=sum(tree.running for tree in trees),
        passed=sum(one.passed for one in counts),
        errored=sum(one.errored for one in counts),
        exceptions=dict(exceptions),
        mean_reward=mean,
        mean_reward_basis=basis,
        avg_turns=turns,
        turns_source=source,
        turns_of=of,
        chunks_done=None if chunks is None else sum(one.finished for one in counts),
        chunks_total=chunks,
        jobs_running=sum(not one.finished for one in counts),
        finished=bool(counts) and all(one.finished for one in counts),
        last_result_at=last_result_at,
        recent=tuple(trials[-RECENT:]),
        whole=not any(tree.unread for tree in trees),
        model=model,
        benchmark=benchmark,
    )


def _total(totals: Sequence[int | None], chunks: int | None) -> int | None:
    """None while a job has not said how many it will be, or a chunk has not begun."""
    if not totals or None in totals or (chunks is not None and len(totals) < chunks):
        return None
    return sum(total or 0 for total in totals)


def _counted(tree: JobTree) -> JobResult:
    """The job's own numbers, unless its trials are ahead of them: the file is written at each
    trial's end and not at once, and a retry takes a trial's folder away.
    """
    own, trials = tree.result, tree.trials
    rewards = [trial for trial in trials if trial.reward is not None]
    if own is not None and (own.done or 0) >= len(trials) and (own.rewards or not rewards):
        return own
    basis = own.basis if own is not None and own.basis in (ALL_TRIALS, SCORED_TRIALS) else None
    if basis is None:
        basis = ALL_TRIALS if all(trial.scored for trial in trials) else SCORED_TRIALS
    over = [trial for trial in trials if trial.scored] if basis == SCORED_TRIALS else trials
    total = sum(trial.reward or 0.0 for trial in over)
    return JobResult(
        total=own.total if own else None,
        done=len(trials),
        errored=sum(trial.exception is not None for trial in trials),
        exceptions=Counter(trial.exception for trial in trials if trial.exception),
        rewards=Counter(trial.reward for trial in trials if trial.reward is not None),
        mean=total / len(over) if over and rewards else None,
        basis=basis if over and rewards else None,
        finished=own.finished if own else False,
    )


def _mean(counts: Iterable[JobResult]) -> tuple[float | None, str | None]:
    """The mean over all jobs, each weighted with the trials its own is over."""
    means = [
        (one.mean, one.basis, sum(one.rewards.values()) if one.basis == SCORED_TRIALS else one.done)
        for one in counts
        if one.mean is not None
    ]
    weight = sum(n or 0 for _, _, n in means)
    if not weight:
        return None, None
    bases = {basis for _, basis, _ in means}
    mean = sum(mean * (n or 0) for mean, _, n in means) / weight
    return mean, bases.pop() if len(bases) == 1 else "mixed"


def _turns(trials: Iterable[Trial]) -> tuple[float | None, str | None, int]:
    """The average over those trials whose turns are known by the best source there is."""
    by_source: dict[str, list[int]] = {}
    for trial in trials:
        if trial.turns is not None and trial.turns_source is not None:
            by_source.setdefault(trial.turns_source, []).append(trial.turns)
    for source in (EPISODES, AGENT_STEPS, EPISODE_FOLDERS):
        if turns := by_source.get(source):
            return sum(turns) / len(turns), source, len(turns)
    return None, None, 0
