"""The incarnations behind one id: a requeue keeps the id, and ids are given out again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from jobmond.backends.slurm.fields import JobId
from jobmond.backends.slurm.rows import AccountRow, QueueRow, Row
from jobmond.backends.slurm.states import is_end

# Slurm requeues in the second in which it ends the earlier life, or when the epilog is through.
# A person may requeue an ended job for as long as slurmctld remembers it.
REQUEUE_GAP_S = 3600


@dataclass(frozen=True, slots=True)
class Life:
    """One (id, submit time), as the queue and as accounting know it. At least one does."""

    submit: int
    queue: QueueRow | None = None
    account: AccountRow | None = None

    @property
    def birth(self) -> str:
        return str(self.submit)

    @property
    def row(self) -> Row:
        known: Row | None = self.queue or self.account
        if known is None:
            raise ValueError("a life that no source knows")
        return known

    @property
    def user(self) -> str | None:
        return self.row.user

    @property
    def ended_at(self) -> int | None:
        return self.account.end if self.account else None


def lives_of(queue: Iterable[QueueRow], accounts: Iterable[AccountRow]) -> tuple[Life, ...]:
    """The lives of one id (one task, one component), oldest first."""
    lives: dict[int, Life] = {}
    for seen in queue:
        known = lives.get(seen.submit)
        row = seen if known is None or known.queue is None else detailed(known.queue, seen)
        lives[seen.submit] = Life(seen.submit, queue=row)
    for kept in accounts:
        life = lives.get(kept.submit, Life(kept.submit))
        if life.account is None or kept.end is not None:
            lives[kept.submit] = replace(life, account=kept)
    return tuple(lives[submit] for submit in sorted(lives))


def detailed(listed: QueueRow, shown: QueueRow) -> QueueRow:
    """squeue's row with what only scontrol tells. scontrol was asked later: the word stays."""
    if listed.source == shown.source:
        return shown
    if listed.source != "squeue":
        listed, shown = shown, listed
    return replace(
        listed,
        exit=shown.exit,
        restarts=shown.restarts,
        log_path=shown.log_path,
        err_path=shown.err_path,
        node_count=shown.node_count,
        gpus=shown.gpus,
    )


def linked(before: Life, after: Life) -> bool:
    """Whether `after` is `before` queued again, and not another job under a recycled id."""
    if before.user and after.user and before.user != after.user:
        return False
    if after.queue is not None and after.queue.restarts:
        return True
    if before.ended_at is None:
        return False
    if before.account and after.account and not _alike(before.account, after.account):
        return False
    return -5 <= after.submit - before.ended_at <= REQUEUE_GAP_S


def _alike(before: AccountRow, after: AccountRow) -> bool:
    """Same name; a job that has just begun is called `allocation` for some seconds in 22.05."""
    return before.name == after.name or b"allocation" in (before.name, after.name)


def chains(lives: Sequence[Life]) -> list[tuple[Life, ...]]:
    """`lives` cut wherever the id was given to another job, oldest first."""
    found: list[tuple[Life, ...]] = []
    for life in lives:
        if found and linked(found[-1][-1], life):
            found[-1] = (*found[-1], life)
        else:
            found.append((life,))
    return found


@dataclass(slots=True)
class Group:
    """Every row of one master id, also by part. `unreadable`: the text of a row that was not read.

    `waiting` are the queue's rows of many tasks, `ended_many` accounting's with an end.
    Filled by `grouped`, and only read afterwards.
    """

    master: str
    queue: list[QueueRow] = field(default_factory=list)
    accounts: list[AccountRow] = field(default_factory=list)
    queue_of: dict[JobId, list[QueueRow]] = field(default_factory=dict)
    accounts_of: dict[JobId, list[AccountRow]] = field(default_factory=dict)
    waiting: list[QueueRow] = field(default_factory=list)
    ended_many: list[AccountRow] = field(default_factory=list)
    unreadable: str | None = None

    def many(self, birth: str | None) -> bool:
        """Whether the submission `birth`, or else the newest one, has parts."""
        rows: list[Row] = [*self.queue, *self.accounts]
        asked = [row for row in rows if str(row.submit) == birth]
        newest = max(asked or rows, key=lambda row: row.submit, default=None)
        return newest is not None and not newest.id.single

    def part(self, wanted: JobId) -> tuple[Life, ...]:
        """The lives of one task or component, or of the whole id where it has no parts.

        A task that waits is in the queue as one of many.
        """
        among = (
            row
            for row in self.waiting
            if wanted.task is not None and row.id.waiting and wanted.task in row.id.waiting
        )
        listed = (*among, *self.queue_of.get(wanted, ()))
        own = self.accounts_of.get(wanted, ())
        return lives_of(listed, (*self.ended_among_many(wanted, listed), *own))

    def ended_among_many(self, wanted: JobId, listed: Sequence[QueueRow]) -> tuple[AccountRow, ...]:
        """Accounting's rows of many that say how the task `wanted` ended, which is as `listed`.

        A task that never began has no row of its own. Before its end such a row proves nothing:
        22.05 keeps naming tasks there that were cancelled while they waited. Nor does it where the
        task has rows that say more: its own in accounting, or one in the queue that lives.
        """
        told = {row.submit for row in self.accounts_of.get(wanted, ())}
        told |= {row.submit for row in listed if not is_end(row.native)}
        return tuple(
            row
            for row in self.ended_many
            if row.id.waiting and wanted.task in row.id.waiting and row.submit not in told
        )


def grouped(
    queue: Iterable[QueueRow], accounts: Iterable[AccountRow], unreadable: dict[str, str]
) -> dict[str, Group]:
    """Rows by master id."""
    groups: dict[str, Group] = {}
    for row in queue:
        group = groups.setdefault(row.id.master, Group(row.id.master))
        group.queue.append(row)
        group.queue_of.setdefault(row.id, []).append(row)
        if row.id.waiting is not None:
            group.waiting.append(row)
    for kept in accounts:
        group = groups.setdefault(kept.id.master, Group(kept.id.master))
        group.accounts.append(kept)
        group.accounts_of.setdefault(kept.id, []).append(kept)
        if kept.id.waiting is not None and kept.end is not None and is_end(kept.native):
            group.ended_many.append(kept)
    for master, text in unreadable.items():
        groups.setdefault(master, Group(master)).unreadable = text
    return groups
