"""`active_jobs.json` written back: what each entry's job is now, and without those that ended."""

import asyncio
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from jobmond.analysis.activejobs import MalformedRegistry, parsed, rewritten
from jobmond.errors import SinkRefusal, SinkRetry
from jobmond.model.outcome import Delivery
from jobmond.ports import RegistryWords
from jobmond.registry import sinks

LARGEST_BYTES = 4 * 2**20
_TRIES = 10
_LOCK_TRIES = 60
_PAUSE_S = 0.05

Pause = Callable[[float], None]


class UnusableFile(OSError):
    """Nothing that a registry can be read from; one line says why."""


@sinks.plugin("registry-file")
class RegistryFileSink:
    """Makes one registry file say what `words` say at that moment.

    A delivery only means that there may be something to write. No configuration names this sink:
    its files are those that are watched.
    """

    internal = True

    def __init__(
        self, registry_words: RegistryWords, /, *, path: Path, patience_s: float = 20.0
    ) -> None:
        self._words = registry_words
        self._path = path
        self._patience_s = patience_s
        self._writing: asyncio.Task[dict[str, str | None]] | None = None

    async def send(self, deliveries: Sequence[Delivery]) -> None:
        """Writes the file once, whatever the number of deliveries.

        A file system that does not answer is not waited for; the write that hangs there is the
        only one until it ends. A file that is gone or malformed is left alone: once it can be
        read again, whoever watches it asks for the write anew.

        Raises:
            SinkRetry: it cannot be written now.
            SinkRefusal: the file is a link to somebody else's.
        """
        del deliveries
        if self._writing is not None:
            await self._ended(self._writing)  # what it wrote is what was wanted then
        wanted = await self._words.wanted(str(self._path))
        self._writing = asyncio.create_task(asyncio.to_thread(make_stand, self._path, wanted))
        await self._ended(self._writing)

    async def _ended(self, writing: "asyncio.Task[dict[str, str | None]]") -> None:
        await asyncio.wait([writing], timeout=self._patience_s)
        if not writing.done():
            raise SinkRetry(f"{self._path}: its file system does not answer")
        self._writing = None
        await self._words.stood(str(self._path), writing.result())


def make_stand(
    path: Path, changes: Mapping[str, str | None], *, pause: Pause = time.sleep
) -> dict[str, str | None]:
    """Change the file, under its lock and as a whole; the changes that its entries took.

    Raises:
        SinkRetry, SinkRefusal: as `send`.
    """
    try:
        target = real_path(path)
        with _locked(path, target.stat(), pause):
            return _rewrite(target, changes, pause)
    except (FileNotFoundError, MalformedRegistry):
        return {}
    except UnusableFile as error:
        raise SinkRefusal(str(error)) from error
    except OSError as error:
        where = error.filename or path
        raise SinkRetry(f"{where}: {error.strerror or error}; {path} is not written") from error


def real_path(path: Path) -> Path:
    """Where `path` leads: the file there is replaced, never the link.

    Raises:
        UnusableFile: the link leads to a file of somebody else's.
    """
    target = Path(os.path.realpath(path))
    if path.is_symlink() and path.lstat().st_uid != target.stat().st_uid:
        raise UnusableFile(f"{path} is a link to another user's file")
    return target


def read_registry(path: Path) -> tuple[bytes, os.stat_result]:
    """The bytes of a registry file and what the file system says about it.

    Raises:
        FileNotFoundError: there is none.
        UnusableFile: it is no regular file, too large, or another user's behind a link.
        OSError: it cannot be read.
    """
    with _opened(real_path(path)) as file:
        return file.read(), os.fstat(file.fileno())


def text_of(raw: bytes) -> str:
    """Raises MalformedRegistry: the bytes are no text."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise MalformedRegistry(f"not UTF-8 in line {line}") from error


def _opened(path: Path) -> BinaryIO:
    # A pipe must not hold up whoever opens it.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0)
    known = os.fstat(file.fileno())
    if stat.S_ISREG(known.st_mode) and known.st_size <= LARGEST_BYTES:
        return file
    file.close()
    regular = stat.S_ISREG(known.st_mode)
    why = f"larger than {LARGEST_BYTES} bytes" if regular else "no regular file"
    raise UnusableFile(f"{path} is {why}")


def _rewrite(
    target: Path, changes: Mapping[str, str | None], pause: Pause
) -> dict[str, str | None]:
    base: bytes | None = None
    for _ in range(_TRIES):
        with _opened(target) as file:
            there = file.read()
            text = text_of(there if base is None else base)
            new = rewritten(text, changes).encode("utf-8")
            keys = {entry.key for entry in parsed(text)}
            applied = {key: word for key, word in changes.items() if key in keys}
            if new == there:
                return applied
            draft = _draft(target, new, os.fstat(file.fileno()))
            # Not everybody takes the lock: what came meanwhile goes before ours.
            if target.read_bytes() != there:
                draft.unlink()
                base = None
                continue
            draft.replace(target)
            _sync(target.parent)
            base = _written_meanwhile(file, there, pause)
            if base is None:
                return applied
    raise SinkRetry(f"{target} is being written by another program all the time", after_s=15)


def _written_meanwhile(file: BinaryIO, known: bytes, pause: Pause) -> bytes | None:
    """What somebody wrote into the file that we were just replacing; None where nobody did."""
    for _ in range(_TRIES):
        file.seek(0)
        now = file.read()
        if now == known:
            return None
        try:
            parsed(text_of(now))
        except MalformedRegistry:
            pause(_PAUSE_S)  # in the middle of it
        else:
            return now
    return None


def _draft(target: Path, content: bytes, like: os.stat_result) -> Path:
    """The new content beside `target`, on disk, with the owner and mode of the old."""
    draft = target.with_name(f".{target.name}.jobmond.tmp")
    draft.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            made = os.fstat(file.fileno())
            if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
                os.fchown(file.fileno(), like.st_uid, like.st_gid)
            file.write(content)
            file.flush()
            shutil.copystat(target, draft, follow_symlinks=False)
            os.utime(file.fileno())  # who watches for changes goes by this time
            os.fsync(file.fileno())
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return draft


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _locked(path: Path, like: os.stat_result, pause: Pause) -> Iterator[None]:
    """Holds `FILE.lock`, which stays; whoever may write the file may take it too."""
    lock = path.with_name(path.name + ".lock")
    handle = _taken(lock, like, pause)
    if handle is None:
        raise SinkRetry(f"{lock} is held by another program; {path} is not written", after_s=15)
    try:
        yield
    finally:
        os.close(handle)


def _taken(lock: Path, like: os.stat_result, pause: Pause) -> int | None:
    for _ in range(_LOCK_TRIES):
        handle = _open_lock(lock, like)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            pause(_PAUSE_S)
            continue
        if _is_still(lock, handle):
            return handle
        os.close(handle)
    return None


def _open_lock(lock: Path, like: os.stat_result) -> int:
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(lock, os.O_RDWR | flags)
    except PermissionError:
        return os.open(lock, os.O_RDONLY | flags)
    except FileNotFoundError:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | flags, 0o600)
    made = os.fstat(handle)
    if made.st_uid == os.geteuid():
        os.fchmod(handle, stat.S_IMODE(like.st_mode) & 0o666)
    if made.st_uid != like.st_uid and os.geteuid() == 0:
        os.fchown(handle, like.st_uid, like.st_gid)
    return handle


def _is_still(lock: Path, handle: int) -> bool:
    """Whether what we hold is what the next one will find under the name."""
    try:
        return lock.stat().st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False
