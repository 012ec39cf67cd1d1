import sqlite3
from pathlib import Path
from urllib.parse import quote

import pytest

from jobmond.errors import DatabaseFromTheFuture, StoreError
from jobmond.store import migrate
from jobmond.store.standing import Standing, standing
from jobmond.store.store import Store


def _url(path: Path) -> str:
    return f"sqlite:///{quote(str(path))}"


def test_a_database_that_is_not_there_stays_away(tmp_path: Path) -> None:
    path = tmp_path / "jobmond.db"
    assert standing(_url(path)) == Standing(str(path), None, migrate.head())
    assert not path.exists()


@pytest.mark.parametrize("name", ["jobmond.db", "a b%20&#.db"])
def test_a_database_of_this_version_is_left_alone(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    Store.open(_url(path)).close()
    assert standing(_url(path)) == Standing(str(path), migrate.head(), migrate.head())
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_what_a_person_reads() -> None:
    assert Standing("x", None, "0002").said == "will be created"
    assert Standing("x", "0002", "0002").said == "schema 0002"
    assert Standing("x", "0001", "0002").said == "schema 0001, will be migrated to 0002"


def test_a_database_that_is_in_use(tmp_path: Path) -> None:
    path = tmp_path / "jobmond.db"
    store = Store.open(_url(path))
    try:
        assert standing(_url(path)).schema == migrate.head()
    finally:
        store.close()


def test_a_database_from_the_future(tmp_path: Path) -> None:
    path = tmp_path / "jobmond.db"
    Store.open(_url(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '9999'")
    connection.close()
    with pytest.raises(DatabaseFromTheFuture, match="newer jobmond"):
        standing(_url(path))


def test_what_is_no_database_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "jobmond.db"
    path.write_text("not a database, but long enough to be looked at as one by SQLite " * 20)
    with pytest.raises(StoreError, match="is not a database"):
        standing(_url(path))
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(StoreError, match=r"another program \(tables theirs\)"):
        standing(_url(path))
