"""Programs of this machine that run a framed script, or answer a question in a few lines."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from jobmond.transports import _frame

_SAID_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Said:
    """What a program had to say; `status` is minus a signal's number, None where it was ended
    because it said too much."""

    status: int | None
    stdout: bytes
    stderr: bytes


class Intake(Protocol):
    """What becomes of standard output; `_frame.Intake` is one."""

    ended: bool

    @property
    def too_much(self) -> bool: ...

    def feed(self, piece: bytes) -> None: ...


class Shell(asyncio.SubprocessProtocol):
    """Takes what a program writes until its script has ended or there is too much."""

    def __init__(self, intake: Intake, grace_s: float) -> None:
        self._intake = intake
        self._grace_s = grace_s
        self._grace: asyncio.TimerHandle | None = None
        self._open_pipes = {1, 2}
        self._pipes: asyncio.SubprocessTransport | None = None
        self.stderr = bytearray()
        self.exited = asyncio.Event()
        self.settled = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pipes = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._intake.feed(data)
        else:
            self.stderr += data[: _frame.STDERR_MAX_BYTES - len(self.stderr)]
        if self._intake.too_much:
            self.settled.set()
        elif self._intake.ended and self._grace is None:
            loop = asyncio.get_running_loop()
            self._grace = loop.call_later(self._grace_s, self.settled.set)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open_pipes.discard(fd)
        self._settle()

    def process_exited(self) -> None:
        self.exited.set()
        self._settle()

    def _settle(self) -> None:
        if self.exited.is_set() and not self._open_pipes:
            self.settled.set()

    @property
    def status(self) -> int | None:
        """The exit status, or minus the number of a signal; None while the program runs."""
        return self._pipes.get_returncode() if self._pipes is not None else None

    def write(self, frame: bytes) -> None:
        """Write to standard input, which stays open: its end would end the script."""
        pipe = self._pipes.get_pipe_transport(0) if self._pipes is not None else None
        if isinstance(pipe, asyncio.WriteTransport):
            pipe.write(frame)

    def forget(self) -> None:
        """Leave no timer behind."""
        if self._grace is not None:
            self._grace.cancel()


@contextlib.asynccontextmanager
async def running(
    command: Sequence[str],
    intake: Intake,
    *,
    grace_s: float,
    stdin: int = subprocess.PIPE,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Shell]:
    """A program in a process group of its own, gone with everything in it on leaving.

    `grace_s` bounds the waits that cannot be allowed to last: for output that an escaped process
    holds open after the script's end, and for a killed process that the kernel keeps (a dead file
    server). `env` is its whole environment, None for ours.

    Raises:
        OSError: the program cannot be started.
    """
    pipes, shell = await asyncio.get_running_loop().subprocess_exec(
        lambda: Shell(intake, grace_s), *command, stdin=stdin, start_new_session=True, env=env
    )
    try:
        yield shell
    finally:
        if not shell.exited.is_set():
            # While the leader is not reaped its number, and so the group's, is still its own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pipes.get_pid(), signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await shell.exited.wait()
        shell.forget()
        pipes.close()


async def said(
    command: Sequence[str],
    *,
    timeout_s: float,
    grace_s: float,
    env: Mapping[str, str] | None = None,
) -> Said:
    """What a program says that reads nothing; it has no terminal to ask anybody at.

    Raises:
        OSError: the program cannot be started.
        TimeoutError: it did not end in time, and was ended.
    """
    whole = _Whole()
    async with (
        asyncio.timeout(timeout_s),
        running(command, whole, grace_s=grace_s, stdin=subprocess.DEVNULL, env=env) as program,
    ):
        await program.settled.wait()
    return Said(program.status, bytes(whole.held), bytes(program.stderr))


class _Whole:
    """Takes all there is, until it is too much."""

    ended = False

    def __init__(self) -> None:
        self.held = bytearray()

    @property
    def too_much(self) -> bool:
        return len(self.held) > _SAID_MAX_BYTES

    def feed(self, piece: bytes) -> None:
        self.held += piece
