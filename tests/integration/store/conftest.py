"""A store on a real SQLite file and, where a server can be started, on PostgreSQL."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from jobmond.model.commit import JobChange, SweepCommit
from jobmond.model.job import Choices, Classified, ClusterHealth, Job
from jobmond.model.observation import Facts
from jobmond.model.outcome import Delivery, News, Transition
from jobmond.model.state import Bucket, Kind, Severity, State
from jobmond.store import Store
from tests.needs import need

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a throw-away server on a socket, without a database name."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    need(programs, "PostgreSQL is not installed (/usr/lib/postgresql/*/bin)")
    need(importlib.util.find_spec("psycopg"), "psycopg is not installed (extra `postgres`)")
    try:
        owner = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    except KeyError:
        owner = None
    need(owner, "PostgreSQL refuses to run as root and there is no user `postgres`")
    folder = Path(tempfile.mkdtemp(prefix="jobmond-pg-", dir="/tmp"))  # short: it holds a socket
    os.chown(folder, owner.pw_uid, owner.pw_gid)
    identity = {"user": owner.pw_uid, "group": owner.pw_gid} if os.geteuid() == 0 else {}
    tools = programs[-1].parent
    try:
        subprocess.run(
            [
                tools / "initdb",
                "-D",
                folder / "data",
                "-U",
                "jm",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "-N",
            ],
            check=True,
            capture_output=True,
            cwd=folder,
            **identity,
        )
        # Our own child, not pg_ctl's: where nobody reaps orphans, pg_ctl waits a minute to stop it.
        options = {"listen_addresses": "", "unix_socket_directories": folder, "fsync": "off"}
        server = subprocess.Popen(
            [tools / "postgres", "-D", folder / "data"]
            + [word for name, value in options.items() for word in ("-c", f"{name}={value}")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            **identity,
        )
        try:
            _wait_for(f"postgresql://jm@/postgres?host={folder}", server)
            yield f"postgresql+psycopg://jm@/{{database}}?host={folder}"
        finally:
            server.send_signal(signal.SIGQUIT)
            server.wait(timeout=60)
    finally:
        shutil.rmtree(folder)


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/jobmond.db"
    pattern = request.getfixturevalue("postgres")  # skips where there is no driver either
    import psycopg

    name = f"jm_{uuid4().hex}"
    server = pattern.format(database="postgres").replace("+psycopg", "")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return pattern.format(database=name)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store.open(url)
    yield opened
    opened.close()


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Store]:
    """On SQLite only, for what is SQLite's."""
    opened = Store.open(f"sqlite:///{tmp_path}/jobmond.db")
    yield opened
    opened.close()


@dataclass(frozen=True)
class Make:
    """Values to store; every test says only what it is about."""

    noon: datetime = NOON

    def at(self, minutes: float) -> datetime:
        return NOON + timedelta(minutes=minutes)

    def job(self, native_id: str = "4711", **changes: object) -> Job:
        blank = Job(
            id=0,
            cluster="leo",
            kind=Kind.SLURM,
            native_id=native_id,
            birth="1764400000",
            run="train",
            life=1,
            bucket=Bucket.RL,
            type="rl",
            labels=frozenset(),
            choices=Choices(),
            facts=Facts(name="train"),
            state=State.RUNNING,
            native="RUNNING",
            added_at=NOON,
            first_seen_at=NOON,
            seen_at=NOON,
        )
        return replace(blank, **changes)  # type: ignore[arg-type] # keywords of the test's own

    def health(self, **changes: object) -> ClusterHealth:
        fine = ClusterHealth("leo", "slurm", True, "ok", since=NOON, last_ok_at=NOON)
        return replace(fine, **changes)  # type: ignore[arg-type] # keywords of the test's own

    def sweep(self, *jobs: Job | JobChange, minute: float = 0, **more: object) -> SweepCommit:
        changes = tuple(j if isinstance(j, JobChange) else JobChange(j) for j in jobs)
        at = self.at(minute)
        blank = SweepCommit("leo", at, at, health=self.health(), changes=changes)
        return replace(blank, **more)  # type: ignore[arg-type] # keywords of the test's own

    def step(self, after: State, before: State | None = None, minute: float = 0) -> Transition:
        return Transition(self.at(minute), before, after, after.value)

    def news(self, key: str, minute: float = 0) -> News:
        return News(
            key, self.at(minute), "transition", Severity.INFO, "leo", "leo/4711", {"title": key}
        )

    def delivery(self, key: str, sink: str = "news", minute: float = 0) -> Delivery:
        at = self.at(minute)
        return Delivery(0, key, sink, {"key": key}, created_at=at, due_at=at)

    def classified(
        self,
        run: str = "train",
        *,
        bucket: Bucket = Bucket.RL,
        type: str = "rl",
        labels: frozenset[str] = frozenset(),
    ) -> Classified:
        return Classified(bucket, type, run, labels)


@pytest.fixture
def make() -> Make:
    return Make()
