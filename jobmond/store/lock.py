"""One process per database: a lock file beside it that names its holder."""

import contextlib
import errno
import fcntl
import os
import socket
from pathlib import Path
from types import TracebackType

from jobmond.errors import Refused, StoreError

# A network file system that was mounted without them.
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)


class StoreLock:
    """Holds `<database>.lock` until released or until the process ends, however it ends.

    The file stays behind on purpose: removing it would let two processes hold two locks. It is
    beside the database itself, whatever symbolic links lead there: the same for every path.
    """

    def __init__(self, database: Path) -> None:
        self.path = Path(os.path.realpath(database) + ".lock")
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock at once or not at all.

        Raises:
            Refused: another process (or another lock of this one) holds it.
            StoreError: the file cannot be opened or locked.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot open the lock {self.path}: {error.strerror}") from error
        try:
            self._lock(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock up; without effect where it is not held."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> "StoreLock":
        self.take()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(self._taken(os.pread(descriptor, 512, 0))) from None
        except OSError as error:
            fix = "its file system has no locks, set database.url to another one"
            tail = f"; {fix}" if error.errno in _NO_LOCKS else ""
            raise StoreError(f"cannot lock {self.path}: {error.strerror}{tail}") from error
        with contextlib.suppress(OSError):  # a full disk takes the name only, not the lock
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{socket.gethostname()}:{os.getpid()}\n".encode(), 0)

    def _taken(self, content: bytes) -> str:
        host, _, pid = content.decode("ascii", "replace").strip().rpartition(":")
        holder = f"process {pid} on {host}" if host and pid.isdigit() else "another process"
        return f"another jobmond holds the database: {holder} (lock {self.path})"
