"""Bringing the tables to what this version needs, or saying why not."""

import os
import sqlite3
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, column, func, inspect, select, table, text

import jobmond
from jobmond.errors import DatabaseFromTheFuture, StoreError

VERSION_TABLE = "jobmond_version"  # a PostgreSQL database may hold other programs' migrations
_ADVISORY_LOCK = 0x6A6F626D  # "jobm": whoever migrates the same database waits here


def scripts() -> Path:
    """The folder of the migrations: inside an installed package, else in the source tree."""
    package = Path(jobmond.__file__).parent
    installed = package / "_migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def head() -> str:
    """The revision this version of jobmond works with."""
    revision = _script_directory().get_current_head()
    if revision is None:
        raise StoreError(f"no migrations in {scripts()}; install jobmond again")
    return revision


def upgrade(engine: Engine, *, where: str, path: Path | None) -> None:
    """Migrate to `head()` in one transaction; without effect where that is the state already.

    `path` is the file to copy to `<file>.before-<revision>` before an existing database changes.

    Raises:
        DatabaseFromTheFuture: its revision is not one of ours.
        StoreError: the file belongs to another program, or is damaged.
    """
    with engine.connect() as connection:
        connection.execution_options(reading=True)
        with connection.begin():
            check_whole(connection, where)
            current = revision(connection, where)
        if current == head():
            return
        connection.execution_options(reading=False)
        if path and current is not None:
            _copy(connection, path.with_name(f"{path.name}.before-{head()}"))
        _migrate(connection, where)


def _migrate(connection: Connection, where: str) -> None:
    sqlite = connection.dialect.name == "sqlite"
    if sqlite:
        # Rebuilding a table drops it, and with foreign keys on that would delete its children.
        # The switch has no effect inside a transaction.
        _driver(connection).execute("PRAGMA foreign_keys=OFF")
    try:
        with connection.begin():
            if not sqlite:
                connection.execute(select(func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            if revision(connection, where) != head():
                command.upgrade(_config(connection), "head")
            if sqlite and connection.execute(text("PRAGMA foreign_key_check")).first():
                raise StoreError(f"migrating {where} would leave rows without their parents")
    finally:
        if sqlite:
            _driver(connection).execute("PRAGMA foreign_keys=ON")


def check_whole(connection: Connection, where: str) -> None:
    """Look through the whole file: what is damaged must not be worked with until it is worse.

    Raises:
        StoreError: it is damaged.
    """
    if connection.dialect.name == "sqlite":
        said = connection.execute(text("PRAGMA quick_check(1)")).scalar()
        if said != "ok":
            first = str(said).strip().splitlines()[-1]
            raise StoreError(
                f"{where} is damaged: {first}; with jobmond stopped, "
                f"restore a copy of it and remove {where}-wal"
            )


def revision(connection: Connection, where: str) -> str | None:
    """The schema of the database, None where it has none yet.

    Raises:
        DatabaseFromTheFuture: it is not one of ours.
        StoreError: the file belongs to another program.
    """
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE not in tables:
        if tables and connection.dialect.name == "sqlite":
            raise StoreError(f"{where} belongs to another program (tables {', '.join(tables[:3])})")
        return None
    version = table(VERSION_TABLE, column("version_num"))
    current = connection.execute(select(version.c.version_num)).scalar()
    if current is None:
        return None
    if current not in {script.revision for script in _script_directory().walk_revisions()}:
        raise DatabaseFromTheFuture(
            f"{where} was written by a newer jobmond: its schema is {current}, version "
            f"{jobmond.__version__} knows schemas up to {head()}; upgrade jobmond"
        )
    return str(current)


def _copy(connection: Connection, target: Path) -> None:
    """A whole copy through SQLite's backup, under its name only once it is complete."""
    unfinished = target.with_name(target.name + ".part")
    unfinished.unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    copy = sqlite3.connect(unfinished)
    try:
        _driver(connection).backup(copy)
    finally:
        copy.close()
    unfinished.replace(target)


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    return config


def _script_directory() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())
