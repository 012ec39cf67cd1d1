"""A database whose file goes away under it."""

import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from jobmond.errors import StoreError
from jobmond.store import Store

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "jobmond.db"


@pytest.fixture
def store(path):
    opened = Store.open(f"sqlite:///{path}")
    yield opened
    opened.close()


def test_nothing_is_written_to_a_file_that_was_removed(store, path):
    store.set_sweep_times(NOON, None)
    path.unlink()
    with pytest.raises(StoreError, match="was removed while in use: stop jobmond"):
        store.set_sweep_times(NOON, NOON)
    with pytest.raises(StoreError, match="was removed"):
        store.sweep_times()


def test_nothing_is_written_past_a_file_that_was_put_in_its_place(store, path):
    path.with_name("copy").touch()
    path.with_name("copy").replace(path)
    with pytest.raises(StoreError, match="was replaced while in use"):
        store.set_sweep_times(NOON, None)


def test_a_file_that_is_moved_back_is_used_again(store, path):
    path.rename(path.with_name("moved"))
    with pytest.raises(StoreError, match="was removed"):
        store.sweep_times()
    path.with_name("moved").rename(path)
    store.set_sweep_times(NOON, None)
    assert store.sweep_times()["last_sweep_at"] == NOON


@pytest.mark.parametrize("left", [0, 0.5])
def test_one_that_was_cut_short_is_left_to_a_person(store, path, left):
    store.set_sweep_times(NOON, None)
    whole = path.read_bytes()
    os.truncate(path, int(len(whole) * left))
    for _ in range(2):
        with pytest.raises(StoreError, match="was cut short while in use"):
            store.set_sweep_times(NOON, NOON)
        path.write_bytes(whole)  # under a memory of another: too late


def test_its_locks_are_kept(tmp_path):
    """Whoever opens a file that SQLite has locked, and closes it, takes the locks away."""
    path = tmp_path / "jobmond.db"
    store = Store.open(f"sqlite:///{path}", exclusive=True)
    store.set_sweep_times(NOON, None)
    probe = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=0)\n"
        "try: c.execute('select * from sqlite_master').fetchall()\n"
        "except sqlite3.OperationalError as error: print(error)"
    )
    said = subprocess.run(
        [sys.executable, "-c", probe, str(path)], capture_output=True, text=True, check=True
    )
    assert said.stdout == "database is locked\n"
    store.close()


def test_one_in_memory_has_no_file(tmp_path):
    store = Store.open("sqlite://")
    store.set_sweep_times(NOON, None)
    store.close()
