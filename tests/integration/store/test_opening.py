"""Opening a database: new, old, foreign, damaged, from the future, locked, full."""

import os
import shutil
import sqlite3
import stat
import sys
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, text

from jobmond.errors import ConfigError, DatabaseFromTheFuture, StoreError
from jobmond.model.commit import JobChange
from jobmond.model.outcome import Signal
from jobmond.model.state import Severity, State
from jobmond.store import Store, migrate
from jobmond.store.engine import engine, writing
from jobmond.store.schema import metadata

SECOND = """
from alembic import op
import sqlalchemy as sa
revision, down_revision = "0998", "{head}"
def upgrade():
    with op.batch_alter_table("incarnations") as batch:
        batch.add_column(sa.Column("extra", sa.Text()))
        batch.alter_column("note", existing_type=sa.Text(), new_column_name="remark")
    {more}
def downgrade():
    pass
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "er" / "jobmond.db"


def at(path: Path) -> str:
    return f"sqlite:///{path}"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def said(error: pytest.ExceptionInfo[BaseException]) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


def with_second_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str = "") -> None:
    """The next version of jobmond, which rebuilds the table that everything hangs on."""
    folder = tmp_path / "next"
    shutil.copytree(migrate.scripts(), folder)
    (folder / "versions" / "0998_next.py").write_text(
        SECOND.format(more=more or "pass", head=migrate.head())
    )
    monkeypatch.setattr(migrate, "scripts", lambda: folder)


def fill(store: Store, make) -> None:
    signal = Signal("stall", Severity.WATCH, "t", {})
    store.commit(make.sweep(JobChange(make.job(signals=(signal,)), (make.step(State.RUNNING),))))
    store.commit(make.sweep(make.job("4712", predecessor=1, life=2)))


def test_a_new_database_is_its_owners_alone(path):
    before = os.umask(0)
    try:
        store = Store.open(at(path))
    finally:
        os.umask(before)
    store.set_sweep_times(None, None)
    assert mode(path.parent) == mode(path.parent.parent) == 0o700
    assert {p.name: mode(p) for p in path.parent.iterdir()} == {
        "jobmond.db": 0o600,
        "jobmond.db-wal": 0o600,
        "jobmond.db-shm": 0o600,
    }
    store.close()


def test_a_database_that_others_could_read_is_closed_to_them(path):
    Store.open(at(path)).close()
    path.chmod(0o644)
    Store.open(at(path)).close()
    assert mode(path) == 0o600


def test_the_pragmas_hold_on_every_connection(lite):
    with writing(lite._engine) as connection:
        found = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "foreign_keys", "synchronous", "busy_timeout")
        }
    assert found == {
        "journal_mode": "wal",
        "foreign_keys": 1,
        "synchronous": 1,
        "busy_timeout": 2000,
    }


def test_exclusive_keeps_everybody_else_out_and_has_no_wal(path, make, monkeypatch):
    monkeypatch.setattr("jobmond.store.engine.BUSY_TIMEOUT_S", 0)
    store = Store.open(at(path), exclusive=True)
    fill(store, make)
    assert not path.with_name("jobmond.db-wal").exists()
    with pytest.raises(StoreError) as error:
        Store.open(at(path))
    assert said(error) == f"database is locked by another process: {path}"
    store.close()
    again = Store.open(at(path), exclusive=False)
    assert len(again.jobs(recent_since=make.noon)) == 2
    again.close()


def test_the_migrations_make_exactly_the_tables_of_the_schema(url):
    Store.open(url).close()
    made = engine(url, exclusive=False)
    with made.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={"version_table": migrate.VERSION_TABLE, "compare_type": _differs},
        )
        assert compare_metadata(context, metadata) == []
    made.dispose()


def _differs(_context, _inspected, _column, inspected_type, wanted_type):
    held = getattr(wanted_type, "impl", wanted_type)
    held = getattr(held, "impl_instance", held)
    return inspected_type._type_affinity is not held._type_affinity


def test_every_constraint_has_a_name(lite):
    with writing(lite._engine) as connection:
        tables = connection.execute(text("SELECT sql FROM sqlite_master WHERE type='table'"))
        for (sql,) in tables:
            if sql and sql.startswith("CREATE TABLE") and "jobmond_version" not in sql:
                for line in sql.splitlines()[1:]:
                    keys = ("PRIMARY KEY (", "UNIQUE (", "FOREIGN KEY", "CHECK (")
                    assert not line.strip().startswith(keys), sql


def test_a_migration_keeps_child_rows_and_leaves_a_copy(path, tmp_path, make, monkeypatch):
    store = Store.open(at(path))
    fill(store, make)
    store.close()
    with_second_migration(tmp_path, monkeypatch)
    made = engine(at(path), exclusive=False)
    migrate.upgrade(made, where=str(path), path=path)
    with writing(made) as connection:
        counts = {
            table: connection.execute(text(f"SELECT count(*) FROM {table}")).scalar()
            for table in ("incarnations", "transitions", "signals")
        }
        assert (
            connection.execute(text("SELECT max(predecessor_id) FROM incarnations")).scalar() == 1
        )
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1
    made.dispose()
    assert counts == {"incarnations": 2, "transitions": 1, "signals": 1}
    copy = path.with_name("jobmond.db.before-0998")
    assert mode(copy) == 0o600
    monkeypatch.undo()
    old = Store.open(at(copy))
    assert len(old.jobs(recent_since=make.noon)) == 2
    old.close()


def test_a_migration_that_fails_changes_nothing(path, tmp_path, make, monkeypatch):
    store = Store.open(at(path))
    fill(store, make)
    store.close()
    with monkeypatch.context() as patch:
        with_second_migration(tmp_path, patch, more='op.execute("DELETE FROM no_such_table")')
        with pytest.raises(StoreError, match="no_such_table") as error:
            Store.open(at(path))
        said(error)
    again = Store.open(at(path))
    assert len(again.jobs(recent_since=make.noon)) == 2
    again.close()


def test_a_migration_that_orphans_rows_is_refused(path, tmp_path, make, monkeypatch):
    store = Store.open(at(path))
    fill(store, make)
    store.close()
    with monkeypatch.context() as patch:
        with_second_migration(tmp_path, patch, more='op.execute("DELETE FROM runs")')
        with pytest.raises(StoreError, match="without their parents"):
            Store.open(at(path))
    Store.open(at(path)).close()


def test_a_new_database_leaves_no_copy(path):
    Store.open(at(path)).close()
    Store.open(at(path)).close()
    assert [p.name for p in path.parent.iterdir()] == ["jobmond.db"]


def test_a_database_from_the_future_is_refused_by_name(url):
    Store.open(url).close()
    made = engine(url, exclusive=False)
    with writing(made) as connection:
        connection.execute(text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '0999'"))
    made.dispose()
    with pytest.raises(DatabaseFromTheFuture) as error:
        Store.open(url)
    assert "0999" in said(error)
    assert migrate.head() in said(error)
    assert "upgrade jobmond" in said(error)


def test_the_newest_migration_is_known():
    newest = max(p.name for p in (migrate.scripts() / "versions").glob("0*.py"))
    assert newest.startswith(migrate.head())


def test_migrating_down_and_up_again(lite):
    with writing(lite._engine) as connection:
        command.downgrade(migrate._config(connection), "base")
    migrate.upgrade(lite._engine, where="x", path=None)
    assert lite.events() == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"this is no database, whatever its name says" * 50, "is not a database"),
        (b"SQLite format 3\x00" + b"\xff" * 4000, "is not a database"),
    ],
)
def test_a_file_that_is_no_database_is_refused(path, content, message):
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=message) as error:
        Store.open(at(path))
    assert str(path) in said(error)
    assert path.read_bytes() == content


def test_a_damaged_database_is_named(path, make):
    store = Store.open(at(path))
    for n in range(40):
        store.commit(make.sweep(make.job(str(n), run=f"r{n}")))
    store.close()
    raw = bytearray(path.read_bytes())
    for page in range(1, len(raw) // 4096):
        raw[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    path.write_bytes(raw)
    with pytest.raises(StoreError, match="damaged") as error:
        Store.open(at(path)).jobs(recent_since=make.noon)
    said(error)


def test_another_programs_database_is_left_alone(path):
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.close()
    with pytest.raises(StoreError, match="another program") as error:
        Store.open(at(path))
    assert "bookmarks" in said(error)


def test_an_empty_file_becomes_a_database(path):
    path.parent.mkdir(parents=True)
    path.touch()
    Store.open(at(path)).close()


def test_a_locked_database_is_said_to_be_locked(path, make, monkeypatch):
    monkeypatch.setattr("jobmond.store.engine.BUSY_TIMEOUT_S", 0)
    store = Store.open(at(path))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError) as error:
        store.commit(make.sweep(make.job()))
    assert said(error) == f"database is locked by another process: {path}"
    assert store.jobs(recent_since=make.noon) == ()  # reading goes on
    other.execute("COMMIT")
    other.close()
    store.commit(make.sweep(make.job()))
    assert len(store.jobs(recent_since=make.noon)) == 1
    store.close()


def test_two_writers_lose_nothing(path, make):
    one, two = Store.open(at(path)), Store.open(at(path))
    for n in range(10):
        (one, two)[n % 2].commit(make.sweep(make.job(str(n), life=n), news=(make.news(str(n)),)))
    assert len(one.jobs(recent_since=make.noon)) == 10
    assert [news.key for news in two.events()] == [str(n) for n in range(10)]
    one.close()
    two.close()


def test_a_full_disk_is_said_and_costs_only_that_commit(lite, make):
    lite.commit(make.sweep(make.job()))
    with writing(lite._engine) as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar()
    raw = lite._engine.raw_connection()
    raw.driver_connection.execute(f"PRAGMA max_page_count={pages + 2}")
    raw.close()
    big = make.sweep(*(make.job(str(n), run=f"r{n}", note="x" * 5000) for n in range(50)))
    with pytest.raises(StoreError, match="disk full") as error:
        lite.commit(big)
    said(error)
    assert [job.native_id for job in lite.jobs(recent_since=make.noon)] == ["4711"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"Not a directory|File exists") as error:
        Store.open(at(tmp_path / "file" / "jobmond.db"))
    said(error)


def test_a_folder_in_the_files_place_is_named(tmp_path):
    with pytest.raises(StoreError, match="Is a directory") as error:
        Store.open(at(tmp_path))
    said(error)


@pytest.mark.parametrize(
    "url", ["", "nonsense", "mysql://x/y", "postgresql://a:b@h:port/x", "sqlite+nodriver:///x"]
)
def test_a_url_of_no_use_is_a_configuration_error(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="database url") as error:
        Store.open(url)
    said(error)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_driver_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"install jobmond\[postgres\]") as error:
        Store.open("postgresql://h/x")
    said(error)


def test_a_server_that_does_not_answer_is_named_without_its_password():
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra `postgres`)")
    with pytest.raises(StoreError) as error:
        Store.open("postgresql://alice:s3cret@/jobs?host=/nonexistent")
    assert "alice" in said(error)
    assert "s3cret" not in said(error)


def test_a_database_in_memory_works(make):
    store = Store.open("sqlite://")
    store.commit(make.sweep(make.job()))
    assert len(store.jobs(recent_since=make.noon)) == 1
    store.close()


def test_the_scripts_of_an_installed_package_come_first(tmp_path, monkeypatch):
    package = tmp_path / "jobmond"
    (package / "_migrations").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.setattr("jobmond.__file__", str(package / "__init__.py"))
    assert migrate.scripts() == package / "_migrations"
    (package / "_migrations").rmdir()
    assert migrate.scripts() == tmp_path / "migrations"


def test_a_row_that_cannot_be_read_is_named(store, make):
    store.commit(make.sweep(make.job()))
    with writing(store._engine) as connection:
        connection.execute(text("UPDATE incarnations SET state = 'DREAMING'"))
    with pytest.raises(StoreError, match=r"row 1 of incarnations .*DREAMING") as error:
        store.jobs(recent_since=make.noon)
    said(error)


def test_a_closed_store_can_be_opened_by_another_engine(path):
    Store.open(at(path)).close()
    other = create_engine(at(path))
    with other.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM meta")).scalar() == 1
    other.dispose()
