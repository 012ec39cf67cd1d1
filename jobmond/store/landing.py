"""Where each change of a sweep lands, given what happened in the database meanwhile. Pure.

A sweep loads, asks for minutes and then commits. In between a person may have added the same
job, changed what was chosen for it, or stopped tracking it; their word stands.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from jobmond.model.commit import JobChange
from jobmond.model.job import Choices, Job
from jobmond.model.state import TERMINAL, Bucket, Kind, PostMortem, State

Identity = tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class Standing:
    """What the database holds of one incarnation when the commit begins.

    `untracked_by` is the person who stopped tracking it, None where a sweep did or nobody.
    """

    id: int
    kind: Kind
    native_id: str
    birth: str | None
    choices: Choices
    run: str
    life: int
    bucket: Bucket
    type: str
    labels: frozenset[str]
    state: State
    tracked: bool
    discovered: bool
    added_at: datetime
    untracked_at: datetime | None
    untracked_by: str | None
    transitions: int
    predecessor: int | None
    note: str | None

    @property
    def identity(self) -> Identity:
        return self.kind, self.native_id


@dataclass(frozen=True, slots=True)
class Landed:
    """One change as it is to be written.

    `job.id` 0 is a new row. `before` is the row it replaces. `change.transitions` follow the
    `before.transitions` that are recorded already.
    """

    job: Job
    change: JobChange
    before: Standing | None = None
    untracked_by: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a commit does to the incarnations.

    `folded` maps rows that turned out to be an incarnation already stored to that one: their
    choices move there and they go. `displaced` rows lose tracking to a newer incarnation.
    """

    landed: Sequence[Landed]
    folded: Mapping[int, int] = field(default_factory=dict)
    displaced: Sequence[int] = ()


def plan(
    changes: Sequence[JobChange],
    standing: Iterable[Standing],
    dropped: Mapping[int, str | None],
) -> Plan:
    """Decide for every change.

    `standing` holds every stored incarnation with a native id of `changes`, and the rows of
    `changes` themselves, whose source may have found another id for them. `dropped` maps each
    predecessor that still exists to the person who stopped tracking it, if one did.
    """
    shelf = _Shelf(standing, {change.job.id for change in changes})
    landed: list[Landed] = []
    folded: dict[int, int] = {}
    for change in changes:
        if change.job.id == 0:
            landed.append(_newcomer(change, shelf))
            continue
        row = shelf.by_id.get(change.job.id)
        if row is None:
            continue  # deleted meanwhile: nothing to write it to
        owner = shelf.owner(row, change.job)
        if owner is None:
            landed.append(_update(change, row))
            continue
        folded[row.id] = owner.id
        if owner.state not in TERMINAL or owner.state is not change.job.state:
            # Whoever asked for it again has the later word on whether it is tracked.
            landed.append(_update(change, replace(owner, untracked_by=row.untracked_by)))
    landed = _once(landed, folded)
    return _one_owner([_linked(one, folded, dropped) for one in landed], folded, shelf)


def _once(landed: Sequence[Landed], folded: dict[int, int]) -> list[Landed]:
    """One change a row and one row a birth.

    Two rows can turn out to be one job in the same sweep, since both were asked about by the
    same id; what was concluded for a row itself goes before what only landed there.
    """
    chosen: dict[object, Landed] = {}
    for one in sorted(landed, key=lambda one: not _own(one)):
        job = one.job
        key = (job.kind, job.native_id, job.birth) if job.birth else (job.id or id(one))
        first = chosen.setdefault(key, one)
        if first is not one and _own(one) and first.job.id != job.id:
            folded[job.id] = first.job.id
    kept = {id(one) for one in chosen.values()}
    return [one for one in landed if id(one) in kept]


def _own(one: Landed) -> bool:
    return one.before is not None and one.change.job.id == one.job.id


class _Shelf:
    """The stored incarnations, by what they are looked up by."""

    def __init__(self, standing: Iterable[Standing], updated: set[int]) -> None:
        self.by_id = {row.id: row for row in standing}
        self.updated = updated
        self.by_birth: dict[tuple[Identity, str | None], Standing] = {
            (row.identity, row.birth): row for row in self.by_id.values() if row.birth is not None
        }

    def owner(self, row: Standing, job: Job) -> Standing | None:
        """Another row that is the incarnation which `row` has just turned out to be."""
        renamed = job.native_id != row.native_id
        if job.birth is None or (row.birth is not None and not renamed):
            return None
        owner = self.by_birth.get(((job.kind, job.native_id), job.birth))
        return None if owner is row else owner

    def twin(self, job: Job) -> Standing | None:
        """The row that a new job is stored in already: added by a person during the sweep."""
        identity = (job.kind, job.native_id)
        known = self.by_birth.get((identity, job.birth))
        if known is not None or not job.tracked:
            return known
        waiting = (
            row
            for row in self.by_id.values()
            if row.identity == identity and row.birth is None and row.id not in self.updated
        )
        found = next((row for row in waiting if row.tracked), None)
        if found is not None:
            self.updated.add(found.id)  # it can only be one of several new jobs
        return found


def _newcomer(change: JobChange, shelf: _Shelf) -> Landed:
    twin = shelf.twin(change.job)
    return _update(change, twin) if twin else Landed(change.job, change)


def _linked(landed: Landed, folded: Mapping[int, int], dropped: Mapping[int, str | None]) -> Landed:
    """With a predecessor that exists; who stopped tracking a run meant its next life too."""
    claimed = landed.change.job.predecessor
    if claimed not in dropped:
        claimed = landed.before.predecessor if landed.before else None
    predecessor = folded.get(claimed, claimed) if claimed else None
    job = replace(landed.job, predecessor=predecessor)
    by = dropped.get(claimed) if claimed and landed.before is None else None
    if by is not None and job.tracked and not job.discovered:
        return replace(landed, job=replace(job, tracked=False), untracked_by=by)
    return replace(landed, job=job)


def _update(change: JobChange, row: Standing) -> Landed:
    renamed = change.job.native_id != row.native_id
    job = replace(
        change.job,
        id=row.id,
        birth=(change.job.birth if renamed else None) or row.birth or change.job.birth,
        added_at=row.added_at,
        tracked=change.job.tracked and row.untracked_by is None,
        transitions=row.transitions + len(change.transitions),
        discovered=row.discovered,
    )
    if row.untracked_by is not None and job.post_mortem is PostMortem.PENDING:
        # No sweep will look into it, and what is pending keeps its cluster watched for ever.
        job = replace(job, post_mortem=PostMortem.GIVEN_UP)
    if job.choices != row.choices:
        job = _as_chosen(job, row)
    return Landed(job, change, row, untracked_by=row.untracked_by)


def _as_chosen(job: Job, row: Standing) -> Job:
    """`job` where a person changed something meanwhile: what they decide is as the row has it."""
    joins = job.predecessor is not None and row.predecessor is None
    keeps_run = not joins or job.choices.run != row.choices.run
    return replace(
        job,
        choices=row.choices,
        bucket=row.bucket,
        type=row.type,
        labels=row.labels,
        note=row.note,
        run=row.run if keeps_run else job.run,
        life=row.life if keeps_run else job.life,
    )


def _one_owner(landed: Sequence[Landed], folded: Mapping[int, int], shelf: _Shelf) -> Plan:
    """At most one tracked incarnation an id: the newest."""
    touched = {one.job.id for one in landed if one.job.id} | set(folded)
    others = [row for row in shelf.by_id.values() if row.tracked and row.id not in touched]
    newest: dict[Identity, tuple[float, int]] = {}
    for row in others:
        newest[row.identity] = max(newest.get(row.identity, (0, 0)), (row.id, 0))
    for place, one in enumerate(landed):
        if one.job.tracked:
            key = (one.job.kind, one.job.native_id)
            newest[key] = max(newest.get(key, (0, 0)), _age(one.job, place))
    kept = [
        one
        if not one.job.tracked or newest[one.job.kind, one.job.native_id] == _age(one.job, place)
        else replace(one, job=replace(one.job, tracked=False))
        for place, one in enumerate(landed)
    ]
    displaced = [row.id for row in others if newest[row.identity] != (row.id, 0)]
    return Plan(kept, folded, displaced)


def _age(job: Job, place: int) -> tuple[float, int]:
    return (job.id, 0) if job.id else (float("inf"), place)
