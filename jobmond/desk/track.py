"""Changes to what is tracked. Every function here is one visit to the store's thread, so nothing
can come between reading a job and changing it."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from jobmond.analysis.mask import mask
from jobmond.analysis.settle import Classify, reads_as
from jobmond.analysis.tried import DEEP_PROBE
from jobmond.desk.find import the_job
from jobmond.desk.peer import Peer, Rights
from jobmond.desk.refusals import UnknownJob
from jobmond.desk.requests import LocalStart, Wish
from jobmond.desk.shelf import Shelf
from jobmond.errors import Refused
from jobmond.model.commit import Added
from jobmond.model.job import Choices, Job
from jobmond.model.observation import Facts
from jobmond.model.state import TERMINAL, Kind


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, when, and by what right."""

    peer: Peer
    user: str
    rights: Rights
    now: datetime


@dataclass(frozen=True, slots=True)
class Subject:
    """One incarnation to track, and what is already known of it."""

    cluster: str
    kind: Kind
    native_id: str
    birth: str | None = None
    facts: Facts = field(default_factory=Facts)
    submitted_at: datetime | None = None

    @property
    def ref(self) -> str:
        return f"{self.cluster}/{self.native_id}"


def launched(start: LocalStart, cluster: str, user: str) -> Subject:
    """A process of this host that was just started."""
    return Subject(
        cluster=cluster,
        kind=Kind.LOCAL,
        native_id=start.native_id,
        birth=start.birth,
        facts=Facts(
            name=start.wish.name,
            user=user,
            workdir=start.workdir,
            command=None if start.command is None else mask(start.command),
            submitted_at=start.started_at,
            started_at=start.started_at,
        ),
        submitted_at=start.started_at,
    )


def chosen(old: Choices, wish: Wish) -> Choices:
    """`old` with what `wish` gives; a label added is no longer removed, and the reverse."""
    return replace(
        old,
        name=wish.name or old.name,
        description=wish.description or old.description,
        bucket=wish.bucket or old.bucket,
        type=wish.type or old.type,
        run=wish.run or old.run,
        user=wish.user or old.user,
        log_path=wish.log_path or old.log_path,
        nel_command=wish.nel_command or old.nel_command,
        nel_home=wish.nel_home or old.nel_home,
        session=wish.session or old.session,
        last_status=wish.last_status or old.last_status,
        labels_added=(old.labels_added | wish.labels_add) - wish.labels_remove,
        labels_removed=(old.labels_removed | wish.labels_remove) - wish.labels_add,
    )


def is_tracked(store: Shelf, ref: str) -> bool:
    return any(job.tracked and job.ref == ref for job in store.find(ref))


def track(store: Shelf, subject: Subject, wish: Wish, classify: Classify, asker: Asker) -> Added:
    """Track `subject`; what is tracked already only takes what `wish` gives.

    Raises:
        NotYours: it is another user's, and this would change it.
        Refused: the id is still tracked as an earlier job.
    """
    same = [job for job in store.find(subject.ref) if job.ref == subject.ref]
    known = max(same, key=lambda job: job.id, default=None)
    if known is not None and known.tracked and subject.birth in (None, known.birth):
        store.registries.hold(known.id)
        return Added(_give(store, known, wish, classify, asker), created=False)
    if known is not None and _would_change(known, subject, wish):
        asker.rights.check_change(asker.peer, known)
    choices = chosen(Choices(owner=asker.user, owner_uid=asker.peer.uid), wish)
    added = store.add(
        subject.cluster,
        subject.kind,
        subject.native_id,
        choices=choices,
        classified=classify(choices, subject.facts, subject.native_id),
        birth=subject.birth,
        facts=subject.facts,
        now=asker.now,
        submitted_at=subject.submitted_at,
    )
    if known is not None:
        store.registries.hold(added.job.id)
    _audit(store, asker, "add", subject.ref, {**wish.words(), "created": added.created})
    return added


def change(store: Shelf, word: str, wish: Wish, classify: Classify, asker: Asker) -> Job:
    """The job that `word` means, relabelled.

    Raises:
        UnknownJob, NotYours
    """
    job = look_up(store, word, asker.now)
    asker.rights.check_change(asker.peer, job)
    _choose(store, job, wish, classify)
    _audit(store, asker, "label", job.ref, wish.words())
    return store.job(job.id) or job


def drop(store: Shelf, word: str, asker: Asker) -> Job:
    """Stop tracking the job that `word` means; the job itself is never touched.

    Raises:
        UnknownJob, NotYours
        Refused: it is not tracked.
    """
    job = look_up(store, word, asker.now)
    asker.rights.check_change(asker.peer, job)
    if not job.tracked:
        raise Refused(f"{job.ref} is not tracked any more (last state {job.state})")
    store.untrack(job.id, by=asker.user, now=asker.now)
    _audit(store, asker, "rm", job.ref, {})
    return job


def close(
    store: Shelf, followup_id: int, verdict: str | None, note: str | None, asker: Asker
) -> None:
    """Close an open follow-up.

    Raises:
        UnknownJob: there is no such follow-up.
        NotYours: its job is another user's.
        Refused: it is closed already, or is a deep probe and has no verdict.
    """
    entry = next((f for f in store.followups(all=True) if f.id == followup_id), None)
    if entry is None:
        raise UnknownJob(f"unknown follow-up {followup_id}: `jobmonctl followups` lists them")
    _check_followup(store, entry.ref, asker)
    if entry.state != "open":
        raise Refused(f"follow-up {followup_id} is closed already, by {entry.closed_by}")
    if entry.kind == DEEP_PROBE and verdict is None:
        raise Refused(
            f"follow-up {followup_id} is a deep probe: say what it came to, "
            "--verdict kill or --verdict no-kill"
        )
    store.close_followup(followup_id, by=asker.user, verdict=verdict, note=note, now=asker.now)
    detail = {"id": followup_id, "verdict": verdict, "note": note}
    _audit(store, asker, "done", entry.ref, detail)


def ended_locally(store: Shelf, ref: str, asker: Asker, detail: dict[str, Any]) -> Job:
    """The announced process whose end is reported.

    Raises:
        UnknownJob, NotYours
        Refused: `ref` is no local process.
    """
    job = look_up(store, ref, asker.now)
    if job.kind is not Kind.LOCAL:
        raise Refused(f"{job.ref} is no process of this host")
    asker.rights.check_change(asker.peer, job)
    _audit(store, asker, "exit", job.ref, detail)
    return job


def look_up(store: Shelf, word: str, now: datetime) -> Job:
    """The job that `word` means. A number that is nobody's id is a process of that number:
    `add 4711` takes it so too where no SLURM is watched.

    Raises:
        UnknownJob: none or several; the nearest or the candidates are named.
    """
    found = [*store.find(word)]
    if not found and word.isascii() and word.isdigit():
        found = [*store.find(f"pid-{word}")]
    # The store gives one job of a run for a name; others that live must not be passed over.
    for job in [j for j in found if j.tracked and j.name == word]:
        lives = store.lives(job.run, job.cluster)
        found += [j for j in lives if j.tracked and j.name == word]
    return the_job(word, found, lambda: store.jobs(recent_since=now))


def _give(store: Shelf, known: Job, wish: Wish, classify: Classify, asker: Asker) -> Job:
    choices = chosen(known.choices, wish)
    if choices.owner is None and asker.rights.over_all(asker.peer):
        choices = replace(choices, owner=asker.user, owner_uid=asker.peer.uid)
    if choices == known.choices:
        return known
    asker.rights.check_change(asker.peer, known)
    store.choose(
        known.id, choices, classify(choices, known.facts, known.native_id, reads_as(known))
    )
    _audit(store, asker, "add", known.ref, {**wish.words(), "created": False})
    return store.job(known.id) or known


def _would_change(known: Job, subject: Subject, wish: Wish) -> bool:
    """Whether adding `subject` touches `known`: one that somebody stopped tracking is taken up
    again, one that ended takes choices if it is the incarnation meant."""
    if known.state not in TERMINAL:
        return True
    return wish != Wish() and (subject.birth, subject.submitted_at) != (None, None)


def _choose(store: Shelf, job: Job, wish: Wish, classify: Classify) -> None:
    choices = chosen(job.choices, wish)
    store.choose(job.id, choices, classify(choices, job.facts, job.native_id, reads_as(job)))


def _check_followup(store: Shelf, ref: str, asker: Asker) -> None:
    try:
        asker.rights.check_change(asker.peer, look_up(store, ref, asker.now))
    except UnknownJob:
        # The job has left the database; what is owed for it is then for those over all.
        asker.rights.check_all(asker.peer, f"close what is owed for {ref}")


def _audit(store: Shelf, asker: Asker, action: str, ref: str, detail: dict[str, Any]) -> None:
    store.audit(at=asker.now, uid=asker.peer.uid, action=action, subject=ref, detail=detail)
