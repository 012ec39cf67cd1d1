"""Results files of Harbor (0.1 to 0.26) and of terminal-bench, its predecessor.

Source: harbor, `models/trial/result.py`, `models/job/result.py` (both sets of names, which its
own migration accepts too), `job.py` (what the mean counts); terminal-bench, `results.json`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import isclose
from typing import Any

from jobmond.analysis.sifting import EVERYTHING, Wanted
from jobmond.model.trials import Trial

EPISODES, AGENT_STEPS, EPISODE_FOLDERS = "episodes", "agent-steps", "episode-folders"
ALL_TRIALS, SCORED_TRIALS, HARNESS = "all-trials", "scored-trials", "harness"

# Everything that is read of a trial's result, of a job's result and of a trajectory.
TRIAL_WANTED: Wanted = {
    "trial_name": EVERYTHING,
    "task_name": EVERYTHING,
    "agent_result": {"n_output_tokens": EVERYTHING, "metadata": {"n_episodes": EVERYTHING}},
    "verifier_result": {"rewards": {"*": EVERYTHING}},
    "exception_info": {"exception_type": EVERYTHING},
    "reward_valid": EVERYTHING,
    "started_at": EVERYTHING,
    "finished_at": EVERYTHING,
    "task_id": EVERYTHING,
    "is_resolved": EVERYTHING,
    "failure_mode": EVERYTHING,
    "total_output_tokens": EVERYTHING,
    "trial_started_at": EVERYTHING,
    "trial_ended_at": EVERYTHING,
}
JOB_WANTED: Wanted = {
    "n_total_trials": EVERYTHING,
    "started_at": EVERYTHING,
    "finished_at": EVERYTHING,
    "stats": {
        "n_trials": EVERYTHING,
        "n_errors": EVERYTHING,
        "n_completed_trials": EVERYTHING,
        "n_errored_trials": EVERYTHING,
        "n_running_trials": EVERYTHING,
        "evals": {
            "*": {
                "metrics": EVERYTHING,
                "reward_stats": EVERYTHING,
                "exception_stats": EVERYTHING,
            }
        },
    },
}
TRAJECTORY_WANTED: Wanted = {"steps": {"source": EVERYTHING, "is_copied_context": EVERYTHING}}

_NO_FAILURE = frozenset({"unset", "none", ""})
_NAME_LENGTH = 200


def trial(document: Any, *, name: str | None = None) -> Trial | None:
    """A trial's result as `TRIAL_WANTED` sifts it; None where it is no trial's.

    `name` is that of its folder.
    """
    if not isinstance(document, Mapping) or not isinstance(
        document.get("trial_name", document.get("task_name")), str
    ):
        return None
    if "is_resolved" in document:
        return _terminal_bench(document, name)
    agent = _mapping(document.get("agent_result"))
    reward = _reward(_mapping(_mapping(document.get("verifier_result")).get("rewards")))
    exception = _mapping(document.get("exception_info")).get("exception_type")
    turns = _count(_mapping(agent.get("metadata")).get("n_episodes"))
    valid = document.get("reward_valid")
    return Trial(
        name=name or _text(document.get("trial_name")) or "",
        reward=reward,
        scored=valid is not False if reward is not None else valid is None,
        exception=_text(exception),
        turns=turns,
        turns_source=None if turns is None else EPISODES,
        output_tokens=_count(agent.get("n_output_tokens")),
        duration_s=_between(document.get("started_at"), document.get("finished_at")),
    )


def _terminal_bench(document: Mapping[str, Any], name: str | None) -> Trial:
    resolved, failure = document.get("is_resolved"), _text(document.get("failure_mode"))
    return Trial(
        name=name or _text(document.get("trial_name")) or "",
        reward=None if resolved is None else float(bool(resolved)),
        exception=None if failure is None or failure in _NO_FAILURE else failure,
        output_tokens=_count(document.get("total_output_tokens")),
        duration_s=_between(document.get("trial_started_at"), document.get("trial_ended_at")),
    )


def run_trials(document: Any) -> tuple[Trial, ...]:
    """The trials in the results of a terminal-bench run, which are `TRIAL_WANTED` below
    `results`.
    """
    every = _mapping(document).get("results")
    found = (trial(one) for one in every) if isinstance(every, list) else ()
    return tuple(one for one in found if one is not None)


def agent_steps(document: Any) -> int | None:
    """Turns of the agent in a trajectory as `TRAJECTORY_WANTED` sifts it; steps that were only
    copied from an earlier context do not count.
    """
    steps = _mapping(document).get("steps")
    if not isinstance(steps, list):
        return None
    return sum(
        1
        for step in map(_mapping, steps)
        if step.get("source") == "agent" and not step.get("is_copied_context")
    )


@dataclass(frozen=True, slots=True)
class JobResult:
    """The numbers of a job's own result file.

    `done` is None where it has none. `rewards` maps values to numbers of trials. `mean` is the
    harness's own, over what `basis` says. `evals` are the names of its evaluations,
    `agent__model__dataset`.
    """

    total: int | None = None
    done: int | None = None
    errored: int = 0
    running: int = 0
    exceptions: Mapping[str, int] = field(default_factory=dict)
    rewards: Mapping[float, int] = field(default_factory=dict)
    mean: float | None = None
    basis: str | None = None
    finished: bool = False
    evals: tuple[str, ...] = ()

    @property
    def passed(self) -> int:
        """Trials with a reward above 0."""
        return sum(count for value, count in self.rewards.items() if value > 0)


def job_result(document: Any) -> JobResult | None:
    """A job's result as `JOB_WANTED` sifts it; None where it is no job's."""
    if not isinstance(document, Mapping) or not (
        "stats" in document or "n_total_trials" in document
    ):
        return None
    stats = _mapping(document.get("stats"))
    evals = [_mapping(one) for one in _mapping(stats.get("evals")).values()]
    done = _first_count(stats, "n_completed_trials", "n_trials")
    exceptions: Counter[str] = Counter()
    rewards: Counter[float] = Counter()
    for one in evals:
        for name, trials in _mapping(one.get("exception_stats")).items():
            exceptions[name[:_NAME_LENGTH]] += _length(trials)
        for value, trials in _preferred(_mapping(one.get("reward_stats"))).items():
            if (reward := _number(value)) is not None:
                rewards[reward] += _length(trials)
    mean, basis = _mean(evals, rewards, done)
    return JobResult(
        total=_count(document.get("n_total_trials")),
        done=done,
        errored=_first_count(stats, "n_errored_trials", "n_errors") or 0,
        running=_first_count(stats, "n_running_trials") or 0,
        exceptions=dict(exceptions),
        rewards=dict(rewards),
        mean=mean,
        basis=basis,
        finished=isinstance(document.get("finished_at"), str),
        evals=tuple(name[:_NAME_LENGTH] for name in _mapping(stats.get("evals"))),
    )


def named(evals: Iterable[str]) -> tuple[str | None, str | None]:
    """Model and benchmark of the one evaluation; None where there are several, or where the
    model was served under a number.
    """
    parts = {tuple(name.split("__")) for name in evals}
    if len(parts) != 1:
        return None, None
    words = parts.pop()
    if len(words) < 3:
        return None, None
    model, benchmark = "__".join(words[1:-1]), words[-1]
    return None if model.isdigit() else model, benchmark


def _mean(
    evals: Iterable[Mapping[str, Any]], rewards: Mapping[float, int], done: int | None
) -> tuple[float | None, str | None]:
    """The harness's mean and which trials it is over, found by working it out both ways."""
    scored = sum(rewards.values())
    total = sum(value * count for value, count in rewards.items())
    said = [mean for one in evals if (mean := _metric(one.get("metrics"))) is not None]
    if len(said) != 1:
        return (total / done, ALL_TRIALS) if done and scored else (None, None)
    mean = said[0]
    if done and isclose(mean, total / done, rel_tol=1e-6, abs_tol=1e-9):
        return mean, ALL_TRIALS
    if scored and isclose(mean, total / scored, rel_tol=1e-6, abs_tol=1e-9):
        return mean, SCORED_TRIALS
    return mean, HARNESS


def _metric(metrics: Any) -> float | None:
    """`mean`, else the metric called like the preferred reward, else the first by name."""
    every: dict[str, Any] = {}
    for one in metrics if isinstance(metrics, list) else ():
        every |= _mapping(one)
    for name in ("mean", "reward", *sorted(every)):
        if (value := _number(every.get(name))) is not None:
            return value
    return None


def _preferred(every: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is under `reward`, else under the first name."""
    return _mapping(every.get("reward", next(iter(every.values()), None)))


def _reward(rewards: Mapping[str, Any]) -> float | None:
    return _number(rewards.get("reward", next(iter(rewards.values()), None)))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    """A finite number, also a boolean or one in quotes."""
    if not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if abs(found) < float("inf") else None


def _count(value: Any) -> int | None:
    number = None if isinstance(value, bool | str) else _number(value)
    return int(number) if number is not None and number >= 0 else None


def _first_count(stats: Mapping[str, Any], *names: str) -> int | None:
    return next((n for name in names if (n := _count(stats.get(name))) is not None), None)


def _length(trials: Any) -> int:
    return len(trials) if isinstance(trials, list) else _count(trials) or 0


def _text(value: Any) -> str | None:
    return value[:_NAME_LENGTH] if isinstance(value, str) and value else None


def _between(start: Any, end: Any) -> float | None:
    """Seconds between two instants of one file; both with a zone or both without."""
    if not isinstance(start, str) or not isinstance(end, str):
        return None
    try:
        passed = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return passed if passed >= 0 else None
