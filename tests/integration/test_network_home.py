"""A home on a network file system, seen from two login nodes."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.host import Host, RunningDaemon, is_root, pid_of, until
from tests.needs import need

QUIET = '[clusters.here]\nkind = "local"\nslurm = false\n'
# Only where the mounts are listed differs from the installed program.
PROGRAM = """\
import sys
from pathlib import Path
from jobmond.store import filesystem
filesystem.network_file_system.__kwdefaults__["mounts"] = Path(sys.argv.pop(1))
from jobmond.__main__ import main
main()
"""


@dataclass
class Home:
    """One home; `nfs` is a list of mounts that says it is on NFS."""

    host: Host
    nfs: Path

    @property
    def database(self) -> Path:
        return self.host.state / "jobmond.db"

    def words(self, *words: str) -> tuple[str, ...]:
        return (sys.executable, "-c", PROGRAM, str(self.nfs), *words)

    def node(self, name: str) -> tuple[str, ...]:
        """A prefix with which a program believes to be on another host."""
        need(is_root(), "only root can give a host another name")
        need("unshare", "unshare is missing (Debian: util-linux)")
        return ("unshare", "--uts", "sh", "-c", f'hostname {name}; exec "$@"', name)

    def daemon(self, node: str) -> RunningDaemon:
        journal = self.host.home / f"journal-{node}"
        with journal.open("w") as out:
            words = (*self.node(node), *self.words("run"))
            process = self.host.spawn(*words, stdout=out, stderr=out)
        running = RunningDaemon(process, journal)
        until(lambda: running.says("event=ready") or process.poll() is not None, "it starts")
        assert process.poll() is None, running.said
        return running


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    nfs = tmp_path / "mounts"
    nfs.write_text(
        "22 1 0:21 / / rw - ext4 /dev/vda rw\n"
        f"40 22 0:50 / {tmp_path.resolve()} rw - nfs4 server:/home rw\n"
    )
    made = Home(Host(tmp_path / "home"), nfs)
    made.host.configure(QUIET)
    yield made
    made.host.close()


def test_one_process_no_wal_and_the_lock_names_the_node(home: Home) -> None:
    daemon = home.daemon("login1")
    process = home.host.spawn("sleep", "600")
    ref = f"here/{pid_of(process)}"
    assert home.host.ctl("add", pid_of(process)).returncode == 0
    home.host.until_state(ref, "RUNNING")

    files = {path.name for path in home.host.state.iterdir()}
    assert not files & {"jobmond.db-wal", "jobmond.db-shm"}
    lock = home.database.with_name("jobmond.db.lock").read_text()
    assert lock == f"login1:{daemon.process.pid}\n"
    with (
        closing(sqlite3.connect(home.database, timeout=0)) as other,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("select * from sqlite_master").fetchall()

    for words in (("run",), ("sweep",)):
        done = home.host.run(*home.node("login2"), *home.words(*words))
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert f"process {daemon.process.pid} on login1" in done.stderr
    checked = home.host.run(*home.words("check", "--offline"))
    assert checked.returncode == 0, checked.stdout
    assert (
        "ok    file system of the database: nfs4, a network file system: one process at a time, "
        "no write-ahead log\n"
    ) in checked.stdout

    assert daemon.stop() == 0
    assert "Traceback" not in daemon.said


def test_another_node_reads_the_report_with_its_age_and_host(home: Home) -> None:
    daemon = home.daemon("login1")
    process = home.host.spawn("sleep", "600")
    home.host.ctl("add", pid_of(process))
    home.host.until_state(f"here/{pid_of(process)}", "RUNNING")
    until(lambda: [j["state"] for j in home.host.report()["jobs"]] == ["RUNNING"], "it is written")

    # Its runtime folder is its own, and so is what listens there.
    home.host.extra = {"XDG_RUNTIME_DIR": str(home.host.home / "run-of-login2")}
    client = (sys.executable, "-m", "jobmond.cli.main")
    shown = home.host.run(*home.node("login2"), *client, "status")
    assert shown.returncode == 3
    assert "Report of login1, " in shown.stdout
    assert pid_of(process) in shown.stdout
    assert shown.stderr.count("\n") == 1
    document = json.loads(home.host.run(*home.node("login2"), *client, "status", "--json").stdout)
    assert document["daemon"]["running"] is False
    assert document["daemon"]["host"] == "login1"
    home.host.extra = {}
    assert daemon.stop() == 0


def test_a_database_that_was_local_before_is_taken_along(home: Home) -> None:
    """A copy of a home, taken while the daemon ran: with what is only in its write-ahead log."""
    daemon = home.host.daemon()
    process = home.host.spawn("sleep", "600")
    ref = f"here/{pid_of(process)}"
    home.host.ctl("add", pid_of(process))
    home.host.until_state(ref, "RUNNING")
    wal = home.database.with_name("jobmond.db-wal")
    assert wal.stat().st_size > 0
    kept = {path: path.read_bytes() for path in (home.database, wal)}
    daemon.process.kill()
    daemon.process.wait()
    for path, content in kept.items():
        path.write_bytes(content)

    after = home.daemon("login1")
    assert home.host.job(ref)["state"] == "RUNNING"
    assert not wal.exists()
    assert after.stop() == 0


def test_where_nothing_can_be_locked_the_fix_is_named(home: Home) -> None:
    program = PROGRAM.replace(
        "from jobmond.__main__",
        "import errno, fcntl\n"
        "def flock(*_): raise OSError(errno.ENOSYS, 'Function not implemented')\n"
        "fcntl.flock = flock\n"
        "from jobmond.__main__",
    )
    done = home.host.run(sys.executable, "-c", program, str(home.nfs), "run")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "Function not implemented" in done.stderr
    assert "database.url" in done.stderr
