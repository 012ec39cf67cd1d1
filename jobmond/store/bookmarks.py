"""Where the readings of logs stand."""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, select

from jobmond.errors import StoreError
from jobmond.model.training import Bookmark, Place
from jobmond.store.engine import IN_LIST, batched, write
from jobmond.store.schema import bookmarks

_FAST = 1  # deflate's level: a sweep writes one of these for each log that grew


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


def readings(connection: Connection, ids: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    """What was put down, by incarnation.

    Raises:
        StoreError: a row was not written by this program.
    """
    found: dict[int, Mapping[str, Any]] = {}
    for some in batched(ids, IN_LIST):
        query = select(bookmarks.c.incarnation_id, bookmarks.c.reading).where(
            bookmarks.c.incarnation_id.in_(some)
        )
        for number, packed in connection.execute(query):
            try:
                found[number] = json.loads(zlib.decompress(packed))
            except (zlib.error, ValueError) as error:
                raise StoreError(f"bookmark {number} cannot be read: {error}") from error
    return found


def put(connection: Connection, marks: Iterable[tuple[int, Bookmark]]) -> None:
    """Replace the bookmarks of these incarnations."""
    rows = [
        {
            "incarnation_id": number,
            "path": mark.at.path,
            "place": mark.at.place,
            "needles": [needle.decode("latin-1") for needle in mark.at.needles],
            "reading": zlib.compress(json.dumps(mark.reading).encode(), _FAST),
        }
        for number, mark in marks
    ]
    for some in batched([row["incarnation_id"] for row in rows], IN_LIST):
        connection.execute(delete(bookmarks).where(bookmarks.c.incarnation_id.in_(some)))
    write(connection, bookmarks.insert(), rows)
