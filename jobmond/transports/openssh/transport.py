"""The transport: one `ssh` a script, through a master that somebody else opened."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.ports import Answer
from jobmond.registry import transports
from jobmond.transports import _frame, _openssh, _process
from jobmond.transports._room import Room
from jobmond.transports.openssh.master import Lobby, Master, session_words, unstartable

_TIMED_OUT = 124  # exit status of `timeout`
_SSH_FAILED = 255  # ssh's own failure; an exit status of a script comes with the sentinel
_FULL = re.compile(rb"^mux_client_request_session: .*Session open refused by peer", re.MULTILINE)
# What ssh says about the way that is barred to it; the reason stands before.
_BARRED = re.compile(rb"^.*(?:UNKNOWN port|kex_exchange_identification: ).*\n?", re.MULTILINE)


class _RefusedError(Exception):
    """The far side opens no further session on this connection now."""


@transports.plugin("openssh")
class OpensshTransport:
    """Runs scripts with the `ssh` program, through a master connection of the same user.

    For hosts that want a second factor: a person logs in, and this only ever uses that login. It
    cannot log in itself, whatever becomes of the master. Of `hosts` the first with a living
    master is used. Without one every `run` fails with the command that opens one; looking for it
    touches no host, so the next `run` looks again.

    The socket is at `control_path` (ssh_config's tokens are understood), else at the ControlPath
    of ssh_config, else in `control_folder`. `user`, `port`, `identity_file`, `known_hosts_file`,
    `ssh_config_file` and `proxy_jump` are what the person's `ssh` needs.

    `channels` scripts run at a time, fewer where sshd refuses (MaxSessions; the person's own
    sessions count too). `check_timeout_s` bounds each look for the master.

    Raises:
        ConfigError: no host, or one that is none.
    """

    def __init__(
        self,
        *,
        hosts: Sequence[str],
        user: str | None = None,
        port: int | None = None,
        identity_file: Path | None = None,
        known_hosts_file: Path | None = None,
        ssh_config_file: Path | None = None,
        proxy_jump: str | None = None,
        control_path: str | Path | None = None,
        control_folder: Path | None = None,
        channels: int = 4,
        check_timeout_s: float = 20.0,
        keepalive_interval_s: float = 15.0,
        grace_s: float = 1.0,
        program: str = "ssh",
    ) -> None:
        jump = _openssh.checked_jump(proxy_jump)
        self._lobbies = tuple(
            Lobby(
                program=program,
                login=_openssh.Login(
                    host, user, port, identity_file, ssh_config_file, known_hosts_file, jump
                ),
                control_path=None if control_path is None else str(control_path),
                folder=control_folder or Path.home() / ".ssh",
                timeout_s=check_timeout_s,
                grace_s=grace_s,
                keepalive_s=keepalive_interval_s,
            )
            for host in _openssh.checked_hosts(hosts, "openssh")
        )
        self._program = program
        self._grace_s = grace_s
        self._room = Room(channels)
        self._sockets: dict[str, Path] = {}  # by host, as long as a master lives there
        self._used: Master | None = None

    @property
    def logins(self) -> int:
        """Always 0: the login is somebody else's."""
        return 0

    def retry_login(self) -> None:
        """Somebody acted, perhaps on ssh_config: ask ssh again where the socket is."""
        self._sockets.clear()

    async def acted(self) -> bool:
        """Whether a person has opened a master; asks this machine alone."""
        try:
            await self._master()
        except (NeedsPersonError, TransientTransportError):
            return False
        return True

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        """Run `script`; see `jobmond.ports.Transport`."""
        call = _Call(script, max_bytes, asyncio.get_running_loop().time() + timeout_s)
        where = ", ".join(lobby.login.host for lobby in self._lobbies)
        try:
            async with asyncio.timeout(timeout_s):
                while (answer := await self._tried(call)) is None:
                    pass
        except TimeoutError as late:
            raise TransientTransportError(
                f"{where}: no whole answer within {timeout_s:g} s"
            ) from late
        return answer

    async def close(self) -> None:
        """Nothing of ours is held open; the master is not ours."""

    # --- the master

    async def _master(self) -> Master:
        """The first master that lives.

        Where none does and one might again without a person, that is the failure.
        """
        failures: list[NeedsPersonError] = []
        transient: TransientTransportError | None = None
        for lobby in self._lobbies:
            try:
                return self._known(await self._living(lobby))
            except NeedsPersonError as failure:
                failures.append(failure)
            except TransientTransportError as failure:
                transient = transient or failure
        if transient is not None:
            raise transient
        raise NeedsPersonError("; ".join(map(str, failures)), remedy=failures[0].remedy)

    async def _living(self, lobby: Lobby) -> Master:
        host = lobby.login.host
        socket = self._sockets.get(host) or await lobby.socket()
        try:
            master = await lobby.living(socket)
        except NeedsPersonError:
            self._sockets.pop(host, None)
            raise
        self._sockets[host] = socket
        return master

    def _known(self, master: Master) -> Master:
        if master != self._used:
            self._used = master
            self._room.widen()
        return master

    # --- one session

    async def _tried(self, call: "_Call") -> Answer | None:
        """The answer; None where it is worth another try once a script of ours has ended."""
        async with self._room.place():
            try:
                return await self._asked(call)
            except _RefusedError:
                await asyncio.sleep(self._grace_s / 4)  # sshd takes earlier sessions down
            try:
                return await self._asked(call)
            except _RefusedError as refused:
                if self._room.narrow():
                    return None
                raise TransientTransportError(
                    f"{self._lobbies[0].login.host}: the master connection takes no further "
                    "session: sshd allows MaxSessions on it (10, unless the site says otherwise)"
                ) from refused

    async def _asked(self, call: "_Call") -> Answer:
        nonce = _frame.nonce()
        frame = _frame.wrap(call.script, nonce)
        intake = _frame.Intake(nonce, max_bytes=call.max_bytes)
        master = await self._master()
        left_s = call.deadline_at_s - asyncio.get_running_loop().time()
        # A second less than we wait ourselves, so that the far side's end comes as an answer.
        words = session_words(self._program, master, _frame.far_command(left_s - 1))
        try:
            async with _process.running(words, intake, grace_s=self._grace_s) as shell:
                shell.write(frame)
                await shell.settled.wait()
        except OSError as failure:
            raise unstartable(master.host, self._program, failure) from failure
        return await self._answer(call, master, intake, shell)

    async def _answer(
        self, call: "_Call", master: Master, intake: _frame.Intake, shell: _process.Shell
    ) -> Answer:
        if intake.too_much:
            raise TransientTransportError(
                f"{master.host}: more than {call.max_bytes} bytes of output"
            )
        stderr = bytes(shell.stderr)
        if (answer := intake.answer()) is not None:
            code, stdout = answer
            return Answer(code, stdout, stderr)
        words = _frame.last_words(_BARRED.sub(b"", stderr), intake.banner)
        if shell.status != _SSH_FAILED:
            raise TransientTransportError(
                f"{master.host}: the script did not run to its end ({_ending(shell)}){words}"
            )
        if _FULL.search(stderr):
            raise _RefusedError
        await self._master()  # where it is gone, that is what to say
        raise TransientTransportError(
            f"{master.host}: the connection was lost before the answer was whole{words}"
        )


@dataclass(frozen=True, slots=True)
class _Call:
    """One `run` on its way."""

    script: bytes
    max_bytes: int
    deadline_at_s: float  # of the event loop's clock


def _ending(shell: _process.Shell) -> str:
    if shell.status == _TIMED_OUT:
        return "out of time at the far side"
    return _frame.ending(shell.status)
