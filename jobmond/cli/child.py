"""A process in the foreground: its output passed through and kept, signals handed on."""

import os
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

FORWARDED = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
    }
)
_AWAITED = FORWARDED | {signal.SIGCHLD}
_CHUNK_BYTES = 1 << 16
_DRAIN_S = 2.0  # a grandchild may keep the pipe open for ever; what is in it arrives at once


class Child:
    """A started process. Signals are blocked in this one from the start until `wait` is over, so
    that none can end it before the child's end is known.
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Start `command`.

        Raises:
            OSError: it cannot be run.
        """
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
        pipes = [os.pipe(), os.pipe()]
        actions = [
            (os.POSIX_SPAWN_DUP2, pipes[0][1], 1),
            (os.POSIX_SPAWN_DUP2, pipes[1][1], 2),
        ]
        try:
            self.pid = os.posix_spawnp(
                command[0],
                list(command),
                os.environ,
                file_actions=actions,
                setsigmask=self._mask,
                # Python ignores these two for itself; a program expects their defaults.
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
            )
        except OSError:
            for reader, _ in pipes:
                os.close(reader)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            raise
        finally:
            for _, writer in pipes:
                os.close(writer)
        self._readers = [reader for reader, _ in pipes]
        self._threads: list[threading.Thread] = []

    def pass_through(self, log: Path | None) -> None:
        """Start copying standard output and error to this process's and both to `log`.

        Raises:
            OSError: the log cannot be made; nothing is copied yet.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        kept = os.open(log, flags, 0o600) if log is not None else None
        for source, target in zip(self._readers, (1, 2), strict=True):
            copying = threading.Thread(target=_copy, args=(source, target, kept), daemon=True)
            copying.start()
            self._threads.append(copying)

    def wait(self) -> int:
        """Hand on signals until the process ends; its wait status."""
        while True:
            came = signal.sigwaitinfo(_AWAITED)
            if came.si_signo == signal.SIGCHLD:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    break
            elif came.si_code <= 0:
                # Sent by a process. What the terminal sends has a positive code and went to
                # the whole foreground group, the child included.
                os.kill(self.pid, came.si_signo)
        until = time.monotonic() + _DRAIN_S
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return status

    def release(self) -> None:
        """Let signals act on this process again."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


def _copy(source: int, target: int, kept: int | None) -> None:
    """Until the end of `source`. A target that fails is left out; the process must not notice."""
    targets = [t for t in (target, kept) if t is not None]
    while chunk := os.read(source, _CHUNK_BYTES):
        targets = [t for t in targets if _written(t, chunk)]


def _written(target: int, chunk: bytes) -> bool:
    try:
        while chunk:
            chunk = chunk[os.write(target, chunk) :]
    except OSError:
        return False
    return True
