"""What a registry file says, made true: one visit to the store's thread a file.

Only what another program changed there matters; what we wrote ourselves is known already.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from jobmond.analysis.activejobs import Entry
from jobmond.analysis.settle import Classify
from jobmond.analysis.submitted import another, before, fits
from jobmond.desk.aim import Target
from jobmond.desk.listed import Listed
from jobmond.desk.peer import Rights
from jobmond.desk.shelf import Shelf
from jobmond.errors import Refused
from jobmond.model.job import Choices, Job
from jobmond.model.observation import Facts
from jobmond.model.registered import Registered, Stage
from jobmond.model.state import TERMINAL

# An entry has to be missing at two looks: a program that rewrites its file in two steps has not
# removed anything.
CONFIRM = timedelta(seconds=45)
# Of an id without a submit time nobody can tell a new job from one that ended: for so long after
# its removal it is the one that ended.
FORGET = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class File:
    """A registry file that was read. `uid` and `owner` are its Unix owner's."""

    path: str
    uid: int
    owner: str
    listed: Sequence[Listed]


@dataclass(slots=True)
class Taken:
    """What came of one file.

    `refs` has a ref for each key that means a job. `started` and `ended` are refs whose tracking
    began or ended. `unsettled` says that the file is to be looked at again though it may not
    change, soon, `refused` that it is because something may change elsewhere, `owed` that it does
    not say what it should.
    """

    refs: dict[str, str] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    unsettled: bool = False
    refused: bool = False
    owed: bool = False


@dataclass(frozen=True, slots=True)
class Taker:
    """Takes files in. `discovers` says of a cluster that all jobs there are tracked anyway."""

    store: Shelf
    classify: Classify
    rights: Rights
    discovers: Callable[[str], bool]
    now: datetime

    def take(self, file: File) -> Taken:
        """Track what is new in `file`, stop tracking what is gone from it."""
        known = {one.key: one for one in self.store.registries.entries(file.path)}
        taken = Taken()
        for one in file.listed:
            if one.target is not None:
                self._entry(file, one.entry, one.target, known.get(one.entry.key), taken)
            elif one.error is not None:
                taken.errors[one.entry.key] = one.error
        here = {one.entry.key for one in file.listed}
        self._missing(file, [one for key, one in known.items() if key not in here], taken)
        self._owed(file, taken)
        return taken

    def _entry(
        self, file: File, entry: Entry, target: Target, known: Registered | None, taken: Taken
    ) -> None:
        if known is not None and known.stage is Stage.GONE and self._means_another(entry, known):
            self.store.registries.forget(file.path, entry.key)
            known = None
        again = known is not None and known.stage is Stage.GONE and not _over(known.job)
        if known is None or again:
            try:
                self._add(file, entry, target, taken)
            except Refused as refusal:
                taken.errors[entry.key] = f"{entry.id}: {refusal}"
                taken.refused = True
            return
        taken.refs[entry.key] = known.job.ref
        if known.stage is Stage.MISSING:
            self.store.registries.move(file.path, [entry.key], Stage.PRESENT, self.now)
        if entry.last_status and entry.last_status != known.last_status:
            said = {entry.key: entry.last_status}
            self.store.registries.stood(file.path, said, self.now)

    def _means_another(self, entry: Entry, known: Registered) -> bool:
        long_gone = self.now - known.since > FORGET
        return _over(known.job) and entry.submitted is None and long_gone

    def _add(self, file: File, entry: Entry, target: Target, taken: Taken) -> None:
        found = [job for job in self.store.find(target.ref) if job.ref == target.ref]
        known = max((job for job in found if not _over(job)), key=lambda job: job.id, default=None)
        hint = submitted_at(entry)
        if known is not None and another(known, hint):
            if known.tracked:
                raise Refused(_does_not_fit(known))
            known = None  # somebody stopped tracking it, and the id belongs to the next one now
        ended = next((job for job in found if _over(job) and _meant(job, hint)), None)
        taken.refs[entry.key] = target.ref
        more: dict[str, Any] = {"last_status": entry.last_status, "now": self.now}
        if known is None and ended is not None:
            self.store.registries.join(file.path, entry.key, ended.id, **more)
            return
        if known is not None and not self._may_change(file, known):
            if not known.tracked:
                raise Refused(f"{known.ref} belongs to {known.choices.owner or 'another user'}")
            self.store.registries.join(file.path, entry.key, known.id, **more)
            return
        choices = _choices(file, entry, known)
        added = self.store.registries.add(
            file.path,
            entry.key,
            target.cluster,
            target.kind,
            target.native_id,
            choices=choices,
            classified=self.classify(choices, known.facts if known else Facts(), entry.id),
            submitted_at=hint,
            **more,
        )
        if added.created:
            taken.started.append(added.job.ref)
            self._audit(file, "add", added.job.ref)

    def _may_change(self, file: File, job: Job) -> bool:
        over_all = {0, self.rights.daemon_uid, *self.rights.admin_uids}
        if file.uid in over_all or job.choices.owner_uid == file.uid:
            return True
        return job.choices.owner_uid is None and job.facts.user == file.owner

    def _missing(self, file: File, absent: Sequence[Registered], taken: Taken) -> None:
        fresh = [one.key for one in absent if one.stage is Stage.PRESENT]
        self.store.registries.move(file.path, fresh, Stage.MISSING, self.now)
        waiting = [one for one in absent if one.stage is Stage.MISSING]
        sure = [one for one in waiting if self.now - one.since >= CONFIRM]
        self.store.registries.move(file.path, [one.key for one in sure], Stage.GONE, self.now)
        for one in sure:
            self._let_go(file, one, taken)
        taken.unsettled = taken.unsettled or bool(fresh) or len(sure) < len(waiting)

    def _let_go(self, file: File, one: Registered, taken: Taken) -> None:
        """The entry is gone and its job lives: that is a wish, unless others asked for it too."""
        job = one.job
        if not job.tracked or job.discovered or self.discovers(job.cluster):
            return
        if self.store.registries.needed(job.id):
            return
        self.store.untrack(job.id, by=f"registry file {file.path}", now=self.now)
        taken.ended.append(job.ref)
        self._audit(file, "rm", job.ref)

    def _owed(self, file: File, taken: Taken) -> None:
        wanted = self.store.registries.wanted(file.path)
        for one in file.listed:
            key = one.entry.key
            if key in wanted and wanted[key] != (one.entry.last_status or ""):
                taken.owed = True
        if taken.owed:
            self.store.registries.owe(file.path, self.now)

    def _audit(self, file: File, action: str, ref: str) -> None:
        detail: Mapping[str, Any] = {"registry_file": file.path}
        self.store.audit(at=self.now, uid=file.uid, action=action, subject=ref, detail=detail)


def vanished(store: Shelf, path: str, now: datetime) -> int:
    """A whole file is gone. That may be a folder that is not mounted: its jobs stay tracked.

    Returns how many of its entries live.
    """
    left = [e.key for e in store.registries.entries(path) if e.stage is not Stage.GONE]
    store.registries.move(path, left, Stage.GONE, now)
    return len(left)


def submitted_at(entry: Entry) -> datetime | None:
    """The hint as an instant; a file gives the local time of this host."""
    if entry.submitted is None:
        return None
    try:
        return entry.submitted.astimezone()
    except (OverflowError, ValueError):
        return None


def _meant(ended: Job, hint: datetime | None) -> bool:
    """Whether an entry speaks of a job that is over, or of one that had the id before it."""
    known = ended.facts.submitted_at
    same = hint is not None and known is not None and fits(hint, known)
    return same or before(ended, hint)


def _does_not_fit(job: Job) -> str:
    return (
        f"submitted is more than a day off: {job.ref} was submitted "
        f"{job.facts.submitted_at:%Y-%m-%d %H:%M} UTC and is another job; "
        "correct the entry or remove it"
    )


def _over(job: Job) -> bool:
    return not job.tracked and job.state in TERMINAL


def _choices(file: File, entry: Entry, known: Job | None) -> Choices:
    """What the file says of a job; a person's word about one that is tracked goes first."""
    given = Choices(
        owner=file.owner,
        owner_uid=file.uid,
        description=entry.description,
        user=entry.user,
        session=entry.owner,
        last_status=entry.last_status,
    )
    if known is None:
        return given
    held = known.choices
    return replace(
        given,
        description=None if held.description else given.description,
        user=None if held.user else given.user,
        session=None if held.session else given.session,
        last_status=None,
    )
