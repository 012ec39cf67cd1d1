"""A Unix socket that is private from birth, replaces a dead one and never a living one."""

import errno
import fcntl
import os
import pwd
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobmond.desk.peer import Peer, user_name
from jobmond.errors import ConfigError, Refused

_BACKLOG = 128
_PATH_BYTES = 107  # what `struct sockaddr_un` holds, without its end mark
_SO_PEERGROUPS = 59  # not in the socket module
_GROUPS_BYTES = 1024  # the most that Python's getsockopt takes: 256 groups
_KNOCK_S = 2.0


@dataclass(slots=True)
class Listener:
    """A listening socket and the file that is its name."""

    socket: socket.socket
    path: Path
    inode: tuple[int, int]

    def close(self) -> None:
        """Stop listening and remove the name, where it is still ours."""
        self.socket.close()
        if _inode(self.path) == self.inode:
            self.path.unlink(missing_ok=True)


def listen(path: Path, *, gid: int | None = None) -> Listener:
    """Bind and listen: mode 0600, with `gid` 0660 for that group.

    A missing folder is made, for its owner only. A socket that nobody answers is replaced.

    Raises:
        Refused: a living daemon answers there, or another user's socket stands in the way.
        ConfigError: the path cannot be a socket (too long, no folder, another kind of file).
    """
    if len(os.fsencode(path)) > _PATH_BYTES:
        raise ConfigError(f"socket path is longer than {_PATH_BYTES} bytes: {path}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(path.parent):
            _clear(path)
            return _bound(path, gid)
    except OSError as failure:
        raise ConfigError(f"cannot make the socket {path}: {failure.strerror}") from failure


def peer_of(connection: socket.socket) -> Peer:
    """Who is at the other end of a connected Unix socket, as the kernel says."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("=iII"))
    pid, uid, gid = struct.unpack("=iII", raw)
    return Peer(uid=uid, gid=gid, pid=pid, groups=_groups(connection, uid, gid))


def _groups(connection: socket.socket, uid: int, gid: int) -> frozenset[int]:
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _GROUPS_BYTES)
    except OSError:  # a kernel before 4.13, or more groups than that: what the host's lists say
        return _listed_groups(uid, gid)
    return frozenset(struct.unpack(f"={len(raw) // 4}I", raw))


def _listed_groups(uid: int, gid: int) -> frozenset[int]:
    try:
        return frozenset(os.getgrouplist(pwd.getpwuid(uid).pw_name, gid))
    except (KeyError, OSError):
        return frozenset()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keeps two daemons from both finding a dead socket and removing each other's new one."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            raise Refused(f"another jobmond is just starting in {folder}") from taken
        yield
    finally:
        os.close(handle)


def _clear(path: Path) -> None:
    """Remove a dead socket."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise ConfigError(f"{path} is no socket and is left alone: choose another path")
    holder = _holder(path)
    if holder is not None:
        raise Refused(f"a jobmond is running already: {holder} answers at {path}")
    if found.st_uid not in (os.geteuid(), 0) and os.geteuid() != 0:
        raise Refused(f"{path} belongs to {user_name(found.st_uid)} and is left alone")
    path.unlink()


def _holder(path: Path) -> str | None:
    """Who listens at `path`; None where nobody does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
        knock.settimeout(_KNOCK_S)
        try:
            knock.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        except PermissionError:
            return f"a process of {user_name(path.lstat().st_uid)}"
        except (BlockingIOError, TimeoutError):
            return "a process that is too busy to say who it is"
        peer = peer_of(knock)
        return f"process {peer.pid} of {user_name(peer.uid)}"


def _bound(path: Path, gid: int | None) -> Listener:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # The umask is the only way to a private mode with no moment of a wider one.
        before = os.umask(0o177)
        try:
            server.bind(os.fspath(path))
        finally:
            os.umask(before)
        if gid is not None:
            os.chown(path, -1, gid)
            path.chmod(0o660)
        server.listen(_BACKLOG)
        server.setblocking(False)
    except OSError as failure:
        server.close()
        if failure.errno == errno.EADDRINUSE:
            raise Refused(f"another jobmond has just taken {path}") from failure
        raise
    inode = _inode(path)
    if inode is None:
        server.close()
        raise Refused(f"{path} was removed while it was made")
    return Listener(server, path, inode)


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
