"""News appended to a file: one JSON object a line.

The file grows without limit; it may be rotated at any time (`rename` and `copytruncate` of
logrotate both work, no signal is needed: it is opened anew for every batch).
"""

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jobmond.analysis.outgoing import encoded, outgoing
from jobmond.errors import SinkRefusal, SinkRetry
from jobmond.model.outcome import Delivery
from jobmond.registry import sinks

_REMEMBERED = 100_000


@sinks.plugin("file")
class FileSink:
    """Appends each news exactly once.

    `path` is the file, created with mode 0600. `tail_bytes` is how much of its end (and of
    `path.1`, where a rotation may just have put it) is searched for keys already written, once
    after a start.
    """

    def __init__(self, *, path: Path, tail_bytes: int = 4 * 1024 * 1024) -> None:
        self._path = Path(path)
        self._tail_bytes = tail_bytes
        self._written: dict[str, None] | None = None

    async def send(self, deliveries: Sequence[Delivery]) -> None:
        """Appends what is not there yet, in one write, and waits until it is on disk.

        Raises:
            SinkRetry: nothing was written.
            SinkRefusal: a body is not JSON.
        """
        await asyncio.to_thread(self._send, deliveries)

    def _send(self, deliveries: Sequence[Delivery]) -> None:
        lines = {delivery.key: _line(delivery) for delivery in deliveries}
        try:
            with self._opened() as file:
                self._append(file, lines)
        except OSError as error:
            raise SinkRetry(f"{self._path}: {_reason(error)}; no news was written") from error

    def _append(self, file: int, lines: Mapping[str, bytes]) -> None:
        size = os.fstat(file).st_size
        tail = os.pread(file, self._tail_bytes, max(0, size - self._tail_bytes))
        if self._written is None:
            self._written = dict.fromkeys((*self._rotated_keys(), *_keys(tail)))
        new = {key: line for key, line in lines.items() if key not in self._written}
        # A line that a crash or a full disk left unfinished must not swallow the next one.
        data = (b"\n" if tail and not tail.endswith(b"\n") else b"") + b"".join(new.values())
        if data:
            _write(file, data, size)
        self._written.update(dict.fromkeys(new))
        while len(self._written) > _REMEMBERED:
            del self._written[next(iter(self._written))]

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        born = not self._path.exists()
        # O_NONBLOCK: a FIFO without a reader would block for ever.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        file = os.open(self._path, flags, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            _lock(file)
            yield file
        finally:
            os.close(file)
        if born:
            _sync_folder(self._path.parent)

    def _rotated_keys(self) -> list[str]:
        rotated = self._path.with_name(self._path.name + ".1")
        try:
            with rotated.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - self._tail_bytes))
                return _keys(file.read(self._tail_bytes))
        except OSError:
            return []  # most often there is none; a key missed here is a line twice, not a loss


def _line(delivery: Delivery) -> bytes:
    try:
        return encoded(outgoing(delivery.body, key=delivery.key)) + b"\n"
    except (TypeError, ValueError) as error:
        raise SinkRefusal(f"news {delivery.key} is not JSON: {error}") from error


def _keys(tail: bytes) -> list[str]:
    """The keys of all whole lines; a torn first line and foreign lines hold none."""
    found = []
    for line in tail.split(b"\n"):
        try:
            body = json.loads(line)
        except ValueError:
            continue
        if isinstance(body, dict) and isinstance(body.get("key"), str):
            found.append(body["key"])
    return found


def _write(file: int, data: bytes, size: int) -> None:
    """Appends all of `data`, or puts the file back to `size`."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(file, size)
        raise


def _lock(file: int) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise OSError(errno.EAGAIN, "another process is writing to it") from error
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
            raise
        # A file system without locks: appending in one write is what is left.


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the disk is full; free some space"
    if error.errno == errno.EDQUOT:
        return "the disk quota is used up; free some space"
    if error.errno == errno.ENOENT:
        return "the folder does not exist; create it"
    if error.errno == errno.EISDIR:
        return "is a folder; give the path of a file"
    return error.strerror or str(error)
