"""The ends of real files, read by a real /bin/sh."""

import getpass
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobmond.backends._files import FileReader
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.model.observation import Absent, LogAsk, LogTail, Read, Reading, Unavailable
from jobmond.ports import Answer
from jobmond.transports.local import LocalTransport
from tests.doubles import ScriptedTransport, ShellTransport
from tests.needs import need

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
MTIME = 1_795_000_000


def wrote(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    os.utime(path, (MTIME, MTIME))
    return path


def ask(
    path: Path | str | None, *, native_id: str = "7", workdir: Path | None = None, size: int = 100
) -> LogAsk:
    return LogAsk(native_id, str(path) if path else None, str(workdir) if workdir else None, size)


async def reading(one: LogAsk, transport: object | None = None, **options: int) -> Reading[LogTail]:
    reader = FileReader(transport or ShellTransport(), **options)  # type: ignore[arg-type] # keywords of the test's own
    return (await reader.read_tails([one], now=NOW, timeout_s=60))[one.native_id]


async def tail(one: LogAsk, transport: object | None = None) -> LogTail:
    found = await reading(one, transport)
    assert isinstance(found, Read), found
    assert found.at == NOW
    return found.value


async def test_the_whole_of_a_short_file(tmp_path):
    path = wrote(tmp_path / "a.out", b"one\ntwo")
    found = await tail(ask(path))
    assert (found.path, found.size_bytes, found.offset, found.tail) == (
        str(path),
        7,
        0,
        b"one\ntwo",
    )
    assert found.inode == path.stat().st_ino
    assert found.mtime_at == datetime.fromtimestamp(MTIME, UTC)


async def test_the_end_of_a_long_file(tmp_path):
    path = wrote(tmp_path / "a.out", b"x" * 5000 + b"the end\n\n")
    found = await tail(ask(path, size=9))
    assert (found.size_bytes, found.offset, found.tail) == (5009, 5000, b"the end\n\n")


async def test_an_empty_file_is_an_answer(tmp_path):
    found = await tail(ask(wrote(tmp_path / "a.out", b"")))
    assert (found.size_bytes, found.tail) == (0, b"")


async def test_any_bytes_even_those_that_look_like_ours(tmp_path):
    odd = bytes(range(256)) + b"\n0123 end 0\n\n0123 data 0\n\r\0"
    assert (await tail(ask(wrote(tmp_path / "a.out", odd), size=1000))).tail == odd


@pytest.mark.parametrize("name", ["a b.out", "$(id).out", "a'b\".out", "-n", "é\n.out", "*", "a%b"])
async def test_any_name(tmp_path, name):
    path = wrote(tmp_path / name, b"here")
    wrote(tmp_path / "other", b"not this")
    found = await tail(ask(path, workdir=tmp_path))
    assert (found.path, found.tail) == (str(path), b"here")


async def test_a_relative_path_stands_in_the_working_directory(tmp_path):
    wrote(tmp_path / "rel.out", b"here")
    assert (await tail(ask("rel.out", workdir=tmp_path))).path == str(tmp_path / "rel.out")
    assert await reading(ask("rel.out")) == Absent(())


async def test_a_file_that_is_not_where_slurm_said_is_looked_for_one_level_deep(tmp_path):
    found = wrote(tmp_path / "train_7.out", b"here")
    (tmp_path / "deep").mkdir()
    wrote(tmp_path / "deep" / "deep_7.out", b"too deep")
    one = ask(tmp_path / "missing.out", workdir=tmp_path)
    assert (await tail(one)).path == str(found)
    assert (await tail(ask(None, workdir=tmp_path))).path == str(found)


async def test_the_newest_of_several_is_taken(tmp_path):
    wrote(tmp_path / "a_7.out", b"old")
    newer = wrote(tmp_path / "slurm-7.out", b"new")
    os.utime(newer, (MTIME + 60, MTIME + 60))
    wrote(tmp_path / "a_77.out", b"other job")
    assert (await tail(ask(None, workdir=tmp_path))).tail == b"new"


async def test_absent_says_where_it_looked(tmp_path):
    one = ask(tmp_path / "no.out", workdir=tmp_path)
    assert await reading(one) == Absent(
        (f"{tmp_path}/no.out", f"{tmp_path}/*_7.out", f"{tmp_path}/slurm-7.out")
    )
    wrote(tmp_path / "file", b"")
    assert await reading(ask(tmp_path / "file" / "x.out")) == Absent((f"{tmp_path}/file/x.out",))


@pytest.mark.parametrize(
    ("make", "said"),
    [(os.mkfifo, "it is a fifo"), (os.mkdir, "it is a directory")],
)
async def test_only_regular_files_are_opened(tmp_path, make: Callable[[Path], None], said):
    make(tmp_path / "odd")
    assert await reading(ask(tmp_path / "odd")) == Unavailable(said)


async def test_devices_are_never_read():
    assert await reading(ask("/dev/zero")) == Unavailable("it is a character special file")
    assert await reading(ask("/dev/null")) == Absent(("/dev/null",))


async def test_a_link_is_followed_and_a_circle_is_not(tmp_path):
    (tmp_path / "link").symlink_to(wrote(tmp_path / "a.out", b"here"))
    assert (await tail(ask(tmp_path / "link"))).tail == b"here"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    found = await reading(ask(tmp_path / "loop"))
    assert isinstance(found, Unavailable)
    assert "Too many levels" in found.why


async def test_what_may_not_be_read_is_unavailable_and_not_absent(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "stat").write_text(
        "#!/bin/sh\necho \"stat: cannot statx 'x': Permission denied\" >&2\nexit 1\n"
    )
    (programs / "stat").chmod(0o755)
    wrote(tmp_path / "train_7.out", b"somebody else's?")
    found = await reading(ask(tmp_path / "a.out", workdir=tmp_path), ShellTransport(programs))
    assert isinstance(found, Unavailable)
    assert found.why.startswith(f"permission: {getpass.getuser()} may not ")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can enter; needs root, who can be somebody else."""
    need(os.geteuid() == 0, "only root can read as somebody else")
    with tempfile.TemporaryDirectory(prefix="jm-logs-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


async def test_a_log_of_somebody_else_and_how_they_can_share_it(open_folder: Path):
    path = wrote(open_folder / "it's mine.out", b"secret")
    path.chmod(0o600)
    nobody = ShellTransport(user="nobody")
    assert await reading(ask(path), nobody) == Unavailable(
        f"permission: nobody may not read {path} (-rw------- root); root can allow it: "
        f"setfacl -m u:nobody:r {shlex.quote(str(path))}"
    )
    path.chmod(0o644)
    assert (await tail(ask(path), nobody)).tail == b"secret"


@pytest.mark.parametrize("inside", ["a.out", "deeper/a.out", "/a.out"])
async def test_the_first_closed_folder_is_what_to_open(open_folder: Path, inside: str):
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    found = await reading(ask(f"{closed}/{inside}"), ShellTransport(user="nobody"))
    assert found == Unavailable(
        f"permission: nobody may not enter {closed} (drwx------ root); root can allow it: "
        f"setfacl -m u:nobody:x {closed}"
    )


async def test_a_link_into_a_closed_folder(open_folder: Path):
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    link = open_folder / "a.out"
    link.symlink_to(closed / "a.out")
    found = await reading(ask(link), ShellTransport(user="nobody"))
    assert found == Unavailable(f"permission: nobody may not read {link}")


async def test_one_log_that_may_not_be_read_spoils_no_other(open_folder: Path):
    mine = wrote(open_folder / "7.out", b"mine")
    theirs = wrote(open_folder / "8.out", b"theirs")
    mine.chmod(0o644)
    theirs.chmod(0o600)
    reader = FileReader(ShellTransport(user="nobody"))
    asks = [ask(theirs, native_id="8"), ask(mine, native_id="7"), ask(theirs, native_id="9")]
    found = await reader.read_tails(asks, now=NOW, timeout_s=60)
    assert isinstance(found["7"], Read)
    assert isinstance(found["8"], Unavailable)
    assert found["8"] == found["9"]


def stingy(folder: Path, *, times: int) -> ShellTransport:
    """A far side whose `tail` brings nothing for the first `times` files."""
    folder.mkdir()
    real = shutil.which("tail")
    (folder / "tail").write_text(
        f"#!/bin/sh\necho x >>{folder}/n\n"
        f'[ "$(wc -l <{folder}/n)" -gt {times} ] || exit 0\nexec {real} "$@"\n'
    )
    (folder / "tail").chmod(0o755)
    return ShellTransport(folder)


async def test_nothing_arrived_is_tried_once_more(tmp_path):
    path = wrote(tmp_path / "a.out", b"content")
    transport = stingy(tmp_path / "bin", times=1)
    assert (await tail(ask(path), transport)).tail == b"content"
    assert len(transport.scripts) == 2


async def test_nothing_arrived_twice_is_unavailable_and_never_silence(tmp_path):
    path = wrote(tmp_path / "a.out", b"content")
    other = wrote(tmp_path / "b.out", b"")
    transport = stingy(tmp_path / "bin", times=9)
    found = await FileReader(transport).read_tails(
        [ask(path), ask(other, native_id="8")], now=NOW, timeout_s=60
    )
    assert found["7"] == Unavailable("7 bytes are there, 7 were asked for, 0 arrived")
    assert isinstance(found["8"], Read)
    assert len(transport.scripts) == 2
    assert b"b.out" not in transport.scripts[1]


async def test_a_budget_bounds_the_sweep_and_comes_first_next_time(tmp_path):
    asks = [ask(wrote(tmp_path / f"{i}.out", b"x" * 60), native_id=str(i)) for i in range(1, 4)]
    reader = FileReader(ShellTransport(), budget_bytes=100)
    first = await reader.read_tails(asks, now=NOW, timeout_s=60)
    assert isinstance(first["1"], Read)
    assert [first["2"], first["3"]] == [Unavailable("budget"), Unavailable("budget")]
    second = await reader.read_tails(asks, now=NOW, timeout_s=60)
    assert isinstance(second["2"], Read)
    assert second["1"] == Unavailable("budget")


async def test_a_small_file_fits_beside_a_large_one(tmp_path):
    large = ask(wrote(tmp_path / "1.out", b"x" * 90), native_id="1")
    small = ask(wrote(tmp_path / "2.out", b"y"), native_id="2")
    reader = FileReader(ShellTransport(), budget_bytes=100)
    found = await reader.read_tails([large, small], now=NOW, timeout_s=60)
    assert all(isinstance(one, Read) for one in found.values())


async def test_when_time_is_up_the_rest_is_postponed(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "date").write_text(
        f"#!/bin/sh\necho x >>{tmp_path}/n\necho $(($(wc -l <{tmp_path}/n) * 1000))\n"
    )
    (programs / "date").chmod(0o755)
    path = wrote(tmp_path / "a.out", b"content")
    assert await reading(ask(path), NoUptime(programs)) == Unavailable("budget")


class NoUptime(ShellTransport):
    """A far side whose kernel does not tell the time to a shell."""

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        lame = script.replace(b"/proc/uptime", b"/proc/none")
        return await super().run(lame, timeout_s=timeout_s, max_bytes=max_bytes)


@pytest.mark.parametrize(
    "failure", [TransientTransportError("connection lost"), NeedsPersonError("key refused")]
)
async def test_a_transport_that_fails_makes_every_log_unavailable(failure):
    found = await reading(ask("/a.out"), ScriptedTransport(failure))
    assert found == Unavailable(str(failure))


async def test_an_answer_without_any_file_is_asked_for_again_and_then_unavailable():
    transport = ScriptedTransport(Answer(0, b"Welcome\n", b""))
    assert await reading(ask("/a.out"), transport) == Unavailable("nothing arrived")
    assert len(transport.scripts) == 2


async def test_nothing_asked_is_nothing_sent():
    transport = ScriptedTransport(Answer(0, b"", b""))
    assert await FileReader(transport).read_tails([], now=NOW, timeout_s=9) == {}
    assert transport.scripts == []


async def test_a_path_that_cannot_be_written_down_is_said_to_be_so():
    found = await reading(ask("/a\0b"))
    assert found == Unavailable("cannot be asked for: its path holds a NUL")
    assert isinstance(await reading(ask("/a\udcff")), Unavailable)


async def test_over_the_product_s_own_transport(tmp_path):
    path = wrote(tmp_path / "a.out", b"x" * 300_000)
    found = await tail(ask(path, size=200_000), LocalTransport())
    assert (found.offset, len(found.tail)) == (100_000, 200_000)


# further folders


async def test_a_log_is_looked_for_in_the_folders_that_people_name(tmp_path):
    """Only under names that hold its id, and only where it is nowhere else."""
    logs, more = tmp_path / "it's logs", tmp_path / "more"
    for folder in (logs, more):
        folder.mkdir()
    folders = (str(tmp_path / "none"), str(logs), "relative", "/nul\0", str(more))

    async def found(workdir: Path | None = None) -> Reading[LogTail]:
        one = ask(tmp_path / "gone.out", workdir=workdir)
        reader = FileReader(ShellTransport(), log_dirs=folders)
        return (await reader.read_tails([one], now=NOW, timeout_s=60))["7"]

    wrote(logs / "train_70.out", b"another")
    assert await found() == Absent(
        (
            f"{tmp_path}/gone.out",
            f"{tmp_path}/none/*_7.out",
            f"{logs}/*_7.out",
            f"{more}/*_7.out",
        )
    )
    wrote(more / "slurm-7.out", b"more")
    assert (await found()).value.path == f"{more}/slurm-7.out"
    wrote(logs / "train_7.out", b"logs")
    assert (await found()).value.tail == b"logs"
    wrote(tmp_path / "x_7.out", b"beside")
    assert (await found(tmp_path)).value.tail == b"beside"
