"""What people ask of the store: track, find, choose, stop tracking."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, or_, select, update

from jobmond.analysis.submitted import another
from jobmond.errors import Refused
from jobmond.model.commit import Added
from jobmond.model.job import Choices, Classified, Job
from jobmond.model.observation import Facts
from jobmond.model.state import FILE_REF, Kind, PostMortem, State
from jobmond.store import codec
from jobmond.store.choosing import Place, ended, placed, same_life
from jobmond.store.engine import IN_LIST, batched
from jobmond.store.rows import job_row, jobs_where
from jobmond.store.runs import highest_life, run_number
from jobmond.store.schema import incarnations


def add(
    connection: Connection,
    asked: Job,
    *,
    classified: Classified,
    submitted_at: datetime | None,
) -> Added:
    """`asked` is the job as it would be stored if nothing is known of it."""
    identity = and_(
        incarnations.c.cluster == asked.cluster,
        incarnations.c.kind == asked.kind.value,
        incarnations.c.native_id == asked.native_id,
    )
    lives = jobs_where(connection, identity)
    tracked = next((job for job in lives if job.tracked), None)
    born = next((job for job in lives if asked.birth and job.birth == asked.birth), None)
    known = born or tracked
    if known is None:
        hints = [job for job in lives if same_life(job, asked.birth, submitted_at)]
        known = hints[-1] if hints else None
    if known is None:
        return Added(_insert(connection, asked), created=True)
    if born is None and tracked is not None and asked.birth and tracked.birth:
        raise Refused(
            f"{asked.ref} is still tracked as an earlier job under this id; "
            f"sweep {asked.cluster} first, then add it again"
        )
    if born is None and tracked is not None and another(tracked, submitted_at):
        raise Refused(
            f"{asked.ref} is tracked as a job that was submitted "
            f"{tracked.facts.submitted_at:%Y-%m-%d %H:%M} UTC, which is more than a day off"
        )
    again = tracked is None and not ended(known)  # dropped by a person who changed their mind
    if again:
        _set(connection, known.id, {"tracked": True, "untracked_at": None, "untracked_by": None})
    return Added(_give(connection, known, asked, classified), created=again)


def submitted(facts: Facts, at: datetime) -> Facts:
    """`facts` with the submit time a person named, a hint until the source says it."""
    return replace(facts, submitted_at=at)


def fresh(
    cluster: str,
    kind: Kind,
    native_id: str,
    *,
    choices: Choices,
    classified: Classified,
    birth: str | None,
    facts: Facts,
    now: datetime,
) -> Job:
    """A job that somebody asks to track and no sweep has seen yet."""
    return Job(
        id=0,
        cluster=cluster,
        kind=kind,
        native_id=native_id,
        birth=birth,
        run=classified.run,
        life=0,
        bucket=classified.bucket,
        type=classified.type,
        labels=classified.labels,
        choices=choices,
        facts=facts,
        state=State.PENDING,
        native="",
        added_at=now,
    )


def find(connection: Connection, word: str) -> tuple[Job, ...]:
    for condition, exact in _readings(word):
        found = jobs_where(connection, condition)
        if found:
            return tuple(found) if exact else _owners(found)
    named = jobs_where(connection, incarnations.c.name == word) or _formerly(connection, word)
    alive = [job for job in named if job.tracked]
    newest: dict[tuple[str, str], Job] = {}
    for job in sorted(alive or named, key=lambda job: (job.life, job.id)):
        newest[job.cluster, job.run] = job
    return tuple(newest.values())


def choose(connection: Connection, job_id: int, choices: Choices, classified: Classified) -> Job:
    job = the_job(connection, job_id)
    place = Place(choices, classified.bucket, classified.type, classified.run, classified.labels)
    return _place(connection, job, place)


def untrack(connection: Connection, job_id: int, *, by: str, now: datetime) -> Job:
    job = the_job(connection, job_id)
    held: dict[str, Any] = {"tracked": False, "untracked_by": by}
    if job.tracked:
        held["untracked_at"] = now
    if job.post_mortem is PostMortem.PENDING:
        held["post_mortem"] = PostMortem.GIVEN_UP.value
    _set(connection, job_id, held)
    return the_job(connection, job_id)


def the_job(connection: Connection, job_id: int) -> Job:
    found = jobs_where(connection, incarnations.c.id == job_id)
    if not found:
        raise Refused(f"the job with number {job_id} is not in the database any more")
    return found[0]


def superseded(connection: Connection, job_ids: Sequence[int]) -> frozenset[int]:
    """Those of `job_ids` whose ref another incarnation owns: the tracked one, else the newest."""
    table, later = incarnations.c, incarnations.alias()
    newer = (
        select(later.c.id)
        .where(
            later.c.cluster == table.cluster,
            later.c.kind == table.kind,
            later.c.native_id == table.native_id,
            or_(
                and_(later.c.tracked, ~table.tracked),
                and_(later.c.tracked == table.tracked, later.c.id > table.id),
            ),
        )
        .exists()
    )
    found: set[int] = set()
    for some in batched(job_ids, IN_LIST):
        query = select(table.id).where(table.id.in_(some), newer)
        found.update(connection.execute(query).scalars())
    return frozenset(found)


def _formerly(connection: Connection, word: str) -> list[Job]:
    """Launchers' jobs by the output file that they were called after before they had an id."""
    cluster, _, name = word.rpartition(FILE_REF)
    if not name or (cluster and not cluster.endswith("/")):
        return []
    launched = jobs_where(connection, incarnations.c.kind == Kind.LAUNCHER.value)
    return [
        job
        for job in launched
        if (job.choices.log_path or "").rpartition("/")[2] == name
        and cluster in ("", f"{job.cluster}/")
    ]


def _readings(word: str) -> list[tuple[ColumnElement[bool], bool]]:
    """What `word` can mean as an id, the likeliest first, and whether it names the birth too."""
    table = incarnations.c
    readings = [(one, False) for one in _ids(word)]
    if "@" in word:
        written, _, birth = word.rpartition("@")
        readings += [(and_(one, table.birth == birth), True) for one in _ids(written)]
    return readings


def _ids(written: str) -> list[ColumnElement[bool]]:
    """`written` as a ref, then as a bare native id (which may hold a slash as well)."""
    table = incarnations.c
    cluster, _, native_id = written.partition("/")
    bare = table.native_id == written
    return (
        [and_(table.cluster == cluster, table.native_id == native_id), bare]
        if native_id
        else [bare]
    )


def _owners(found: list[Job]) -> tuple[Job, ...]:
    """The incarnation that owns each id, tracked or newest; only tracked ones where any is."""
    by_age = sorted(found, key=lambda job: (job.tracked, job.id))
    newest = {(job.cluster, job.kind, job.native_id): job for job in by_age}
    alive = [job for job in newest.values() if job.tracked]
    return tuple(alive or newest.values())


def _insert(connection: Connection, asked: Job) -> Job:
    run_id = run_number(connection, asked.cluster, asked.run)
    job = replace(asked, life=highest_life(connection, run_id) + 1)
    row = job_row(job, run_id)
    number = connection.execute(
        incarnations.insert().returning(incarnations.c.id), row
    ).scalar_one()
    return replace(job, id=number)


def _give(connection: Connection, job: Job, asked: Job, classified: Classified) -> Job:
    """`job` with what the request gives beyond what is known of it."""
    held: dict[str, Any] = {}
    if job.birth is None and asked.birth is not None:
        held["birth"] = asked.birth
    if job.first_seen_at is None and asked.facts != Facts():
        held["facts"] = codec.dump(asked.facts)
    if held:
        _set(connection, job.id, held)
        job = the_job(connection, job.id)
    before = Place(job.choices, job.bucket, job.type, job.run, job.labels)
    place = placed(before, asked.choices, classified)
    return _place(connection, job, place) if place != before else the_job(connection, job.id)


def _place(connection: Connection, job: Job, place: Place) -> Job:
    held: dict[str, Any] = {
        "choices": codec.dump(place.choices),
        "bucket": place.bucket.value,
        "type": place.type,
        "labels": sorted(place.labels),
        "name": replace(job, choices=place.choices).name,
    }
    if place.run != job.run:
        run_id = run_number(connection, job.cluster, place.run)
        held |= {"run_id": run_id, "life": highest_life(connection, run_id) + 1}
    _set(connection, job.id, held)
    return the_job(connection, job.id)


def _set(connection: Connection, job_id: int, held: dict[str, Any]) -> None:
    connection.execute(update(incarnations).where(incarnations.c.id == job_id).values(held))
