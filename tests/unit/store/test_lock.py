"""One process per database."""

import os
import socket
import subprocess
import sys

import pytest

from jobmond.errors import Refused, StoreError
from jobmond.store import StoreLock


def test_a_second_holder_is_refused_by_host_and_pid(tmp_path):
    database = tmp_path / "new" / "jobmond.db"
    with StoreLock(database), pytest.raises(Refused) as refused:
        StoreLock(database).take()
    assert f"process {os.getpid()} on {socket.gethostname()}" in str(refused.value)
    assert "jobmond.db.lock" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_another_process_is_refused_too(tmp_path):
    database = tmp_path / "jobmond.db"
    program = (
        "import sys, pathlib\n"
        "from jobmond.store.lock import StoreLock\n"
        "from jobmond.errors import Refused\n"
        "try: StoreLock(pathlib.Path(sys.argv[1])).take()\n"
        "except Refused as refused: print(refused)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with StoreLock(database):
        answer = subprocess.run(
            [sys.executable, "-c", program, database],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
    assert f"process {os.getpid()} on" in answer.stdout


def test_the_lock_is_free_after_release_and_names_nobody(tmp_path):
    database = tmp_path / "jobmond.db"
    lock = StoreLock(database)
    lock.take()
    assert lock.path.read_text() == f"{socket.gethostname()}:{os.getpid()}\n"
    lock.release()
    lock.release()
    assert lock.path.read_text() == ""
    with StoreLock(database):
        pass


def test_a_stale_file_holds_nobody_up(tmp_path):
    database = tmp_path / "jobmond.db"
    (tmp_path / "jobmond.db.lock").write_text("elsewhere:1\n" * 500)
    with StoreLock(database) as lock:
        assert lock.path.read_text() == f"{socket.gethostname()}:{os.getpid()}\n"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"no-colon", b":", b"host:notapid"])
def test_a_holder_that_left_no_name_is_another_process(tmp_path, content):
    database = tmp_path / "jobmond.db"
    with StoreLock(database) as lock:
        lock.path.write_bytes(content)
        with pytest.raises(Refused, match="another process"):
            StoreLock(database).take()


def test_a_lock_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot open the lock"):
        StoreLock(tmp_path / "file" / "jobmond.db").take()


def test_one_database_has_one_lock_whatever_path_leads_there(tmp_path):
    (tmp_path / "jobmond.db").touch()
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "other.db"
    link.symlink_to(tmp_path / "jobmond.db")
    with StoreLock(tmp_path / "jobmond.db"), pytest.raises(Refused):
        StoreLock(link).take()
