"""Logs of jobs that write several files, and logs that lie in different places."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobmond.analysis.choosing import choose
from jobmond.backends._by_kind import ByKind
from jobmond.backends._files import FileReader
from jobmond.backends.launcher.logs import LauncherLogs
from jobmond.backends.nel.logs import NelLogs
from jobmond.errors import TransientTransportError
from jobmond.model.observation import (
    Absent,
    Examine,
    LogAsk,
    LogPart,
    LogTail,
    Read,
    Unavailable,
)
from jobmond.model.state import Kind
from jobmond.ports import Answer
from jobmond.sweep.postmortem import scanned
from tests.doubles import ScriptedTransport, ShellTransport
from tests.training import lines_of

NOW = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)
SERVER = (
    "INFO 11-20 12:00:00 [api_server.py:1839] vLLM API server version 0.11.0\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.\n"
)
CLIENT = "requests.exceptions.ConnectionError: HTTPConnectionPool: Connection refused\n"


def ask(folder: Path | str | None, **more) -> LogAsk:
    return LogAsk(
        "x", more.pop("path", None), None if folder is None else str(folder), 65536, **more
    )


async def read(source, *asks: LogAsk):
    found = await source.read_tails(asks, now=NOW, timeout_s=20)
    assert set(found) == {one.native_id for one in asks}
    return found["x"]


def nel_logs() -> NelLogs:
    shell = ShellTransport()
    return NelLogs(FileReader(shell), shell)


@pytest.fixture
def rundir(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "client-4711.log").write_text(CLIENT)
    (tmp_path / "logs" / "server-0-4711-0.log").write_text(SERVER)
    return tmp_path


async def test_the_servers_log_comes_before_the_clients(rundir):
    reading = await read(nel_logs(), ask(rundir))
    assert isinstance(reading, Read)
    text = reading.value.tail.decode()
    assert text.index("==> server-0-4711-0.log <==") < text.index("==> client-4711.log <==")
    assert reading.value.path == f"{rundir}/logs"
    assert reading.value.size_bytes == len(SERVER) + len(CLIENT)


async def test_and_so_the_server_is_what_it_died_of(rundir):
    scan = scanned(await read(nel_logs(), ask(rundir)))
    assert scan is not None
    assert scan.evidence is not None
    found = choose(scan.evidence)
    assert found is not None
    assert found.cause == "cuda-oom"
    assert scan.offset is None  # its bytes have no place in any file


async def test_of_each_sort_the_newest_counts(rundir):
    old = rundir / "logs" / "server-0-4700-0.log"
    old.write_text("an older life\n")
    os.utime(old, (1, 1))
    reading = await read(nel_logs(), ask(rundir))
    assert isinstance(reading, Read)
    assert b"older" not in reading.value.tail


async def test_a_log_that_a_person_named_is_the_one(rundir):
    path = str(rundir / "logs" / "client-4711.log")
    reading = await read(nel_logs(), ask(rundir, path=path))
    assert isinstance(reading, Read)
    assert (reading.value.path, reading.value.tail) == (path, CLIENT.encode())


async def test_no_logs_no_folder_and_no_answer(tmp_path):
    assert isinstance(await read(nel_logs(), ask(tmp_path)), Absent)
    assert isinstance(await read(nel_logs(), ask(None)), Absent)
    dead = ScriptedTransport(TransientTransportError("connection lost"))
    reading = await read(NelLogs(FileReader(dead), dead), ask(tmp_path))
    assert reading == Unavailable("connection lost")
    cut = ScriptedTransport(Answer(0, b"\nxyz file 0 5 5 5\n", b""))
    assert isinstance(await read(NelLogs(FileReader(cut), cut), ask(tmp_path)), Unavailable)


async def test_only_files_are_opened(rundir):
    os.mkfifo(rundir / "logs" / "proxy-1.log")
    (rundir / "logs" / "slurm-9.log").mkdir()
    assert isinstance(await read(nel_logs(), ask(rundir)), Read)


async def test_a_folder_with_a_quote_is_only_a_folder(tmp_path):
    folder = tmp_path / "a'b $(touch pwned)"
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "client-1.log").write_text("fine\n")
    reading = await read(nel_logs(), ask(folder))
    assert isinstance(reading, Read)
    assert not Path("pwned").exists()


class TestLauncher:
    def logs(self) -> LauncherLogs:
        shell = ShellTransport()
        return LauncherLogs(FileReader(shell), shell)

    @pytest.fixture
    def far(self, tmp_path: Path) -> Path:
        folder = tmp_path / "far"
        folder.mkdir()
        (folder / "log-acct.ptq_4712_0.out").write_text("the first life\n")
        os.utime(folder / "log-acct.ptq_4712_0.out", (1, 1))
        (folder / "log-acct.ptq_4712_1.out").write_text("RuntimeError: after the requeue\n")
        return folder

    def near(self, tmp_path: Path, name: str) -> str:
        path = tmp_path / "ptq.log"
        path.write_bytes(lines_of(f"launcher/{name}"))
        return str(path)

    async def test_its_own_file_is_enough_where_it_saw_the_end(self, tmp_path, far):
        path = self.near(tmp_path, "ptq_oom.log")
        reading = await read(self.logs(), ask(far, path=path))
        assert isinstance(reading, Read)
        assert reading.value.joined is False
        assert reading.value.tail == lines_of("launcher/ptq_oom.log")

    async def test_else_the_newest_of_the_jobs_own_tells_the_rest(self, tmp_path, far):
        path = self.near(tmp_path, "partial_4_import.log")
        reading = await read(self.logs(), ask(far, path=path))
        assert isinstance(reading, Read)
        assert reading.value.joined
        assert b"after the requeue" in reading.value.tail
        assert b"first life" not in reading.value.tail
        assert b"Launching launch" in reading.value.tail

    async def test_a_job_that_runs_is_read_here_only(self, tmp_path):
        path = self.near(tmp_path, "partial_4_import.log")
        reading = await read(self.logs(), ask(None, path=path))
        assert isinstance(reading, Read)
        assert reading.value.path == path

    async def test_without_a_file_the_jobs_own_is_all_there_is(self, far):
        reading = await read(self.logs(), ask(far))
        assert isinstance(reading, Read)
        assert b"after the requeue" in reading.value.tail

    async def test_nothing_at_all(self):
        assert isinstance(await read(self.logs(), ask(None)), Absent)


class _Source:
    def __init__(self, word: str) -> None:
        self.word = word

    async def read_tails(self, asks, *, now, timeout_s):
        tail = LogTail(self.word, 0, 0, now, 0, b"")
        return {one.native_id: Read(tail, now) for one in asks}


async def test_each_kind_has_its_own_place():
    source = ByKind(_Source("files"), {Kind.NEL: _Source("nel")})
    one = ask(None)
    asks = [
        replace(one, native_id="a", kind=Kind.NEL),
        replace(one, native_id="b", kind=Kind.SLURM),
        replace(one, native_id="c"),
    ]
    found = await source.read_tails(asks, now=NOW, timeout_s=10)
    assert {i: reading.value.path for i, reading in found.items()} == {
        "a": "nel",
        "b": "files",
        "c": "files",
    }


async def test_of_a_job_that_ended_badly_each_log_comes_by_itself_too(rundir):
    reading = await read(nel_logs(), ask(rundir, examine=Examine((b"Error",))))
    assert isinstance(reading, Read)
    assert [(one.path.rpartition("/")[2], one.parts) for one in reading.value.examined] == [
        ("server-0-4711-0.log", (LogPart(0, SERVER.encode(), 1),)),
        ("client-4711.log", (LogPart(0, CLIENT.encode(), 1),)),
    ]


async def test_of_a_large_one_comes_more_of_its_end(rundir):
    log = rundir / "logs" / "server-0-4711-0.log"
    log.write_text("x" * 40_000 + "\n" + SERVER)
    wanted = Examine((b"Error",), tail_bytes=30_000)
    reading = await read(nel_logs(), replace(ask(rundir, examine=wanted), tail_bytes=2000))
    assert isinstance(reading, Read)
    size = log.stat().st_size
    [part] = reading.value.examined[0].parts
    assert (part.offset, len(part.data), part.line) == (size - 30_000, 30_000, None)
