"""Runs: what the incarnations of one piece of work share."""

from collections.abc import Iterable

from sqlalchemy import Connection, func, select

from jobmond.store.engine import IN_LIST, batched, insert_new, write
from jobmond.store.schema import incarnations, runs


def run_numbers(connection: Connection, cluster: str, names: Iterable[str]) -> dict[str, int]:
    """The number of each run, made where it does not exist yet."""
    wanted = sorted(set(names))
    rows = [{"cluster": cluster, "name": name} for name in wanted]
    write(connection, insert_new(connection, runs), rows)
    numbers: dict[str, int] = {}
    for some in batched(wanted, IN_LIST):
        query = select(runs.c.name, runs.c.id).where(
            runs.c.cluster == cluster, runs.c.name.in_(some)
        )
        numbers.update((name, number) for name, number in connection.execute(query))
    return numbers


def run_number(connection: Connection, cluster: str, name: str) -> int:
    return run_numbers(connection, cluster, [name])[name]


def highest_life(connection: Connection, run_id: int) -> int:
    """0 for a run without incarnations."""
    query = select(func.max(incarnations.c.life)).where(incarnations.c.run_id == run_id)
    return connection.execute(query).scalar() or 0


def lives_taken(connection: Connection, run_ids: Iterable[int]) -> dict[int, set[int]]:
    taken: dict[int, set[int]] = {}
    for some in batched(sorted(set(run_ids)), IN_LIST):
        query = select(incarnations.c.run_id, incarnations.c.life).where(
            incarnations.c.run_id.in_(some)
        )
        for run_id, life in connection.execute(query):
            taken.setdefault(run_id, set()).add(life)
    return taken
