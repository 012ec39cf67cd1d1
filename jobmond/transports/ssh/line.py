"""A connection that is up, and the sessions on it."""

import asyncio
import contextlib

import asyncssh

from jobmond.analysis.visible import visible
from jobmond.errors import TransientTransportError
from jobmond.ports import Answer
from jobmond.transports import _frame

_TIMED_OUT = 124  # exit status of `timeout`


class Line:
    """The connection to a host and those it goes through, the nearest first."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.connections: list[asyncssh.SSHClientConnection] = []
        self._given_up = False

    @property
    def alive(self) -> bool:
        """Whether a further script can be tried on it; a frozen one looks alive."""
        return not self._given_up and not any(c.is_closed() for c in self.connections)

    async def session(self, intake: _frame.Intake, command: str, grace_s: float) -> "Channel":
        """A shell at the far side, without terminal or forwarding, whatever ssh_config says."""
        channel = Channel(intake, grace_s)
        await self.connections[-1].create_session(
            lambda: channel, command, request_pty=False, x11_forwarding=False, encoding=None
        )
        return channel

    def abort(self) -> None:
        """Drop all connections at once, without a word to the far side."""
        self._given_up = True
        for connection in reversed(self.connections):
            connection.abort()

    async def close(self, grace_s: float) -> None:
        """Take leave of the far side, which has `grace_s` for it."""
        for connection in reversed(self.connections):
            connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                for connection in reversed(self.connections):
                    await connection.wait_closed()
        self.abort()


class Channel(asyncssh.SSHClientSession[bytes]):
    """Takes what the far shell writes until the script has ended or there is too much."""

    chan: asyncssh.SSHClientChannel[bytes]

    def __init__(self, intake: _frame.Intake, grace_s: float) -> None:
        self._intake = intake
        self._grace_s = grace_s
        self._grace: asyncio.TimerHandle | None = None
        self._status: int | str | None = None  # exit status, or the name of a signal
        self._stderr = bytearray()
        self._lost: Exception | None = None
        self.settled = asyncio.Event()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self.chan = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if datatype is None:
            self._intake.feed(data)
        else:
            self._stderr += data[: _frame.STDERR_MAX_BYTES - len(self._stderr)]
        if self._intake.too_much:
            self.settled.set()
        elif self._intake.ended and self._grace is None:
            # Something the script left behind may hold the output open.
            loop = asyncio.get_running_loop()
            self._grace = loop.call_later(self._grace_s, self.settled.set)

    def eof_received(self) -> bool:
        return True  # our own side stays open: its end would end the script

    def exit_status_received(self, status: int) -> None:
        self._status = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self._status = signal

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = exc
        self.settled.set()

    def end(self) -> None:
        """Close the channel; the far side then ends what still runs."""
        if self._grace is not None:
            self._grace.cancel()
        self.chan.abort()

    def answer(self, where: str, max_bytes: int) -> Answer:
        if self._intake.too_much:
            raise TransientTransportError(f"{where}: more than {max_bytes} bytes of output")
        answer = self._intake.answer()
        if self._status is None:
            raise TransientTransportError(
                f"{where}: the connection was lost before the answer was whole"
            ) from self._lost
        if answer is None:
            raise TransientTransportError(
                f"{where}: the script did not run to its end ({_ending(self._status)})"
                f"{_frame.last_words(bytes(self._stderr), self._intake.banner)}"
            )
        code, stdout = answer
        return Answer(code, stdout, bytes(self._stderr))


def _ending(status: int | str) -> str:
    if isinstance(status, str):
        return f"signal {visible(status)}"
    return "out of time at the far side" if status == _TIMED_OUT else f"exit {status}"
