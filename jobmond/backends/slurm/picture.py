"""One sweep's answers put together: a sighting for every ask, what else was there, what is owed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from jobmond.backends.slurm import states
from jobmond.backends.slurm.accounting import Accounting, AccountingFailed, Accounts
from jobmond.backends.slurm.fields import JobId, asked_id
from jobmond.backends.slurm.lives import Group, Life, grouped
from jobmond.backends.slurm.parts import any_left_queue, sighting_of_parts
from jobmond.backends.slurm.queue import Queue
from jobmond.backends.slurm.rows import Detail, NotKnown, QueueRow, Row
from jobmond.backends.slurm.verdict import Evidence, Sources, Terms, chosen, judged, verdict
from jobmond.model.observation import Ask, Gone, Seen, Sighting, Unreachable
from jobmond.model.state import TERMINAL, WORST_FIRST, State


@dataclass(frozen=True, slots=True)
class Owed:
    """A scontrol call that would tell something. Sorts by urgency, then newest first."""

    ask: Ask
    target: str
    urgent: bool
    submit: int


@dataclass(frozen=True, slots=True)
class Picture:
    """What the cluster answered. `own` are the configured users, `users` all the queue covers.

    `missing` maps (native id, birth) to when the queue was first seen to have lost that job.
    """

    queue: Queue
    accounting: Accounting
    own: frozenset[str]
    users: frozenset[str]
    now: datetime
    terms: Terms
    missing: Mapping[tuple[str, str | None], datetime]
    groups: Mapping[str, Group]
    by_raw: Mapping[str, JobId]
    details: Mapping[str, Detail] = field(default_factory=dict)

    def sighting(self, ask: Ask) -> Sighting:
        """What is known about `ask`."""
        wanted = self._wanted(ask.native_id)
        if wanted is None:
            return Unreachable(f"{ask.native_id} has not the form of a Slurm job id")
        group = self._group(wanted)
        evidence = self._evidence(ask, wanted, group)
        if wanted.single and group.many(ask.birth):
            return sighting_of_parts(evidence, group)
        return verdict(evidence)

    def owed(self, ask: Ask, sighting: Sighting) -> Owed | None:
        """The scontrol call that is owed for `ask`, if one is."""
        wanted = self._wanted(ask.native_id)
        if wanted is None or isinstance(sighting, Gone) or ask.native_id in self.details:
            return None
        group = self._group(wanted)
        if isinstance(sighting, Seen):
            if sighting.facts.detailed:
                return None
            bad = sighting.state in WORST_FIRST
            target = self._target(ask, wanted, group, sighting.state)
            return Owed(ask, target, bad, int(sighting.birth))
        if self._would_settle(ask, wanted, group):
            return Owed(ask, ask.native_id, True, int(ask.birth or 0))
        return None

    def found(self, asks: Iterable[Ask], *, since: datetime) -> tuple[tuple[str, Seen], ...]:
        """Every other job of the configured users that lives, or has ended since `since`."""
        asked = {wanted.master for ask in asks if (wanted := self._wanted(ask.native_id))}
        seen: list[tuple[str, Seen]] = []
        for master in sorted(self.groups.keys() - asked, key=int):
            rows: list[Row] = [*self.groups[master].queue, *self.groups[master].accounts]
            if not any(row.user in self.own for row in rows):
                continue
            sighting = self.sighting(Ask(native_id=master, birth=None, added_at=self.now))
            if isinstance(sighting, Seen) and _recent(sighting, since):
                seen.append((master, sighting))
        return tuple(seen)

    def left_queue(self, ask: Ask) -> bool:
        """Whether only accounting shows `ask` or a part of it, and the queue answered without."""
        wanted = self._wanted(ask.native_id)
        if wanted is None:
            return False
        group = self._group(wanted)
        evidence = self._evidence(ask, wanted, group)
        if wanted.single and group.many(ask.birth):
            return any_left_queue(evidence, group)
        current = chosen(ask, evidence.lives).current
        return current is not None and judged(current, evidence.sources).left_queue

    def with_details(self, details: Mapping[str, Detail]) -> "Picture":
        """The same sweep after scontrol was asked: `details` by the native id of the ask."""
        rows = [row for shown in details.values() if isinstance(shown, tuple) for row in shown]
        queue = replace(self.queue, rows=(*self.queue.rows, *rows))
        return replace(
            self,
            queue=queue,
            details=dict(details),
            groups=_groups(queue, self.accounting),
            by_raw=_by_raw(queue, self.accounting),
        )

    def complaints(self) -> tuple[str, ...]:
        """One line for each oddity: rows that cannot be read, state words that are not known."""
        rows: list[tuple[str, str]] = [(row.id.master, row.native) for row in self.queue.rows]
        said = list(self.queue.complaints)
        if isinstance(self.accounting, Accounts):
            rows += [(row.id.master, row.native) for row in self.accounting.rows]
            said += self.accounting.complaints
        odd = {(m, word) for m, word in rows if states.canonical(word) is None}
        said += [f"job {m}: the state {word!r} is not known" for m, word in sorted(odd)]
        return tuple(dict.fromkeys(said))

    def name_of(self, native_id: str) -> bytes | None:
        """The job's name as the queue wrote it."""
        wanted = self._wanted(native_id)
        group = self._group(wanted) if wanted else None
        rows = [row for row in group.queue if row.source == "squeue"] if group else []
        return rows[-1].name if rows else None

    def _wanted(self, native_id: str) -> JobId | None:
        wanted = asked_id(native_id)
        if wanted and wanted.single and wanted.master not in self.groups:
            return self.by_raw.get(wanted.master, wanted)
        return wanted

    def _group(self, wanted: JobId) -> Group:
        return self.groups.get(wanted.master, Group(wanted.master))

    def _evidence(self, ask: Ask, wanted: JobId, group: Group) -> Evidence:
        return Evidence(
            ask=ask,
            master=wanted.master,
            lives=group.part(wanted),
            sources=Sources(self.queue.whole, self.users, self.accounting),
            now=self.now,
            terms=self.terms,
            detail=self.details.get(ask.native_id),
            unreadable=group.unreadable,
            missing_since=self.missing.get((ask.native_id, ask.birth)),
        )

    def _would_settle(self, ask: Ask, wanted: JobId, group: Group) -> bool:
        """Whether an answer of scontrol could turn `Unreachable` into something else."""
        evidence = self._evidence(ask, wanted, group)
        if wanted.single and group.many(ask.birth):
            denied = sighting_of_parts(replace(evidence, detail=NotKnown()), group)
            return isinstance(denied, Gone)
        if isinstance(verdict(replace(evidence, detail=NotKnown())), Gone):
            return True
        current: Life | None = chosen(ask, evidence.lives).current
        if current is None:
            return any(life.queue for life in evidence.lives)
        uncovered = current.queue is None and not evidence.sources.covers(current.user)
        return uncovered and current.ended_at is None

    def _target(self, ask: Ask, wanted: JobId, group: Group, state: State) -> str:
        """The id to ask scontrol about: of an array one task, because it prints every record."""
        if not (wanted.single and group.many(ask.birth)):
            return ask.native_id
        rows = [row for row in group.queue if states.canonical(row.native) is state]
        first = min(rows or group.queue, key=_place, default=None)
        if first is None:
            return ask.native_id
        if first.id.component is not None:
            return f"{first.id.master}+{first.id.component}"
        return f"{first.id.master}_{_place(first)}"


def _place(row: QueueRow) -> int:
    """Where a part stands among the others."""
    if row.id.waiting is not None:
        return next(iter(row.id.waiting), 0)
    return row.id.task if row.id.task is not None else row.id.component or 0


def _recent(sighting: Seen, since: datetime) -> bool:
    ended_at = sighting.facts.ended_at
    return sighting.state not in TERMINAL or (ended_at is not None and ended_at >= since)


def _groups(queue: Queue, accounting: Accounting) -> dict[str, Group]:
    rows = accounting.rows if isinstance(accounting, Accounts) else ()
    return grouped(queue.rows, rows, queue.unreadable)


def _by_raw(queue: Queue, accounting: Accounting) -> dict[str, JobId]:
    """Slurm also takes the number it keeps for a task or component."""
    rows: Sequence[tuple[str, JobId]] = [(row.raw_id, row.id) for row in queue.rows]
    if isinstance(accounting, Accounts):
        rows = [*rows, *((row.raw_id, row.id) for row in accounting.rows)]
    return {raw: job for raw, job in rows if raw != job.master and job.waiting is None}


def picture(
    queue: Queue,
    accounting: Accounting,
    *,
    own: frozenset[str],
    users: frozenset[str],
    now: datetime,
    terms: Terms,
    missing: Mapping[tuple[str, str | None], datetime],
) -> Picture:
    """The picture before scontrol was asked."""
    return Picture(
        queue=queue,
        accounting=accounting,
        own=own,
        users=users,
        now=now,
        terms=terms,
        missing=missing,
        groups=_groups(queue, accounting),
        by_raw=_by_raw(queue, accounting),
    )


def trouble(accounting: Accounting, queue: Queue) -> str | None:
    """What to tell about a cluster that answered in part."""
    if isinstance(accounting, AccountingFailed):
        return accounting.why
    if not queue.whole:
        return queue.complaints[-1] if queue.complaints else "squeue's answer may be incomplete"
    return None
