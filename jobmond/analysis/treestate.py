"""What is known of a tree of trials between two looks, so that only what is new is read.

A trial's folder that has not changed since its result was read whole is never opened again. Far
and near side compare folders by modification time and inode: a retry makes a new folder under the
old name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any

from jobmond.analysis.harbor import (
    AGENT_STEPS,
    EPISODE_FOLDERS,
    EPISODES,
    JobResult,
    agent_steps,
    job_result,
    trial,
)
from jobmond.analysis.tally import JobTree, tally
from jobmond.model.trials import Trial, Trials

VERSION = 1
# Clocks of a file system's clients differ; what changed shortly before the newest change is named.
SLACK_S = 300
# A result file may be written again in the second in which it was looked at.
SETTLED_S = 60
_NOWHERE = "nowhere"  # turns were looked for
_SAMPLE = 50  # trials whose trajectories are counted where results do not say their turns


@dataclass(frozen=True, slots=True)
class Entry:
    """One trial's folder: when it changed (seconds since the epoch, as its file system has it)
    and a `stamp` that tells folders of one second apart. `at` is when its result was written,
    `trial` None while there is none, or only a part.
    """

    mtime: int
    stamp: str
    at: int = 0
    trial: Trial | None = None


@dataclass(frozen=True, slots=True)
class JobMemory:
    """One job of a tree. `key` identifies its folder and result as they were, `settled` says that
    nothing has changed where it is the same again. `count` folders were there, `unread` results
    were not read yet. `checked` is false where folders have gone that nobody named.
    """

    key: str = ""
    settled: bool = False
    result: JobResult | None = None
    entries: Mapping[str, Entry] = field(default_factory=dict)
    unread: int = 0
    checked: bool = True


@dataclass(frozen=True, slots=True)
class TreeMemory:
    """The jobs of the tree at `path`, by their path in it (`.` for the tree itself)."""

    jobs: Mapping[str, JobMemory] = field(default_factory=dict)
    chunks: int | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """What the far side is told of a job: folders that changed at `watermark` or later are new
    unless `entries` names them with the same time and stamp; a name with zeros is always looked
    at. Where `key` is still right nothing is listed. `turns` asks for trajectories too.
    """

    watermark: int = 0
    entries: Sequence[tuple[int, str, str]] = ()
    key: str = ""
    turns: bool = False


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """A trial's folder that was looked at. `document` is its result, sifted; None where there is
    none (`at` is then 0) or only a part.
    """

    name: str
    mtime: int
    stamp: str
    at: int = 0
    document: Any = None
    steps: Any = None
    episodes: int = 0


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job's folder as it was found. `root` is its result, sifted, None where it is not whole;
    `same` says that `key` still holds and nothing else was looked at.
    """

    path: str
    key: str
    count: int = 0
    same: bool = False
    root: Any = None
    written_at: int = 0
    entries: Sequence[FoundEntry] = ()
    gone: Sequence[str] = ()
    later: int = 0


@dataclass(frozen=True, slots=True)
class FoundTree:
    """One look at a tree, at `now` of the far side's clock."""

    now: int
    jobs: Sequence[FoundJob]
    chunks: int | None = None
    path: str = ""


def known(memory: JobMemory) -> Known:
    """What to tell the far side about a job."""
    turns = _wants_turns(memory)
    again = _uncounted(memory) if turns else frozenset()
    whole = {n: e for n, e in memory.entries.items() if e.trial is not None and n not in again}
    newest = max((entry.mtime for entry in whole.values()), default=0)
    watermark = max(0, newest - SLACK_S) if memory.checked else 0
    named = [(e.mtime, e.stamp, n) for n, e in whole.items() if e.mtime >= watermark]
    named += [(0, "0", name) for name in memory.entries if name not in whole]
    settled = memory.settled and not again
    return Known(watermark, named, memory.key if settled else "", turns)


def _wants_turns(memory: JobMemory) -> bool:
    """Whether results are there and none of them says how many turns it took."""
    trials = [entry.trial for entry in memory.entries.values() if entry.trial is not None]
    return bool(trials) and all(trial.turns_source != EPISODES for trial in trials)


def _uncounted(memory: JobMemory) -> frozenset[str]:
    """The newest trials whose turns nobody has looked for."""
    lacking = [
        (entry.at, name)
        for name, entry in memory.entries.items()
        if entry.trial is not None and entry.trial.turns_source is None
    ]
    return frozenset(name for _, name in sorted(lacking, reverse=True)[:_SAMPLE])


def absorbed(memory: TreeMemory, found: FoundTree) -> TreeMemory:
    """What is known after a look. A job that is no longer there is forgotten, and so is another
    tree.
    """
    memory = memory if memory.path in ("", found.path) else TreeMemory()
    jobs = {
        job.path: _absorbed(memory.jobs.get(job.path, JobMemory()), job, found.now)
        for job in found.jobs
    }
    return TreeMemory(jobs, found.chunks, found.path)


def _absorbed(memory: JobMemory, job: FoundJob, now: int) -> JobMemory:
    if job.same:
        return memory
    counting, gone = known(memory).turns, frozenset(job.gone)
    entries = {name: entry for name, entry in memory.entries.items() if name not in gone}
    for entry in job.entries:
        found = _read(entry, counting=counting)
        entries[entry.name] = Entry(entry.mtime, entry.stamp, entry.at, found)
    checked = len(entries) + job.later == job.count
    steady = bool(job.written_at) and now - job.written_at > SETTLED_S
    return JobMemory(
        key=job.key,
        settled=steady and checked and not job.later and job.root is not None,
        result=job_result(job.root) or memory.result,
        entries=entries,
        unread=job.later,
        checked=checked,
    )


def _read(entry: FoundEntry, *, counting: bool) -> Trial | None:
    found = trial(entry.document, name=entry.name)
    if found is None or found.turns is not None:
        return found
    steps = agent_steps(entry.steps)
    if steps is not None:
        return replace(found, turns=steps, turns_source=AGENT_STEPS)
    if entry.episodes:
        return replace(found, turns=entry.episodes, turns_source=EPISODE_FOLDERS)
    return replace(found, turns_source=_NOWHERE) if counting else found


def trials_of(memory: TreeMemory, *, far_now: int, now: datetime) -> Trials:
    """The numbers of a tree. Ages are taken on the far side's clock."""
    trees, newest = [], 0
    for job in memory.jobs.values():
        ended = sorted(
            (entry.at, name) for name, entry in job.entries.items() if entry.trial is not None
        )
        newest = max([newest, *(at for at, _ in ended)])
        read = [one for _, name in ended if (one := job.entries[name].trial) is not None]
        running = sum(entry.trial is None for entry in job.entries.values())
        trees.append(JobTree(job.result, read, running, job.unread))
    last = now - timedelta(seconds=max(0, far_now - newest)) if newest else None
    return tally(trees, chunks=memory.chunks, last_result_at=last)


def put_down(memory: TreeMemory) -> dict[str, Any]:
    """Plain JSON values."""
    return {
        "version": VERSION,
        "chunks": memory.chunks,
        "path": memory.path,
        "jobs": {path: _job_put_down(job) for path, job in memory.jobs.items()},
    }


def _job_put_down(job: JobMemory) -> dict[str, Any]:
    result = job.result
    return {
        "key": job.key,
        "settled": job.settled,
        "checked": job.checked,
        "unread": job.unread,
        "result": None if result is None else _result_put_down(result),
        "entries": {
            name: [e.mtime, e.stamp, e.at, None if e.trial is None else _trial_put_down(e.trial)]
            for name, e in job.entries.items()
        },
    }


def _result_put_down(result: JobResult) -> dict[str, Any]:
    plain = {one.name: getattr(result, one.name) for one in fields(result)}
    return {
        **plain,
        "exceptions": dict(result.exceptions),
        "evals": list(result.evals),
        "rewards": [list(pair) for pair in sorted(result.rewards.items())],
    }


def _trial_put_down(one: Trial) -> list[Any]:
    return [
        one.reward, one.scored, one.exception, one.turns, one.turns_source, one.output_tokens,
        one.duration_s,
    ]  # fmt: skip


def taken_up(kept: Mapping[str, Any] | None) -> TreeMemory:
    """What was put down; an empty memory where this program cannot read it."""
    if kept is None or kept.get("version") != VERSION:
        return TreeMemory()
    jobs = {path: _job_taken_up(job) for path, job in kept["jobs"].items()}
    return TreeMemory(jobs, kept["chunks"], kept["path"])


def _job_taken_up(job: Mapping[str, Any]) -> JobMemory:
    result = None
    if (kept := job["result"]) is not None:
        rewards = dict(kept["rewards"])
        result = JobResult(**{**kept, "rewards": rewards, "evals": tuple(kept["evals"])})
    entries = {
        name: Entry(mtime, stamp, at, None if values is None else Trial(name, *values))
        for name, (mtime, stamp, at, values) in job["entries"].items()
    }
    return JobMemory(job["key"], job["settled"], result, entries, job["unread"], job["checked"])
