"""Somebody who can log in to a host with a second factor, and leaves a connection to share."""

import contextlib
import os
import secrets
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.accounts import change_accounts
from tests.needs import need
from tests.sshd import Sshd, plain_user, processes_of, running_sshd

# Key first, then what PAM asks for: here the user's password stands for the second factor.
_SECOND_FACTOR = """\
AuthenticationMethods publickey,keyboard-interactive
UsePAM yes
KbdInteractiveAuthentication yes
LogLevel VERBOSE
"""


@contextlib.contextmanager
def _second_factor(place: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A user who needs a second factor, and the environment of somebody who can give it."""
    need(Path("/etc/pam.d/sshd").exists(), "sshd has no PAM configuration (Debian: openssh-server)")
    with plain_user() as user:
        word = secrets.token_hex(8)
        change_accounts(["chpasswd", "-c", "SHA512"], typed=f"{user}:{word}")
        answer = place / "answer"
        answer.write_text(f"#!/bin/sh\necho {word}\n")
        answer.chmod(0o700)
        yield user, {**os.environ, "SSH_ASKPASS": str(answer), "SSH_ASKPASS_REQUIRE": "force"}


@dataclass
class Site:
    """A host, the person who can log in there, and what belongs to the test alone."""

    sshd: Sshd
    place: Path
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def control(self) -> Path:
        return self.place / "cm"

    @property
    def program(self) -> str:
        """An ssh that would find its way to sshd and be let in."""
        path = self.place / "ssh"
        sshd = self.sshd
        words = ["ssh", "-p", str(sshd.port), "-l", sshd.user, "-i", str(sshd.key)]
        words += ["-o", f"UserKnownHostsFile={sshd.known_hosts}"]
        path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        path.chmod(0o700)
        return str(path)

    def person(self, command: str) -> None:
        """Somebody types what they were told, and answers what is asked."""
        with (self.place / "typed").open("ab") as typed:
            done = subprocess.run(
                ["sh", "-c", command],
                env=self.env,
                stdin=subprocess.DEVNULL,
                # A file: a master in the background holds it open.
                stdout=typed,
                stderr=typed,
                check=False,
            )
        assert done.returncode == 0, (self.place / "typed").read_text()

    def log_in(self, *options: str) -> None:
        """A master connection, in the background."""
        words = [self.program, "-F", "none", "-fNM", "-S", str(self.control), *options]
        self.person(shlex.join([*words, "127.0.0.1"]))

    def master_pid(self, control: Path | None = None) -> int:
        socket = str(control or self.control)
        asked = [self.program, "-F", "none", "-S", socket, "-O", "check", "x"]
        said = subprocess.run(asked, capture_output=True, text=True, check=True).stderr
        return int(said.partition("pid=")[2].partition(")")[0])

    def kill_master(self, control: Path | None = None) -> None:
        """It leaves its socket behind."""
        os.kill(self.master_pid(control), signal.SIGKILL)
        assert (control or self.control).is_socket()


@contextlib.contextmanager
def folder_for_masters() -> Iterator[Path]:
    """A folder whose name is short enough for a socket; every master in it ends afterwards."""
    with tempfile.TemporaryDirectory(prefix="jm-cm-") as folder:
        try:
            yield Path(folder)
        finally:
            for pid in processes_of(folder):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def second_factor_site(place: Path) -> Iterator[Site]:
    """A host that wants a key and then an answer from the keyboard."""
    with (
        _second_factor(place) as (user, env),
        running_sshd(user=user, extra=_SECOND_FACTOR) as sshd,
    ):
        yield Site(sshd, place, env)
