"""Connections: one at a time, every writer takes the write lock first."""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import QueuePool, StaticPool

from jobmond.errors import ConfigError
from jobmond.store.columns import json_text

T = TypeVar("T")

BUSY_TIMEOUT_S = 2  # everything else waits meanwhile, people who ask among it; sweeps come again
BATCH = 2000  # rows of one executemany; larger ones hold up everything else for too long
IN_LIST = 500  # values of one IN list; the drivers bound the parameters of a statement


def engine(url: str, *, exclusive: bool) -> Engine:
    """An engine with exactly one connection; a SQLite file is created 0600 where it is missing.

    `exclusive` is for a file on a network file system: it is locked for as long as the
    connection lives, and has no WAL, which needs memory shared between processes.

    Raises:
        ConfigError: `url` is none, or its driver is not installed.
        OSError: the file or its folder cannot be created.
    """
    parsed = _parsed(url)
    try:
        if parsed.get_backend_name() == "sqlite":
            return _sqlite(parsed, exclusive=exclusive)
        if parsed.get_backend_name() == "postgresql":
            return _postgresql(parsed)
    except NoSuchModuleError as error:
        raise ConfigError(f"database url: {error}") from error
    except ModuleNotFoundError as error:
        missing = f"database url: {error.name} is not installed; install jobmond[postgres]"
        raise ConfigError(missing) from error
    raise ConfigError(f"database url: {parsed.drivername} is neither sqlite nor postgresql")


def database_file(url: str) -> Path | None:
    """The file of a SQLite URL; None for one in memory and for other databases."""
    parsed = _parsed(url)
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return None
    return Path(str(parsed.database))


def named(url: str) -> str:
    """How messages name the database: the file's path, else the URL without its password."""
    path = database_file(url)
    return str(path) if path else _parsed(url).render_as_string(hide_password=True)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """One consistent look; on SQLite it takes no write lock."""
    with engine.connect() as connection:
        connection.execution_options(reading=True)
        with connection.begin():
            yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One transaction that holds the write lock from its first moment."""
    with engine.begin() as connection:
        yield connection


def insert_new(connection: Connection, table: Table) -> Any:
    """An INSERT that passes over rows whose unique key is taken."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()


def upsert(connection: Connection, table: Table, *, key: str) -> Any:
    """An INSERT that overwrites every other column where `key` is taken."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    insert = dialect.insert(table)
    held = {column.name: insert.excluded[column.name] for column in table.c if column.name != key}
    return insert.on_conflict_do_update(index_elements=[key], set_=held)


def write(connection: Connection, statement: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """One statement for many rows, in batches; nothing at all for none."""
    for some in batched(rows, BATCH):
        connection.execute(statement, list(some))


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """`items` in slices of at most `size`."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError) as error:
        # The text itself is not repeated: it may hold a password.
        raise ConfigError(
            "database url: cannot be read; write sqlite:////absolute/path or "
            "postgresql+psycopg://user@host/name"
        ) from error


def _sqlite(url: URL, *, exclusive: bool) -> Engine:
    path = database_file(url.render_as_string(hide_password=False))
    made = create_engine(
        url,
        json_serializer=json_text,
        connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
        **({"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0} if path else {}),
        **({} if path else {"poolclass": StaticPool}),
    )
    if path:
        _create_private(path)  # not before: a driver that is not there must leave no file

    @event.listens_for(made, "connect")
    def prepare(raw: sqlite3.Connection, _record: object) -> None:
        # The driver's own transactions begin too late: updates were lost between writers.
        raw.isolation_level = None
        if exclusive:
            raw.execute("PRAGMA locking_mode=EXCLUSIVE")
        raw.execute(f"PRAGMA journal_mode={'DELETE' if exclusive else 'WAL'}")
        raw.execute("PRAGMA synchronous=NORMAL" if not exclusive else "PRAGMA synchronous=FULL")
        raw.execute("PRAGMA foreign_keys=ON")
        raw.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_S * 1000}")

    @event.listens_for(made, "begin")
    def begin(connection: Connection) -> None:
        only_reads = connection.get_execution_options().get("reading", False)
        connection.exec_driver_sql("BEGIN" if only_reads else "BEGIN IMMEDIATE")

    return made


def _postgresql(url: URL) -> Engine:
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        json_serializer=json_text,
        pool_size=1,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={"connect_timeout": 10},
    )


def _create_private(path: Path) -> None:
    """Only the owner reads what people run; SQLite gives its side files the same mode."""
    for folder in reversed([one for one in path.absolute().parents if not one.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        status = os.fstat(descriptor)
        if status.st_mode & 0o077 and status.st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
