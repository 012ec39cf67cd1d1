"""Where the readings of logs stand."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, delete, select

from jobmond.model.training import Bookmark, Place
from jobmond.store.engine import IN_LIST, batched, write
from jobmond.store.schema import bookmarks


def places(connection: Connection, ids: Sequence[int]) -> dict[int, Place]:
    """By incarnation, without the readings themselves."""
    table, found = bookmarks.c, {}
    for some in batched(ids, IN_LIST):
        query = select(table.incarnation_id, table.path, table.place, table.needles).where(
            table.incarnation_id.in_(some)
        )
        for number, path, place, needles in connection.execute(query):
            words = tuple(needle.encode("latin-1") for needle in needles)
            found[number] = Place(path, place, words)
    return found


def readings(connection: Connection, ids: Sequence[int]) -> dict[int, bytes]:
    """What was put down, packed, by incarnation."""
    found: dict[int, bytes] = {}
    for some in batched(ids, IN_LIST):
        query = select(bookmarks.c.incarnation_id, bookmarks.c.reading).where(
            bookmarks.c.incarnation_id.in_(some)
        )
        found.update((number, kept) for number, kept in connection.execute(query))
    return found


def put(connection: Connection, marks: Iterable[tuple[int, Bookmark]]) -> None:
    """Replace the bookmarks of these incarnations."""
    rows = [
        {
            "incarnation_id": number,
            "path": mark.at.path,
            "place": mark.at.place,
            "needles": [needle.decode("latin-1") for needle in mark.at.needles],
            "reading": mark.reading,
        }
        for number, mark in marks
    ]
    for some in batched([row["incarnation_id"] for row in rows], IN_LIST):
        connection.execute(delete(bookmarks).where(bookmarks.c.incarnation_id.in_(some)))
    write(connection, bookmarks.insert(), rows)
