"""The transport: one kept connection, a few channels at a time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncssh

from jobmond.errors import ConfigError, NeedsPersonError, TransientTransportError
from jobmond.ports import Answer
from jobmond.registry import transports
from jobmond.transports import _frame, _openssh
from jobmond.transports._room import Room
from jobmond.transports.ssh.failures import (
    FAILURES,
    Doorman,
    channel_failure,
    login_failure,
    unusable,
)
from jobmond.transports.ssh.line import Channel, Line
from jobmond.transports.ssh.plan import Plan, Route, plan

asyncssh.set_log_level("WARNING")  # INFO is ten lines a command

_KEEPALIVE_COUNT = 3
_DEEPEST_JUMP = 8


@transports.plugin("ssh")
class SshTransport:
    """Runs scripts over one SSH connection to the first of `hosts` that answers.

    The connection is made by the first `run` and kept; whoever comes while it is being made waits
    for the same attempt. The next host is tried after a transient failure only. After a failure
    that needs a person every `run` fails alike, without touching a host, until `retry_login`.

    The user's ssh_config is honoured (`ssh_config_file`, else ~/.ssh/config and the system's),
    `user`, `port`, `identity_file`, `known_hosts_file` and `proxy_jump` win over it. Host keys are
    always checked. Configuration, known_hosts and keys are read in a thread, because `Match exec`
    runs programs and home directories are network file systems.

    `channels` scripts run at a time, fewer once sshd has refused one more (MaxSessions is 10
    unless the site says otherwise); whoever was refused waits until one of ours has ended.

    Raises:
        ConfigError: no host, or a named file does not exist.
    """

    def __init__(
        self,
        *,
        hosts: Sequence[str],
        user: str | None = None,
        port: int | None = None,
        identity_file: str | Path | None = None,
        known_hosts_file: str | Path | None = None,
        ssh_config_file: str | Path | None = None,
        proxy_jump: str | None = None,
        channels: int = 4,
        connect_timeout_s: float = 30.0,
        login_timeout_s: float = 20.0,
        keepalive_interval_s: float = 15.0,
        grace_s: float = 1.0,
    ) -> None:
        self._hosts = _openssh.checked_hosts(hosts, "ssh")
        self._route = Route(
            host=self._hosts[0],
            user=user,
            port=port,
            jump=_openssh.checked_jump(proxy_jump),
            identity_file=_existing("identity_file", identity_file),
            known_hosts_file=_existing("known_hosts_file", known_hosts_file),
            config_file=_existing("ssh_config_file", ssh_config_file),
        )
        self._limits: dict[str, Any] = {
            "connect_timeout": connect_timeout_s,
            "login_timeout": login_timeout_s,
            "keepalive_interval": keepalive_interval_s,
            "keepalive_count_max": _KEEPALIVE_COUNT,
        }
        self._grace_s = grace_s
        self._room = Room(channels)
        self._line: Line | None = None
        self._attempt: asyncio.Task[Line] | None = None
        self._openings: set[asyncio.Task[Channel]] = set()
        self._refusal: NeedsPersonError | None = None
        self._logins = 0

    @property
    def logins(self) -> int:
        """Logins attempted since this transport was made, those on jump hosts included."""
        return self._logins

    def retry_login(self) -> None:
        """Somebody acted: forget the failure that needed a person."""
        self._refusal = None

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        """Run `script`; see `jobmond.ports.Transport`.

        A script that the far side could not stop in time takes the connection with it: it may be
        frozen, and a second one beside it would be one more every sweep.
        """
        self._refuse()
        nonce = _frame.nonce()
        call = _Call(
            frame=_frame.wrap(script, nonce),
            intake=_frame.Intake(nonce, max_bytes=max_bytes),
            max_bytes=max_bytes,
            deadline_at_s=asyncio.get_running_loop().time() + timeout_s,
        )
        try:
            async with asyncio.timeout(timeout_s):
                answer: Answer | None = None
                while answer is None:
                    answer = await self._tried(call)
                return answer
        except TimeoutError as late:
            if call.line is not None:
                call.line.abort()
            raise TransientTransportError(
                f"{self._where(call)}: no whole answer within {timeout_s:g} s"
            ) from late

    async def close(self) -> None:
        """End the connection; a later `run` would make a new one."""
        attempt, self._attempt = self._attempt, None
        line, self._line = self._line, None
        if attempt is not None and not attempt.done():
            attempt.cancel()
            await asyncio.wait([attempt])
        for opening in self._openings:
            opening.cancel()
        if line is not None:
            await line.close(self._grace_s)

    def _refuse(self) -> None:
        if self._refusal is not None:
            raise NeedsPersonError(str(self._refusal), remedy=self._refusal.remedy)

    def _where(self, call: "_Call") -> str:
        return call.line.name if call.line is not None else ", ".join(self._hosts)

    async def _tried(self, call: "_Call") -> Answer | None:
        """The answer; None where sshd has no room until another script of ours has ended."""
        async with self._room.place():
            self._refuse()
            try:
                return await self._ask(call)
            except _FullError:
                if not self._room.narrow():
                    raise
                call.line = None  # whoever waits says nothing about the connection
                return None

    async def _ask(self, call: "_Call") -> Answer:
        channel = await self._channel(call)
        try:
            channel.chan.write(call.frame)
            await channel.settled.wait()
            return channel.answer(self._where(call), call.max_bytes)
        finally:
            channel.end()

    # --- channels

    async def _channel(self, call: "_Call") -> Channel:
        """A started shell; one more try where sshd is busy or the kept connection has died."""
        line, kept = await self._connected(call)
        try:
            return await self._opened(call, line)
        except asyncssh.ChannelOpenError as refused:
            if line.alive:
                await asyncio.sleep(self._grace_s / 4)  # sshd takes earlier sessions down
            elif kept:
                line, _ = await self._connected(call)
            else:
                raise channel_failure(line.name, refused) from refused
        except FAILURES as failure:
            raise channel_failure(line.name, failure) from failure
        try:
            return await self._opened(call, line)
        except asyncssh.ChannelOpenError as refused:
            full = channel_failure(line.name, refused)
            raise (_FullError(str(full)) if line.alive else full) from refused
        except FAILURES as failure:
            raise channel_failure(line.name, failure) from failure

    async def _opened(self, call: "_Call", line: Line) -> Channel:
        """Open a session; one that nobody waits for any more is closed as soon as it is there."""
        left_s = call.deadline_at_s - asyncio.get_running_loop().time()
        # A second less than we wait ourselves, so that the far side's end comes as an answer.
        command = _frame.far_command(left_s - 1)
        opening = asyncio.create_task(line.session(call.intake, command, self._grace_s))
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_end_unwanted)
            raise

    # --- the connection

    async def _connected(self, call: "_Call") -> tuple[Line, bool]:
        """The connection, and whether it was there before."""
        if self._line is not None and self._line.alive:
            call.line = self._line
            return self._line, True
        if self._attempt is None or self._attempt.done():
            self._attempt = asyncio.create_task(self._dial())
            self._attempt.add_done_callback(_seen)
        call.line = await asyncio.shield(self._attempt)
        return call.line, False

    async def _dial(self) -> Line:
        """Connect to the first host that answers; each is tried once."""
        if self._line is not None:
            self._line.abort()
        failures: list[TransientTransportError] = []
        for host in self._hosts:
            try:
                self._line = await self._dial_host(replace(self._route, host=host))
            except NeedsPersonError as refusal:
                self._refusal = refusal
                raise
            except TransientTransportError as failure:
                failures.append(failure)
            else:
                self._room.widen()
                return self._line
        if len(failures) == 1:
            raise failures[0]
        raise TransientTransportError("; ".join(map(str, failures))) from failures[-1]

    async def _dial_host(self, route: Route) -> Line:
        line = Line(route.host)
        try:
            await self._reach(route, line, depth=0)
        except BaseException:
            line.abort()
            raise
        return line

    async def _reach(self, route: Route, line: Line, depth: int) -> None:
        """Add the connection to `route` to `line`, after those to the hosts it goes through."""
        if depth > _DEEPEST_JUMP:
            raise unusable(route, ValueError("ProxyJump goes round in a circle"))
        try:
            planned = await asyncio.to_thread(plan, route)
        except (OSError, ValueError) as failure:
            raise unusable(route, failure) from failure
        for stop in planned.stops:
            # Only the first host can itself be behind others; the next is behind the first.
            jump = "none" if line.connections else None
            through = replace(
                route, host=stop.host, user=stop.user, port=stop.port, jump=jump, behind=line.name
            )
            await self._reach(through, line, depth + 1)
        await self._connect(route, planned, line)

    async def _connect(self, route: Route, planned: Plan, line: Line) -> None:
        self._logins += 1
        doorman = Doorman()
        try:
            connection = await asyncssh.connect(
                route.host,
                tunnel=line.connections[-1] if line.connections else None,
                client_factory=lambda: doorman,
                **self._limits,
                **planned.options,
            )
        except FAILURES as failure:
            raise login_failure(route, planned, doorman, failure) from failure
        line.connections.append(connection)


class _FullError(TransientTransportError):
    """sshd takes no further session on a connection that is alive."""


@dataclass(slots=True)
class _Call:
    """One `run` on its way."""

    frame: bytes
    intake: _frame.Intake
    max_bytes: int
    deadline_at_s: float  # of the event loop's clock
    line: Line | None = None


def _existing(key: str, name: str | Path | None) -> Path | None:
    if name is None:
        return None
    path = Path(name).expanduser()
    if not path.is_file():
        raise ConfigError(f"{key}: {path} does not exist or is no file")
    return path


def _seen(attempt: asyncio.Task[Line]) -> None:
    """Take note of a failed attempt for which nobody waits any more."""
    if not attempt.cancelled():
        attempt.exception()


def _end_unwanted(opening: asyncio.Task[Channel]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().end()
