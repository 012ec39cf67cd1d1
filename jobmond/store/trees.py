"""What is known of trees of trials between two looks."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, delete, select

from jobmond.store.engine import IN_LIST, batched, write
from jobmond.store.schema import trees


def memories(connection: Connection, ids: Sequence[int]) -> dict[int, bytes]:
    """What the last look left, packed, by incarnation."""
    found: dict[int, bytes] = {}
    for some in batched(ids, IN_LIST):
        query = select(trees.c.incarnation_id, trees.c.memory).where(
            trees.c.incarnation_id.in_(some)
        )
        found.update((number, memory) for number, memory in connection.execute(query))
    return found


def put(connection: Connection, kept: Iterable[tuple[int, bytes]]) -> None:
    """Replace what is known of the trees of these incarnations."""
    rows = [{"incarnation_id": number, "memory": memory} for number, memory in kept]
    for some in batched([row["incarnation_id"] for row in rows], IN_LIST):
        connection.execute(delete(trees).where(trees.c.incarnation_id.in_(some)))
    write(connection, trees.insert(), rows)
