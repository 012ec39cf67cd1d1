"""The user's own master connections: where they are, and whether one lives. No network."""

import asyncio
import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from jobmond.analysis.visible import visible
from jobmond.errors import NeedsPersonError, TransientTransportError, TransportError
from jobmond.transports import _frame, _openssh, _process

# ssh binds PATH plus a dot and 16 characters first; a socket's name has 107 bytes at most.
_PATH_MAX_BYTES = 90
_PID = re.compile(rb"pid=(\d{1,9})")

# Where the master cannot take a session, ssh would log in by itself: a login without the second
# factor, refused, every time, until the account is locked. Without a configuration and with a
# proxy that goes nowhere it has no way to reach any host but through the socket.
_NO_WAY_BUT_THE_SOCKET = (
    "-F",
    "none",
    "-o",
    "ControlMaster=no",
    "-o",
    "ProxyCommand=false",
    "-o",
    "BatchMode=yes",
    "-o",
    "PreferredAuthentications=none",
    "-o",
    "ClearAllForwardings=yes",
    "-o",
    "LogLevel=ERROR",
)


@dataclass(frozen=True, slots=True)
class Master:
    """A master connection that lives. `pid` is its process, 0 where it does not say."""

    host: str
    socket: Path
    pid: int


def session_words(program: str, master: Master, command: str) -> list[str]:
    """The command line of one session through `master`, and through nothing else."""
    socket = _openssh.socket_word(master.socket)
    # No terminal, agent or X11.
    options = ["-S", socket, "-T", "-a", "-x"]
    return [program, *_NO_WAY_BUT_THE_SOCKET, *options, "--", master.host, command]


def check_words(program: str, host: str, socket: Path) -> list[str]:
    """The command line that asks a master whether it lives."""
    options = ["-S", _openssh.socket_word(socket), "-O", "check"]
    return [program, *_NO_WAY_BUT_THE_SOCKET, *options, "--", host]


@dataclass(frozen=True, slots=True)
class Lobby:
    """Finds the master of one host.

    The socket is at `control_path`, which may hold the tokens of ssh_config, else where
    ssh_config says, else in `folder`. `timeout_s` bounds each question to a program of this
    machine, `keepalive_s` goes into the command that opens a master.
    """

    program: str
    login: _openssh.Login
    control_path: str | None
    folder: Path
    timeout_s: float
    grace_s: float
    keepalive_s: float

    async def socket(self) -> Path:
        """Where the socket of a master would be. `Match exec` in ssh_config runs programs.

        Raises:
            NeedsPersonError: ssh cannot be asked, or not with this configuration.
            TransientTransportError: it did not answer.
        """
        named = [] if self.control_path is None else ["-S", self.control_path]
        words = [self.program, *self.login.words("-G", "-o", "BatchMode=yes", *named)[1:]]
        said = await self._said(words, "ssh -G")
        if said.status != 0:
            raise NeedsPersonError(
                f"{self._host}: ssh cannot use its configuration ({_frame.ending(said.status)})"
                f"{_frame.last_words(said.stderr, b'')}",
                remedy=self.login.command,
            )
        told = _openssh.told(said.stdout)
        if (path := told.get("controlpath", "none")) != "none":
            return Path(path)
        keywords = ("user", "hostname", "port", "proxyjump", "proxycommand")
        whom = "\0".join(told.get(keyword, "") for keyword in keywords)
        name = hashlib.sha256(whom.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return self.folder / f"ssh-{name}"

    async def living(self, socket: Path) -> Master:
        """The master that answers at `socket`.

        Raises:
            NeedsPersonError: there is none, or none that can be used.
            TransientTransportError: what is there does not answer.
        """
        await asyncio.to_thread(self._look_at, socket)
        words = check_words(self.program, self.login.host, socket)
        said = await self._said(words, f"the master connection at {_shown(socket)}")
        if said.status == 0:
            pid = _PID.search(said.stdout + said.stderr)
            return Master(self.login.host, socket, int(pid[1]) if pid else 0)
        if b"Connection refused" in said.stderr:
            raise self._ended(socket)
        if b"No such file" in said.stderr:
            raise self._missing(socket)
        if b"Permission denied" in said.stderr:
            raise self._unusable(socket, "cannot be used by this user")
        raise TransientTransportError(
            f"{self._host}: the master connection at {_shown(socket)} cannot be used now"
            f"{_frame.last_words(said.stderr, b'')}"
        )

    @property
    def _host(self) -> str:
        return visible(self.login.host)

    def _look_at(self, socket: Path) -> None:
        """Before anything is said to it: is it there, a socket, and ours."""
        try:
            known = socket.stat()
        except FileNotFoundError:
            raise self._missing(socket) from None
        except OSError as failure:
            raise self._unusable(socket, f"cannot be used: {failure.strerror}") from failure
        if not stat.S_ISSOCK(known.st_mode):
            raise self._unusable(socket, "is no socket")
        # Whoever listens there reads our scripts and writes the answers.
        if known.st_uid not in (os.geteuid(), 0):
            raise self._unusable(socket, "belongs to another user")

    def _missing(self, socket: Path) -> NeedsPersonError:
        length = len(os.fsencode(socket))
        if length > _PATH_MAX_BYTES:
            return self._unusable(
                socket, f"cannot be made: {length} bytes are too long, {_PATH_MAX_BYTES} at most"
            )
        remedy = self._opening(socket)
        if not socket.parent.is_dir():
            remedy = f"{_openssh.folder_command(socket.parent)} && {remedy}"
        return NeedsPersonError(
            f"{self._host}: nobody is logged in, there is no master connection at {_shown(socket)}",
            remedy=remedy,
        )

    def _ended(self, socket: Path) -> NeedsPersonError:
        return NeedsPersonError(
            f"{self._host}: nobody is logged in any more, the master connection at "
            f"{_shown(socket)} has ended",
            # ssh would log in and then share nothing, because the name is taken.
            remedy=f"{_openssh.stale_command(socket)} && {self._opening(socket)}",
        )

    def _unusable(self, socket: Path, why: str) -> NeedsPersonError:
        return NeedsPersonError(
            f"{self._host}: the control socket {_shown(socket)} {why}; "
            "control_path can name another"
        )

    def _opening(self, socket: Path) -> str:
        return _openssh.master_command(self.login, socket, keepalive_s=self.keepalive_s)

    async def _said(self, words: list[str], whom: str) -> _process.Said:
        try:
            return await _process.said(words, timeout_s=self.timeout_s, grace_s=self.grace_s)
        except TimeoutError as late:
            raise TransientTransportError(
                f"{self._host}: {whom} gave no answer within {self.timeout_s:g} s"
            ) from late
        except OSError as failure:
            raise unstartable(self._host, self.program, failure) from failure


def unstartable(host: str, program: str, failure: OSError) -> TransportError:
    """The error for an `ssh` that this machine does not start."""
    text = f"{host}: cannot start {visible(program)}: {failure.strerror}"
    if isinstance(failure, FileNotFoundError | PermissionError):
        return NeedsPersonError(f"{text} (the OpenSSH client is needed)")
    return TransientTransportError(text)


def _shown(socket: Path) -> str:
    return visible(str(socket))
