"""Registry files watched: stat'ed often, read when they changed."""

import asyncio
import contextlib
import errno
import glob
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from jobmond.analysis.activejobs import Entry, MalformedRegistry, parsed
from jobmond.analysis.visible import visible
from jobmond.app import App
from jobmond.daemon.places import names_of, no_name
from jobmond.desk.desk import Desk
from jobmond.desk.listed import Listed, all_listed
from jobmond.desk.peer import user_name
from jobmond.desk.registered import File, Taken, Taker, vanished
from jobmond.errors import ConfigError
from jobmond.settings.clusters import SlurmCluster
from jobmond.sinks.registry_file import UnusableFile, read_registry, text_of

journal = structlog.get_logger("jobmond.registry")

LOOK_S = 60.0
# A file that is younger than this and cannot be understood is probably being written.
UNFINISHED_S = 2.0

_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})

Mark = tuple[int, ...]


@dataclass(slots=True)
class _Watched:
    """What is known of one file. `problem` is what was last said to be wrong with it."""

    mark: Mark | None = None
    again: bool = True
    problem: str | None = None
    errors: frozenset[str] = frozenset()
    taken: Taken = field(default_factory=Taken)
    entries: Sequence[Entry] = ()


class Registries:
    """Makes what other programs write into registry files true, and says what is wrong there."""

    def __init__(self, app: App, desk: Desk) -> None:
        self._app, self._desk = app, desk
        self._files: dict[str, _Watched] = {}
        self._lock = asyncio.Lock()
        self._looked_s: float | None = None
        self._tables: Mapping[str, Any] = {}

    @property
    def problems(self) -> list[str]:
        """What is wrong with files and entries, one line each."""
        return [
            line
            for file in self._files.values()
            for line in ([file.problem] if file.problem else sorted(file.errors))
        ]

    def file(self, path: str) -> tuple[Sequence[Entry], Taken, str | None]:
        """The entries of a watched file, what came of them, and what is wrong with it."""
        known = self._files.get(path) or _Watched(problem=f"{path} is not watched")
        return known.entries, known.taken, known.problem

    async def usable(self, path: str) -> None:
        """Check that a file can be watched, as far as that can be seen without watching it.

        Raises:
            ConfigError: it is none, or malformed.
        """
        try:
            raw, _ = await asyncio.to_thread(read_registry, Path(path))
            parsed(text_of(raw))
        except (MalformedRegistry, UnusableFile) as error:
            raise ConfigError(f"{path}: {error}") from error
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from error

    async def look_around(self) -> None:
        """`look` where the last one is a minute ago, or something was left open by it."""
        now_s = self._app.clock.monotonic()
        if self._lock.locked():
            return  # one look at a time, also where a file system does not answer
        due = self._looked_s is None or now_s - self._looked_s >= LOOK_S
        if due or any(file.again for file in self._files.values()):
            await self.look()

    async def look(self) -> None:
        """Stat every file, read what changed, track what is new, and ask for sweeps of it."""
        async with self._lock:
            self._looked_s = self._app.clock.monotonic()
            taken = await self._take_all()
        started = [ref for one in taken for ref in one.started]
        if any(one.ended for one in taken):
            self._desk.changed()
        if any(one.owed for one in taken):
            await self._app.deliver()
        await self._desk.swept_soon(started)

    async def _take_all(self) -> list[Taken]:
        patterns = [*self._app.parts.settings.registry_files]
        added = await self._app.writer.call(self._app.store.registries.files)
        patterns += [glob.escape(one.path) for one in added]
        if not patterns and not self._files:
            return []
        marks = await asyncio.to_thread(_marks, patterns)
        await self._forget(set(self._files) - set(marks))
        for path in [path for path, mark in marks.items() if mark is None]:
            await self._create(path)
        self._app.registry_files = {*marks}
        if self._tables != self._app.parts.tables:  # other clusters, other hosts: other meanings
            self._tables = dict(self._app.parts.tables)
            for file in self._files.values():
                file.again = True
        taken = []
        for path, mark in marks.items():
            known = self._files.setdefault(path, _Watched())
            if mark is not None and (known.again or known.taken.refused or mark != known.mark):
                taken.append(await self._take(path, mark, known))
        return taken

    async def _forget(self, gone: Iterable[str]) -> None:
        for path in sorted(gone):
            del self._files[path]
            await self._vanished(path)

    async def _create(self, path: str) -> None:
        """A configured file that does not exist, where its folder does."""
        await self._vanished(path)
        problem = await asyncio.to_thread(_created, Path(path))
        known = self._files.setdefault(path, _Watched())
        known.mark, known.again = None, False
        if problem:
            self._say(known, problem)

    async def _vanished(self, path: str) -> None:
        now = self._app.clock.now()
        left = await self._app.writer.call(vanished, self._app.store, path, now)
        if left:
            said = "registry file is gone, or not watched any more; its jobs stay tracked"
            journal.warning(said, file=visible(path), jobs=left, remedy="jobmonctl rm JOB")

    async def _take(self, path: str, mark: Mark, known: _Watched) -> Taken:
        known.again = True
        try:
            raw, about = await asyncio.to_thread(read_registry, Path(path))
            known.entries = parsed(text_of(raw))
        except MalformedRegistry as error:
            age_s = self._app.clock.now().timestamp() - mark[0] / 1e9
            if not 0 <= age_s < UNFINISHED_S:
                self._say(known, f"{path}: {error}; the file is left as it is", mark)
            return Taken()
        except UnusableFile as error:
            self._say(known, str(error), mark)
            return Taken()
        except OSError as error:
            self._say(known, f"{path}: {error.strerror}", mark)
            return Taken()
        listed = await asyncio.to_thread(self._listed, known.entries)
        owner = await asyncio.to_thread(user_name, about.st_uid)
        taken: Taken = await self._app.writer.call(
            self._taker().take, File(path, about.st_uid, owner, listed)
        )
        known.mark, known.problem = mark, None
        known.taken, known.again = taken, taken.unsettled
        self._say_errors(path, known, taken)
        return taken

    def _taker(self) -> Taker:
        clusters = self._app.clusters
        return Taker(
            store=self._desk.store,
            classify=self._desk.classify,
            rights=self._desk.rights,
            discovers=lambda name: name in clusters and clusters[name].discovers,
            now=self._app.clock.now(),
        )

    def _listed(self, entries: Sequence[Entry]) -> list[Listed]:
        return listed_of(entries, self._app.parts.tables, self._desk)

    def _say(self, known: _Watched, problem: str, mark: Mark | None = None) -> None:
        """Once, until the file can be read again."""
        if problem != known.problem:
            journal.error("registry file not read", error=visible(problem))
        known.mark, known.again, known.problem = mark, False, problem

    def _say_errors(self, path: str, known: _Watched, taken: Taken) -> None:
        errors = frozenset(f"{path}: {error}" for error in taken.errors.values())
        for error in sorted(errors - known.errors):
            journal.error("registry entry not taken", error=visible(error))
        known.errors = errors


def listed_of(entries: Sequence[Entry], tables: Mapping[str, Any], desk: Desk) -> list[Listed]:
    """What the entries of a registry mean to these clusters. Blocks: reads ssh_config."""
    named = [t for t in tables.values() if isinstance(t, SlurmCluster) and t.transport != "local"]
    real: Callable[[str, Path | None], str | None] = no_name
    if named:
        from jobmond.transports.ssh.aliases import real_name  # brings asyncssh

        real = real_name
    files = {table.ssh_config_file for table in named}
    clusters = [c for c in desk.clusters() if c.name in tables]

    def one_name(host: str) -> str | None:
        found = (real(host, file) for file in sorted(files, key=str))
        return next((name for name in found if name and name != host), None)

    return all_listed(
        entries,
        clusters,
        names_of(tables, real),
        real_name=one_name,
        validate_id=partial(_valid, desk),
    )


def _valid(desk: Desk, cluster: str, kind: str, native_id: str) -> str | None:
    return desk.validate_id(cluster, kind, native_id)


def _marks(patterns: Sequence[str]) -> dict[str, Mark | None]:
    """Every file that the patterns name, with what changes when it does; None: to be created."""
    found: dict[str, Mark | None] = {}
    for pattern in patterns:
        magic = glob.has_magic(pattern)
        paths = sorted(glob.glob(pattern)) if magic else [pattern]  # noqa: PTH207 # absolute
        for path in paths:
            try:
                path.encode()
                about = Path(path).stat()
            except (FileNotFoundError, NotADirectoryError):
                if not magic and Path(path).parent.is_dir():
                    found.setdefault(path, None)
            except (OSError, UnicodeEncodeError):
                found.setdefault(path, (0,))  # reading it says what is wrong
            else:
                times = about.st_mtime_ns, about.st_ctime_ns
                found[path] = (*times, about.st_size, about.st_ino, about.st_dev)
    return found


def _created(path: Path) -> str | None:
    """Make an empty registry, its folder's owner's; why not, where that fails.

    Nobody finds a file there that is not whole yet.
    """
    if path.is_symlink():
        return f"{path} is a link to nothing"
    draft = path.with_name(f".{path.name}.jobmond.new")
    try:
        draft.unlink(missing_ok=True)
        _write_empty(draft)
        try:
            os.link(draft, path)
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            _write_empty(path)
    except FileExistsError:
        return None
    except OSError as error:
        return f"{path} cannot be created: {error.strerror}"
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return None


def _write_empty(path: Path) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write("[]\n")
        folder = path.parent.stat()
        if os.geteuid() == 0 and folder.st_uid != 0:
            os.fchown(file.fileno(), folder.st_uid, folder.st_gid)
