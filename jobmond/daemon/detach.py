"""Into the background: the one who started the daemon waits until it answers, then is free."""

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobmond.errors import JobmondError

_READY = "ready"


class DidNotStart(JobmondError):
    """The daemon in the background ended before it answered."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class Background:
    """The process that goes on, and the way back to the one that waits."""

    _pipe: int

    def ready(self) -> None:
        """The daemon answers."""
        self._tell(_READY)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Whatever ends the daemon before it answers is told to the one who waits."""
        try:
            yield
        except JobmondError as wrong:
            self._tell(f"{wrong.exit_code} {wrong}")
            raise

    def _tell(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # nobody waits any more
            os.write(self._pipe, f"{text}\n".encode("utf-8", "backslashreplace"))


def into_background(journal: Path) -> Background | None:
    """Go on in a process of its own session whose journal is the file `journal`.

    Answers None to whoever started it, once the daemon answers. To be called before anything
    else was begun in this process.

    Raises:
        DidNotStart: with what the daemon said, and the exit code it ended with.
        OSError: the journal cannot be written.
    """
    journal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    out = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.close(writer)
        os.close(out)
        _wait(child, reader, journal)
        return None
    os.setsid()
    if os.fork():
        os._exit(0)  # so that the daemon never gets a terminal again
    silence = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for source, target in ((silence, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    os.close(reader)
    return Background(writer)


def _wait(child: int, reader: int, journal: Path) -> None:
    with open(reader, encoding="utf-8") as pipe:
        said = pipe.readline().strip()
    os.waitpid(child, 0)
    if said == _READY:
        return
    code, _, message = said.partition(" ")
    if not message:
        raise DidNotStart(f"it ended before it answered; its journal is {journal}", 1)
    raise DidNotStart(message, int(code))
