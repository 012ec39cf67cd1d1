"""The socket of the interface: its mode, its owner, who gets in."""

import asyncio
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jobmond.api.listen import listen, peer_of
from jobmond.api.server import ApiServer
from jobmond.desk.peer import Rights
from jobmond.errors import ConfigError, Refused
from tests.doubles_api import Served
from tests.doubles_desk import Scene
from tests.doubles_store import job

NOBODY = 65534


@pytest.fixture
def path(tmp_path):
    return tmp_path / "socket"


@pytest.fixture
def open_folder():
    """A folder that every user of this host can enter."""
    folder = Path(tempfile.mkdtemp(prefix="jobmond-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


async def test_private_from_birth_and_gone_after(path):
    before = os.umask(0)
    try:
        async with Served(Scene(), path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert not path.exists()


def test_the_mode_is_right_before_anything_else_happens(path, monkeypatch):
    seen = []
    bound = socket.socket.listen
    monkeypatch.setattr(
        socket.socket,
        "listen",
        lambda self, n: (seen.append(stat.S_IMODE(path.stat().st_mode)), bound(self, n))[1],
    )
    listen(path).close()
    assert seen == [0o600]


def test_a_socket_group_gets_in(path):
    listener = listen(path, gid=os.getegid())
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert path.stat().st_gid == os.getegid()
    listener.close()


def test_a_missing_folder_is_made_private(tmp_path):
    path = tmp_path / "a" / "b" / "socket"
    listen(path).close()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_dead_socket_is_replaced(path):
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dead.bind(str(path))
    dead.close()
    async with Served(Scene(), path) as served:
        assert (await served.ask("GET", "/v1/health"))[0] == 200


async def test_a_second_daemon_is_refused_and_the_first_named(path):
    async with Served(Scene(), path) as first:
        with pytest.raises(Refused, match=f"process {os.getpid()} of .* answers at"):
            await ApiServer(Scene().desk(), path).start()
        assert (await first.ask("GET", "/v1/health"))[0] == 200


def test_two_daemons_that_start_at_once(path):
    import fcntl

    folder = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with pytest.raises(Refused, match="just starting"):
        listen(path)
    os.close(folder)
    listen(path).close()


def test_a_file_that_is_no_socket_is_left_alone(path):
    path.write_text("precious")
    with pytest.raises(ConfigError, match="no socket and is left alone"):
        listen(path)
    assert path.read_text() == "precious"


def test_a_link_is_left_alone(path, tmp_path):
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="left alone"):
        listen(path)


def test_impossible_paths(tmp_path):
    with pytest.raises(ConfigError, match="longer than 107 bytes"):
        listen(tmp_path / ("x" * 108))
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot make the socket"):
        listen(tmp_path / "file" / "socket")


def test_a_name_taken_over_by_another_is_not_removed(path):
    listener = listen(path)
    path.unlink()
    other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    other.bind(str(path))
    listener.close()
    assert path.exists()
    other.close()


def test_the_kernel_names_the_peer():
    one, two = socket.socketpair(socket.AF_UNIX)
    peer = peer_of(one)
    assert (peer.uid, peer.gid, peer.pid) == (os.geteuid(), os.getegid(), os.getpid())
    assert peer.groups == frozenset(os.getgroups())
    one.close()
    two.close()


AS_NOBODY = """
import http.client, os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
c = http.client.HTTPConnection("jobmond", timeout=30)
c.sock = socket.socket(socket.AF_UNIX)
try:
    c.sock.connect(sys.argv[1])
except PermissionError:
    print("no way in"); sys.exit()
c.request(sys.argv[2], sys.argv[3])
r = c.getresponse()
print(r.status, r.read().decode())
"""


async def as_nobody(path, method="GET", target="/v1/status"):
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-I", "-c", AS_NOBODY, str(path), method, target],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd="/",
    )
    return done.stdout.strip()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_gets_nothing(open_folder):
    path = open_folder / "socket"
    scene = Scene()
    scene.store.rows = [job()]
    async with Served(scene, path):
        assert await as_nobody(path) == "no way in"
        path.chmod(0o666)  # somebody was careless: the peer is still checked
        for method, target in (
            ("GET", "/v1/status"),
            ("GET", "/v1/health"),
            ("DELETE", "/v1/job?job=4711"),
        ):
            said = await as_nobody(path, method, target)
            assert said.startswith("403 "), said
            assert json.loads(said[4:])["exit_code"] == 1
    assert scene.store.rows[0].tracked


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_a_member_reads_and_changes_only_their_own(open_folder):
    path = open_folder / "socket"
    scene = Scene(rights=Rights(os.geteuid(), socket_gid=NOBODY))
    theirs = job("leonardo/1", id=2)
    theirs = theirs.__class__(
        **{f: getattr(theirs, f) for f in theirs.__dataclass_fields__}
        | {"choices": theirs.choices.__class__(owner="nobody", owner_uid=NOBODY)}
    )
    scene.store.rows = [job(), theirs]
    server = ApiServer(scene.desk(), path, gid=NOBODY)
    await server.start()
    try:
        assert (await as_nobody(path)).startswith("200 ")
        assert (await as_nobody(path, "DELETE", "/v1/job?job=4711")).startswith("403 ")
        assert (await as_nobody(path, "DELETE", "/v1/job?job=leonardo/1")).startswith("200 ")
    finally:
        await server.stop()
    assert [j.tracked for j in scene.store.rows] == [True, False]
    assert scene.store.audited[0][0] == NOBODY
