"""Scripts on this machine."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from typing import cast

from jobmond.errors import TransientTransportError
from jobmond.ports import Answer
from jobmond.registry import transports
from jobmond.transports import _frame


@transports.plugin("local")
class LocalTransport:
    """Runs scripts with this machine's own `/bin/sh`, each in a process group that dies with it.

    `grace_s` bounds the waits that cannot be allowed to last: for output that an escaped process
    holds open after the script's end, and for a killed process that the kernel keeps (a dead file
    server).
    """

    def __init__(self, *, grace_s: float = 1.0) -> None:
        self._grace_s = grace_s

    @property
    def logins(self) -> int:
        """Always 0: nobody logs in."""
        return 0

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        """Run `script`; see `jobmond.ports.Transport`."""
        nonce = _frame.nonce()
        frame = _frame.wrap(script, nonce)
        intake = _frame.Intake(nonce, max_bytes=max_bytes)
        async with self._shell(intake) as (pipes, shell):
            stdin = cast("asyncio.WriteTransport", pipes.get_pipe_transport(0))
            stdin.write(frame)
            try:
                async with asyncio.timeout(timeout_s):
                    await shell.settled.wait()
            except TimeoutError as late:
                raise TransientTransportError(
                    f"this host: no whole answer within {timeout_s:g} s"
                ) from late
        return _answer(intake, shell, pipes, max_bytes)

    async def close(self) -> None:
        """Nothing is held open."""

    @contextlib.asynccontextmanager
    async def _shell(
        self, intake: _frame.Intake
    ) -> AsyncIterator[tuple[asyncio.SubprocessTransport, "_Shell"]]:
        """A shell of its own process group, gone with everything in it on leaving."""
        try:
            pipes, shell = await asyncio.get_running_loop().subprocess_exec(
                lambda: _Shell(intake, self._grace_s),
                "/bin/sh",
                "-s",
                _frame.OWN_GROUP,
                start_new_session=True,
            )
        except OSError as failure:
            raise TransientTransportError(
                f"this host: cannot start /bin/sh: {failure.strerror}"
            ) from failure
        try:
            yield pipes, shell
        finally:
            await self._end(pipes, shell)

    async def _end(self, pipes: asyncio.SubprocessTransport, shell: "_Shell") -> None:
        if not shell.exited.is_set():
            # While the leader is not reaped its number, and so the group's, is still its own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pipes.get_pid(), signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._grace_s):
                    await shell.exited.wait()
        shell.forget()
        pipes.close()


class _Shell(asyncio.SubprocessProtocol):
    """Takes what a shell writes until the script has ended or there is too much."""

    def __init__(self, intake: _frame.Intake, grace_s: float) -> None:
        self._intake = intake
        self._grace_s = grace_s
        self._grace: asyncio.TimerHandle | None = None
        self._open_pipes = {1, 2}
        self.stderr = bytearray()
        self.exited = asyncio.Event()
        self.settled = asyncio.Event()

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

    def forget(self) -> None:
        """Leave no timer behind."""
        if self._grace is not None:
            self._grace.cancel()


def _answer(
    intake: _frame.Intake, shell: _Shell, pipes: asyncio.SubprocessTransport, max_bytes: int
) -> Answer:
    if intake.too_much:
        raise TransientTransportError(f"this host: more than {max_bytes} bytes of output")
    answer = intake.answer()
    if answer is None:
        raise TransientTransportError(
            f"this host: the shell ended ({_frame.ending(pipes.get_returncode())}) before the "
            f"script did{_frame.last_words(bytes(shell.stderr), intake.banner)}"
        )
    code, stdout = answer
    return Answer(code, stdout, bytes(shell.stderr))
