"""A look at a database that changes nothing: is it there, and does this version know it."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import NullPool

from jobmond.errors import StoreError
from jobmond.store import migrate
from jobmond.store.engine import database_file, named
from jobmond.store.trouble import one_line


@dataclass(frozen=True, slots=True)
class Standing:
    """`where` names the database; `schema` is None where it does not exist yet or is empty."""

    where: str
    schema: str | None
    newest: str

    @property
    def said(self) -> str:
        """What a person reads about it."""
        if self.schema is None:
            return "will be created"
        behind = f", will be migrated to {self.newest}" if self.schema != self.newest else ""
        return f"schema {self.schema}{behind}"


def standing(url: str) -> Standing:
    """Look at the database at `url`.

    Raises:
        StoreError: it cannot be read, is damaged, was written by a newer jobmond, or is another
            program's.
    """
    where, path = named(url), database_file(url)
    if path is not None and not path.exists():
        return Standing(where, None, migrate.head())
    if path is not None:
        check_not_emptied(path)
    with one_line(where):
        made = _server(url) if path is None else _read_only(path)
        try:
            with made.connect() as connection:
                migrate.check_whole(connection, where)
                return Standing(where, migrate.revision(connection, where), migrate.head())
        finally:
            made.dispose()


def check_not_emptied(database: Path) -> None:
    """An empty file beside a report was a database once: a new one would hide what was lost.

    Raises:
        StoreError: it was cut to nothing.
    """
    try:
        emptied = database.stat().st_size == 0 and database.with_name("report.json").exists()
    except OSError:
        return  # whoever opens it says what is wrong
    if emptied:
        raise StoreError(
            f"{database} is empty and was not: restore a copy of it, or remove it to begin anew"
        )


def _server(url: str) -> Engine:
    return create_engine(url, poolclass=NullPool)


def _read_only(path: Path) -> Engine:
    """Without the pragmas of the writer: a look must not turn on WAL.

    Even a reader leaves `-wal` and `-shm` behind, which it may not remove; where there is no
    `-wal` nobody is writing, and the file can be taken as it is.
    """
    writing = path.with_name(path.name + "-wal").exists()
    uri = f"file:{quote(str(path))}?{'mode=ro' if writing else 'immutable=1'}"
    return create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(uri, uri=True), poolclass=NullPool
    )
