"""Looking at trees of trials: which, what was known of them, what is known now."""

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from jobmond.analysis.outputs import asks, with_outputs
from jobmond.analysis.owing import owed_paths
from jobmond.analysis.places import has_tree, tree_places
from jobmond.analysis.settle import Move
from jobmond.model.job import Job
from jobmond.model.observation import LogTail, NotApplicable, Read, Reading, Unavailable
from jobmond.model.outcome import Followup
from jobmond.model.trials import Completion, OutputAsk, Outputs, Remains, TreeAsk, TreeNews
from jobmond.ports import Clock
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.observe import Answers

Call = Callable[..., Awaitable[Any]]

_FAST = 1


class Grove(Protocol):
    """Where the memories of trees are kept."""

    def trees(self, ids: Sequence[int]) -> Mapping[int, bytes]: ...


@dataclass(frozen=True, slots=True)
class Trees:
    """The readings of one sweep, by native id; `remains` of trees that are to be removed, by
    path.
    """

    readings: Mapping[str, Reading[TreeNews]] = field(default_factory=dict)
    remains: Mapping[str, Reading[Remains]] = field(default_factory=dict)
    asked: Mapping[str, OutputAsk] = field(default_factory=dict)
    outputs: Mapping[str, Reading[Outputs]] = field(default_factory=dict)

    def of(self, job: Job) -> Reading[TreeNews]:
        return self.readings.get(job.native_id, NotApplicable())

    @property
    def calls(self) -> dict[str, int]:
        """Scripts that were sent, by what they looked for."""
        sent = (("trees", self.readings), ("remains", self.remains), ("outputs", self.outputs))
        return {name: 1 for name, looks in sent if looks}

    def answered(self, answers: Answers) -> Answers:
        """`answers`, where only trees that are to be removed were asked about: a far side that
        did not tell of any of them is in trouble.
        """
        failed = [one.why for one in self.remains.values() if isinstance(one, Unavailable)]
        nobody = not (answers.sightings or answers.calls or answers.found)
        if nobody and failed and len(failed) == len(self.remains):
            return replace(answers, trouble=failed[0])
        return answers

    def banked(self, job: Job, *, now: datetime) -> Job:
        """`job` with what a look at its output gave, where there was one."""
        ask = self.asked.get(job.native_id)
        if ask is None:
            return job
        return with_outputs(job, ask, self.outputs[job.native_id], now=now)

    def completion(self, job: Job) -> Reading[Completion]:
        """What the trainer's own record says of a run that ended now."""
        reading = self.outputs.get(job.native_id, NotApplicable())
        if not isinstance(reading, Read):
            return reading
        said = reading.value.completion
        return NotApplicable() if said is None else Read(said, reading.at)

    def memory(self, job: Job) -> bytes | None:
        """What is to be kept for the next look; None where this one gave nothing."""
        reading = self.of(job)
        return packed(reading.value.memory) if isinstance(reading, Read) else None


NO_TREES = Trees()  # none was asked for


async def look_at_trees(
    cluster: Cluster,
    readers: Mapping[str, Move],
    grove: Grove,
    call: Call,
    *,
    owed: Sequence[Followup],
    logs: Mapping[str, Reading[LogTail]],
    clock: Clock,
    deadline: float,
) -> Trees:
    """One script for all trees of trials, and one each for what is to be removed and for new
    checkpoints, completions and scores, if any.
    """
    trees = await read_trees(
        cluster, readers, grove, call, now=clock.now(), timeout_s=deadline - clock.monotonic()
    )
    source, paths, left_s = cluster.trees, owed_paths(owed), deadline - clock.monotonic()
    if source is not None and paths and left_s > 1:
        remains = await source.read_remains(paths, now=clock.now(), timeout_s=left_s)
        trees = replace(trees, remains=remains)
    jobs = [(move.job, move.transition is not None) for move in readers.values()]
    tops = (*cluster.ckpt_dirs, *cluster.trial_dirs)
    wanted = await asyncio.to_thread(asks, jobs, tops, logs, now=clock.now())
    left_s = deadline - clock.monotonic()
    if source is None or not wanted or left_s <= 1:
        return trees
    outputs = await source.read_outputs(wanted, now=clock.now(), timeout_s=left_s)
    return replace(trees, asked={ask.native_id: ask for ask in wanted}, outputs=outputs)


async def read_trees(
    cluster: Cluster,
    readers: Mapping[str, Move],
    grove: Grove,
    call: Call,
    *,
    now: datetime,
    timeout_s: float,
) -> Trees:
    """One script for the trees of those jobs in `readers` that have one."""
    jobs = [move.job for move in readers.values() if has_tree(move.job)]
    placed = {job.native_id: tree_places(job, cluster.trial_dirs) for job in jobs}
    jobs = [job for job in jobs if placed[job.native_id]]
    if cluster.trees is None or not jobs:
        return NO_TREES
    if timeout_s <= 1:
        return Trees({job.native_id: Unavailable("budget") for job in jobs})
    numbers = {n for job in jobs for n in (job.id, job.predecessor) if n}
    held = await call(grove.trees, sorted(numbers)) if numbers else {}
    wanted = await asyncio.to_thread(_tree_asks, jobs, placed, held)
    return Trees(await cluster.trees.read_trees(wanted, now=now, timeout_s=timeout_s))


def _tree_asks(
    jobs: Iterable[Job], placed: Mapping[str, Sequence[str]], held: Mapping[int, bytes]
) -> list[TreeAsk]:
    """What is known of thousands of trials takes its time to unpack."""
    found = []
    for job in jobs:
        kept = held.get(job.id) or held.get(job.predecessor or 0)
        path, *others = placed[job.native_id]
        found.append(TreeAsk(job.native_id, path, tuple(others), unpacked(kept)))
    return found


def packed(memory: Mapping[str, Any]) -> bytes:
    """Deflated JSON, for a store."""
    return zlib.compress(json.dumps(memory, separators=(",", ":")).encode(), _FAST)


def unpacked(kept: bytes | None) -> Mapping[str, Any] | None:
    """What `packed` made; None where there is nothing, or it is damaged."""
    if kept is None:
        return None
    try:
        memory = json.loads(zlib.decompress(kept))
    except (zlib.error, ValueError):
        return None
    return memory if isinstance(memory, dict) else None
