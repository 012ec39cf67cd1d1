"""What a database says when it fails, in one line that names the fix."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError, StatementError

from jobmond.errors import StoreError

_SQLITE = {
    sqlite3.SQLITE_BUSY: "database is locked by another process: {where}",
    sqlite3.SQLITE_LOCKED: "database is locked by another process: {where}",
    sqlite3.SQLITE_FULL: "disk full: nothing was written to {where}; make room there",
    sqlite3.SQLITE_READONLY: "database is read-only: {where}; check its owner and mode",
    sqlite3.SQLITE_CANTOPEN: "cannot open the database {where}; check its folder's owner and mode",
    sqlite3.SQLITE_IOERR: "the disk under {where} failed: {said}",
    sqlite3.SQLITE_CORRUPT: "{where} is damaged: {said}; with jobmond stopped, restore a copy of "
    "it and remove {where}-wal",
    sqlite3.SQLITE_NOTADB: "{where} is not a database: restore a copy of it, or correct the url",
}


@contextmanager
def one_line(where: str) -> Iterator[None]:
    """Turns the library's exceptions into `StoreError`, the cause chained.

    `where` names the database without any password.
    """
    try:
        yield
    except DBAPIError as error:
        raise StoreError(explain(error.orig, where)) from error
    except sqlite3.Error as error:
        raise StoreError(explain(error, where)) from error
    except StatementError as error:
        raise StoreError(f"a value does not fit into {where}: {_first_line(error.orig)}") from error
    except SQLAlchemyError as error:
        raise StoreError(f"the database {where} failed: {_first_line(error)}") from error
    except OSError as error:
        raise StoreError(f"cannot use the database {where}: {error.strerror}") from error


def explain(error: BaseException | None, where: str) -> str:
    """One line for what the driver raised."""
    said = _first_line(error)
    if isinstance(error, sqlite3.Error):
        primary = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if primary in _SQLITE:
            return _SQLITE[primary].format(where=where, said=said)
    return f"the database {where} failed: {said}"


def _first_line(error: BaseException | None) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
