"""Arrays and heterogeneous jobs: many parts, one row."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from jobmond.backends.slurm import states
from jobmond.backends.slurm.facts import facts_of
from jobmond.backends.slurm.fields import JobId, TaskSet, instant
from jobmond.backends.slurm.lives import Group, Life, chains, lives_of
from jobmond.backends.slurm.rows import AccountRow, QueueRow
from jobmond.backends.slurm.verdict import Evidence, Judged, absent, answered, judged, runaway
from jobmond.model.observation import Facts, Seen, Sighting, TaskCounts, Unreachable
from jobmond.model.state import TERMINAL, WORST_FIRST, State

_FIRST_FAILED = 10
_FIRST_RUNNING = 100


@dataclass(frozen=True, slots=True)
class Part:
    """One task or component, or the `size` tasks that wait or ended together."""

    id: JobId
    life: Life
    judged: Judged
    size: int = 1

    @property
    def native_id(self) -> str:
        if self.id.component is not None:
            return f"{self.id.master}+{self.id.component}"
        return f"{self.id.master}_{self.id.task}"

    @property
    def shown_by_scontrol(self) -> bool:
        return self.life.queue is not None and self.life.queue.restarts is not None


def sighting_of_parts(evidence: Evidence, group: Group) -> Sighting:
    """The sighting of a master id whose newest submission has parts."""
    if group.unreadable:
        return Unreachable(group.unreadable)
    anchor = _submission(evidence, group)
    if anchor is None:
        return absent(evidence)
    parts = _parts(evidence, group, anchor)
    if not parts:
        return absent(evidence)
    counts = _counted(parts)
    state = overall(counts)
    doubtful = [part for part in parts if part.judged.state is None]
    if doubtful and state is not State.RUNNING:
        return Unreachable(f"{doubtful[0].native_id}: {doubtful[0].judged.why}")
    if state is None:
        return absent(evidence)
    return _seen(evidence, anchor, parts, state, counts)


def any_left_queue(evidence: Evidence, group: Group) -> bool:
    """Whether accounting calls a part alive that the queue does not know."""
    anchor = _submission(evidence, group)
    if anchor is None:
        return False
    return any(part.judged.left_queue for part in _parts(evidence, group, anchor))


def overall(counts: Counter[State]) -> State | None:
    """RUNNING if any part runs, else PENDING if any waits, else the worst end; None without."""
    for live in (State.RUNNING, State.PENDING):
        if counts[live]:
            return live
    return next((bad for bad in WORST_FIRST if counts[bad]), State.COMPLETED if counts else None)


def _submission(evidence: Evidence, group: Group) -> int | None:
    """The submit time of the array that was asked about, as far as the rows still show it."""
    known = _by_part(group).values()
    starts = sorted({chain[0].submit for lives in known for chain in chains(lives)})
    if evidence.ask.birth is not None:
        asked = int(evidence.ask.birth)
        shown = any(submit == asked for submit in starts)
        queued = any(row.submit == asked for row in group.queue)
        restarted = any(row.restarts and row.submit > asked for row in group.queue)
        return asked if shown or queued or restarted else None
    hint = evidence.ask.submitted_at
    near = [s for s in starts if hint is None or abs(s - hint.timestamp()) <= 86400]
    return near[-1] if near else None


def _by_part(group: Group) -> dict[JobId, tuple[Life, ...]]:
    """The lives of every part that has rows of its own, and of each row of many."""
    waiting = {row.submit for row in group.waiting if not states.is_end(row.native)}
    accounted: dict[JobId, list[AccountRow]] = {}
    for part, rows in group.accounts_of.items():
        # While tasks wait, the queue's row of many is the one that is kept up to date: 22.05 goes
        # on naming tasks in accounting that were cancelled before they began.
        many = part.waiting is not None
        kept = [row for row in rows if not many or (row.end and row.submit not in waiting)]
        if kept and not part.single:
            accounted[part] = kept
    queued: dict[JobId, list[QueueRow]] = {}
    for part, listed in group.queue_of.items():
        if part.single:
            continue
        if part.waiting is None:
            told = group.ended_among_many(part, listed) if part.task is not None else ()
            accounted.setdefault(part, []).extend(told)
        for row in listed:
            queued.setdefault(_counterpart(row, accounted), []).append(row)
    return {
        part: lives_of(queued.get(part, ()), accounted.get(part, ()))
        for part in {**queued, **accounted}
    }


def _counterpart(row: QueueRow, accounted: Mapping[JobId, Sequence[AccountRow]]) -> JobId:
    """The part that `row` is about: its own, or accounting's row of many that tells its end.

    The two need not name the same tasks: 22.05 also names those that were cancelled earlier, and
    either leaves out those that have rows of their own.
    """
    if row.id.waiting is None or not states.is_end(row.native):
        return row.id
    alone = {part.task for part, rows in accounted.items() if rows and part.task is not None}
    for part, rows in accounted.items():
        same = any(kept.submit == row.submit and kept.end is not None for kept in rows)
        if same and part.waiting is not None and _covers(part.waiting, row.id.waiting, alone):
            return part
    return row.id


def _covers(many: TaskSet, named: TaskSet, alone: Set[int]) -> bool:
    return many == named or all(task in many or task in alone for task in named)


def _parts(evidence: Evidence, group: Group, anchor: int) -> list[Part]:
    """The newest life of every part of that submission; a requeued task has a later one."""
    by_part = {part: chains(lives) for part, lives in _by_part(group).items()}
    recycled = any(_began(chain, anchor) and later for chain, later in _pairs(by_part.values()))
    parts: list[Part] = []
    many: list[tuple[TaskSet, Life]] = []
    for job, known in by_part.items():
        ours = _ours(known, anchor, group, recycled=recycled)
        if ours is None:
            continue
        if job.waiting is not None:
            many.append((job.waiting, ours))
        else:
            parts.append(Part(job, ours, _judged(evidence, ours)))
    alone = {part.id.task for part in parts}
    for tasks, life in many:
        size = len(tasks) - sum(1 for task in alone if task is not None and task in tasks)
        if size > 0:
            first = next(task for task in tasks if task not in alone)
            one = JobId(group.master, first)
            parts.append(Part(one, life, _judged(evidence, life), size))
    return sorted(parts, key=lambda p: (p.id.task or 0, p.id.component or 0))


def _pairs(known: Iterable[list[tuple[Life, ...]]]) -> Iterator[tuple[tuple[Life, ...], bool]]:
    for part in known:
        for at, chain in enumerate(part):
            yield chain, at + 1 < len(part)


def _began(chain: tuple[Life, ...], anchor: int) -> bool:
    return any(life.submit == anchor for life in chain)


def _judged(evidence: Evidence, life: Life) -> Judged:
    result = judged(life, evidence.sources)
    if result.state is None and result.left_queue and runaway(evidence, life):
        return replace(result, state=State.LOST, native=life.row.native, proof="runaway record")
    return result


def _ours(
    known: Sequence[tuple[Life, ...]], anchor: int, group: Group, *, recycled: bool
) -> Life | None:
    """The newest life of a part that began with the submission `anchor`.

    The controller holds one submission of an id at a time: what is queued later than the anchor
    was requeued, even where accounting no longer shows its first run; unless the id was recycled.
    """
    for chain in known:
        if _began(chain, anchor):
            return chain[-1]
    newest = known[-1]
    if recycled or newest[-1].submit < anchor:
        return None
    if newest[-1].queue is not None:
        return newest[-1]
    names = {row.name for row in group.accounts if row.submit == anchor}
    return newest[-1] if newest[-1].account and newest[-1].account.name in names else None


def _counted(parts: Iterable[Part]) -> Counter[State]:
    """Parts by state. One that accounting calls alive and the queue has lost is still running."""
    counts: Counter[State] = Counter()
    for part in parts:
        if part.judged.state is not None:
            counts[part.judged.state] += part.size
    return counts


def _seen(
    evidence: Evidence, anchor: int, parts: Sequence[Part], state: State, counts: Counter[State]
) -> Seen:
    alike = [part for part in parts if part.judged.state is state]
    shown = next((part for part in alike if part.shown_by_scontrol), alike[0])
    ask = evidence.ask
    known = ask.facts if ask.birth in (None, str(anchor)) else None
    facts = facts_of(shown.life, state, shown.judged.native, known=known)
    doubtful = sum(part.size for part in parts if part.judged.state is None)
    if doubtful:
        counts = counts + Counter({State.RUNNING: doubtful})
    live = [part for part in parts if part.judged.state not in TERMINAL]
    facts = replace(
        _spanning(facts, parts, state),
        submitted_at=instant(anchor),
        held=bool(live) and all(_held(part) for part in live),
        suspended=bool(live) and all(states.stands_still(p.judged.native) for p in live),
        tasks=_tasks(parts, counts),
        detailed=answered(evidence, shown.life, state, birth=str(anchor)),
    )
    return Seen(state, shown.judged.native, str(anchor), facts, shown.judged.proof)


def _spanning(facts: Facts, parts: Sequence[Part], state: State) -> Facts:
    """From the first start to the last end."""
    starts = [
        when
        for part in parts
        if part.judged.state is not None
        and (when := facts_of(part.life, part.judged.state, "", known=None).started_at)
    ]
    over = state in TERMINAL
    ends = [when for part in parts if over and (when := instant(part.life.ended_at))]
    started = min(starts, default=facts.started_at)
    ended = max(ends, default=facts.ended_at)
    elapsed = facts.elapsed_s
    if over and started and ended:
        elapsed = max(0, int((ended - started).total_seconds()))
    return replace(facts, started_at=started, ended_at=ended, elapsed_s=elapsed)


def _held(part: Part) -> bool:
    queue = part.life.queue
    return states.is_held(part.judged.native, queue.reason if queue else None)


def _tasks(parts: Sequence[Part], counts: Counter[State]) -> TaskCounts:
    bad = [part.native_id for part in parts if part.judged.state in WORST_FIRST]
    running = [part.native_id for part in parts if part.judged.state is State.RUNNING]
    return TaskCounts(
        total=sum(counts.values()),
        by_state={state: number for state, number in counts.items() if number},
        failed=tuple(bad[:_FIRST_FAILED]),
        running=tuple(running[:_FIRST_RUNNING]),
    )
