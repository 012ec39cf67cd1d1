"""What a sweep loads and what it commits: one cluster, one transaction."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    and_,
    bindparam,
    delete,
    func,
    select,
    update,
)

from jobmond.model.commit import ClusterSnapshot, SweepCommit
from jobmond.model.job import Choices, Classified, Job
from jobmond.model.state import Bucket, Kind, PostMortem, State
from jobmond.store import bookmarks, codec, intents, owed, registries, trees
from jobmond.store.choosing import Place, placed
from jobmond.store.engine import IN_LIST, batched, upsert, write
from jobmond.store.landing import Landed, Plan, Standing, plan
from jobmond.store.news import owe, tell
from jobmond.store.records import owed_on
from jobmond.store.rows import (
    any_of,
    health_of,
    health_row,
    job_row,
    jobs_where,
    signal_rows,
    signals_of,
)
from jobmond.store.runs import lives_taken, run_numbers
from jobmond.store.schema import (
    cluster_calls,
    clusters,
    incarnations,
    runs,
    signals,
    transitions,
)

_PEOPLES = ("choices", "added_at", "discovered")  # columns that no sweep writes


def snapshot(connection: Connection, cluster: str, *, correct_since: datetime) -> ClusterSnapshot:
    table = incarnations.c
    here = table.cluster == cluster
    # What a person stopped tracking is nothing a sweep may still look into.
    not_dropped = table.untracked_by.is_(None)
    wanted = any_of(
        and_(here, table.tracked),
        and_(here, not_dropped, table.post_mortem == PostMortem.PENDING.value),
        # Of all clusters, or the index on the cluster would be taken and all its history read.
        and_(not_dropped, table.state == State.LOST.value, table.ended_at >= correct_since),
    )
    highest = (
        select(runs.c.name, func.max(table.life))
        .join(incarnations)
        .where(runs.c.cluster == cluster)
        .group_by(runs.c.id)
    )
    health = (
        connection.execute(select(clusters).where(clusters.c.name == cluster)).mappings().first()
    )
    return ClusterSnapshot(
        jobs=tuple(job for job in jobs_where(connection, wanted) if job.cluster == cluster),
        health=health_of(health) if health else None,
        lives={row[0]: row[1] for row in connection.execute(highest)},
        owed=owed_on(connection, cluster),
        completed=owed.completed_on(connection, cluster),
        probes=owed.probes_on(connection, cluster),
    )


def known(
    connection: Connection, cluster: str, kind: Kind, native_ids: Sequence[str]
) -> frozenset[tuple[str, str | None]]:
    pairs: set[tuple[str, str | None]] = set()
    for some in batched(tuple(native_ids), IN_LIST):
        query = select(incarnations.c.native_id, incarnations.c.birth).where(
            incarnations.c.cluster == cluster,
            incarnations.c.kind == kind.value,
            incarnations.c.native_id.in_(some),
        )
        pairs.update((native_id, birth) for native_id, birth in connection.execute(query))
    return frozenset(pairs)


def commit(connection: Connection, swept: SweepCommit) -> None:
    standing = _standing(connection, swept)
    decided = plan(swept.changes, standing.values(), _dropped(connection, swept))
    run_ids = run_numbers(connection, swept.cluster, {one.job.run for one in decided.landed})
    _leave(connection, decided, swept.at)
    _update(connection, decided.landed, run_ids, swept.at)
    numbers = _insert(connection, decided.landed, run_ids, swept.at)
    registries.merge(connection, decided.folded)
    _fold(connection, decided, standing)
    _record(connection, decided.landed, numbers)
    _registries(connection, swept, decided, numbers)
    news, deliveries = owed.settle(connection, swept)
    tell(connection, news)
    owe(connection, deliveries)
    _cluster(connection, swept)


def _standing(connection: Connection, swept: SweepCommit) -> dict[int, Standing]:
    table = incarnations.c
    found: dict[int, Standing] = {}
    ids = sorted({change.job.native_id for change in swept.changes})
    for some in batched(ids, IN_LIST):
        found |= _standing_where(connection, swept.cluster, table.native_id.in_(some))
    renamed = sorted({change.job.id for change in swept.changes if change.job.id} - found.keys())
    for few in batched(renamed, IN_LIST):
        found |= _standing_where(connection, swept.cluster, table.id.in_(few))
    return found


def _standing_where(
    connection: Connection, cluster: str, condition: ColumnElement[bool]
) -> dict[int, Standing]:
    table = incarnations.c
    columns = (table[name] for name in _STANDING_COLUMNS)
    query = (
        select(*columns, runs.c.name.label("run"))
        .join(runs)
        .where(table.cluster == cluster, condition)
    )
    return {row["id"]: _standing_of(row) for row in connection.execute(query).mappings()}


_STANDING_ALIKE = (
    "id",
    "native_id",
    "birth",
    "life",
    "type",
    "tracked",
    "discovered",
    "added_at",
    "untracked_at",
    "untracked_by",
    "transitions",
    "note",
)
_STANDING_COLUMNS = (
    *_STANDING_ALIKE,
    "kind",
    "choices",
    "bucket",
    "labels",
    "state",
    "predecessor_id",
)


def _standing_of(row: RowMapping) -> Standing:
    return Standing(
        **{name: row[name] for name in _STANDING_ALIKE},
        run=row["run"],
        kind=Kind(row["kind"]),
        choices=codec.load(Choices, row["choices"]),
        bucket=Bucket(row["bucket"]),
        labels=frozenset(row["labels"]),
        state=State(row["state"]),
        predecessor=row["predecessor_id"],
    )


def _dropped(connection: Connection, swept: SweepCommit) -> dict[int, str | None]:
    claimed = sorted({one.job.predecessor for one in swept.changes if one.job.predecessor})
    found: dict[int, str | None] = {}
    for some in batched(claimed, IN_LIST):
        query = select(incarnations.c.id, incarnations.c.untracked_by).where(
            incarnations.c.id.in_(some)
        )
        found.update((number, by) for number, by in connection.execute(query))
    return found


def _leave(connection: Connection, decided: Plan, at: datetime) -> None:
    """Rows that lose tracking to another incarnation make room for it first."""
    leaving = [{"row": number, "at": at} for number in (*decided.displaced, *decided.folded)]
    statement = (
        update(incarnations)
        .where(incarnations.c.id == bindparam("row"))
        .values(tracked=False, untracked_at=bindparam("at"))
    )
    write(connection, statement, leaving)


def _update(
    connection: Connection, landed: Sequence[Landed], run_ids: Mapping[str, int], at: datetime
) -> None:
    rows = []
    for one in sorted(landed, key=lambda one: one.job.tracked):
        if one.before is not None:
            row = _row(one, run_ids, at)
            rows.append({f"new_{name}": value for name, value in row.items()} | {"row": one.job.id})
    if rows:
        names = [name.removeprefix("new_") for name in rows[0] if name != "row"]
        statement = (
            update(incarnations)
            .where(incarnations.c.id == bindparam("row"))
            .values({name: bindparam(f"new_{name}") for name in names})
        )
        write(connection, statement, rows)


def _row(one: Landed, run_ids: Mapping[str, int], at: datetime) -> dict[str, Any]:
    row = job_row(one.job, run_ids[one.job.run])
    left_at = one.before.untracked_at if one.before else None
    row["untracked_at"] = None if one.job.tracked else left_at or at
    row["untracked_by"] = None if one.job.tracked else one.untracked_by
    if one.before is not None:
        for name in _PEOPLES:
            del row[name]
    return row


def _insert(
    connection: Connection, landed: Sequence[Landed], run_ids: Mapping[str, int], at: datetime
) -> dict[int, int]:
    """Write the new incarnations; their numbers by their place in `landed`."""
    fresh = [(place, one) for place, one in enumerate(landed) if one.before is None]
    rows = [
        _row(one, run_ids, at) | {"transitions": len(one.change.transitions)} for _, one in fresh
    ]
    _free_lives(connection, rows)
    write(connection, incarnations.insert(), rows)
    numbers = _numbers(connection, [one.job for _, one in fresh])
    return {place: numbers[_key(one.job)] for place, one in fresh}


def _key(job: Job) -> tuple[str, str, str | None]:
    return job.kind.value, job.native_id, job.birth


def _numbers(connection: Connection, jobs: Sequence[Job]) -> dict[tuple[str, str, str | None], int]:
    """Read back afterwards: asked for with the insert they would cost a statement a row."""
    table, numbers = incarnations.c, {}
    for some in batched(jobs, IN_LIST):
        query = (
            select(table.kind, table.native_id, table.birth, table.id)
            .where(
                table.cluster == some[0].cluster,
                table.native_id.in_({job.native_id for job in some}),
            )
            .order_by(table.id)
        )
        numbers.update({(row[0], row[1], row[2]): row[3] for row in connection.execute(query)})
    return numbers


def _free_lives(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """A life that was given to another job of the run meanwhile becomes the next one."""
    taken = lives_taken(connection, (row["run_id"] for row in rows))
    for row in rows:
        lives = taken.setdefault(row["run_id"], set())
        if row["life"] in lives:
            row["life"] = max(lives) + 1
        lives.add(row["life"])


def _fold(connection: Connection, decided: Plan, standing: Mapping[int, Standing]) -> None:
    """What was chosen for a row that is another one's twin moves there, and the row goes."""
    places: dict[int, Place] = {}
    for number, target in sorted(decided.folded.items()):
        given, kept = standing[number], standing[target]
        before = places.get(target) or Place(
            kept.choices, kept.bucket, kept.type, kept.run, kept.labels
        )
        classified = Classified(given.bucket, given.type, given.run, given.labels)
        places[target] = placed(before, given.choices, classified)
        connection.execute(delete(incarnations).where(incarnations.c.id == number))
    for target, place in places.items():
        held = {
            "choices": codec.dump(place.choices),
            "bucket": place.bucket.value,
            "type": place.type,
            "labels": sorted(place.labels),
        }
        if place.choices.name:
            held["name"] = place.choices.name
        connection.execute(update(incarnations).where(incarnations.c.id == target).values(held))


def _record(connection: Connection, landed: Sequence[Landed], numbers: Mapping[int, int]) -> None:
    """Transitions, signals, bookmarks and trees of every incarnation that was written."""
    told, kept, marks, grown, decided = [], {}, [], [], []
    for place, one in enumerate(landed):
        number = one.job.id or numbers[place]
        recorded = one.before.transitions if one.before else 0
        told += [
            {
                "incarnation_id": number,
                "n": recorded + nth,
                "at": step.at,
                "before": step.before.value if step.before else None,
                "after": step.after.value,
                "native": step.native,
                "correction": step.correction,
            }
            for nth, step in enumerate(one.change.transitions, start=1)
        ]
        kept[number] = one.change.job.signals
        if one.change.bookmark is not None:
            marks.append((number, one.change.bookmark))
        decided += [(number, intent) for intent in one.change.intents]
        if one.change.tree is not None:
            grown.append((number, one.change.tree))
    write(connection, transitions.insert(), told)
    before = signals_of(connection, list(kept))
    changed = {n: held for n, held in kept.items() if tuple(before.get(n, ())) != held}
    for some in batched([n for n in changed if n in before], IN_LIST):
        connection.execute(delete(signals).where(signals.c.incarnation_id.in_(some)))
    rows = [row for number, held in changed.items() for row in signal_rows(number, held)]
    write(connection, signals.insert(), rows)
    bookmarks.put(connection, marks)
    intents.decide(connection, decided)
    trees.put(connection, grown)


def _registries(
    connection: Connection, swept: SweepCommit, decided: Plan, numbers: Mapping[int, int]
) -> None:
    """What the entries of registry files mean now, and the files that do not say so yet."""
    fresh = [(decided.landed[place].job, number) for place, number in numbers.items()]
    if fresh:
        alive = [(job, number) for job, number in fresh if job.tracked]
        registries.follow(connection, swept.cluster, alive)
    touched = {one.job.id for one in decided.landed if one.job.id}
    touched |= {*numbers.values(), *decided.folded.values(), *decided.displaced}
    registries.owe_writes(connection, sorted(touched), swept.at)


def _cluster(connection: Connection, swept: SweepCommit) -> None:
    row = health_row(swept.health) | {"swept_at": swept.at}
    connection.execute(upsert(connection, clusters, key="name"), row)
    total = sum(swept.calls.values())
    if total or swept.logins or swept.moved_bytes:
        held = {
            "cluster": swept.cluster,
            "at": swept.at,
            "logins": swept.logins,
            "calls": dict(swept.calls),
            "total": total,
            "moved_bytes": swept.moved_bytes,
        }
        connection.execute(cluster_calls.insert(), held)
