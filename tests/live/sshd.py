"""The lab's sshd: throw-away keys, its configuration, and who logged in according to its log."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.live.options import LabOptions, Places
from tests.live.users import User

HOST = "127.0.0.1"
# sshd refuses to start without it; it is compiled in and shared by all labs, so it stays.
PRIVILEGE_SEPARATION = Path("/run/sshd")

_PEER = r"127\.0\.0\.1 port (?P<port>\d+)"
_CONNECTION = re.compile(rf"^Connection from {_PEER} on ")
_ACCEPTED = re.compile(rf"^Accepted \S+ for (?P<user>\S+) from {_PEER} ")
_SESSION = re.compile(rf"^Starting session: .* for (?P<user>\S+) from {_PEER} id ")
_NAMED = re.compile(
    rf"^(?:Failed \S+ for (?:invalid user )?"
    rf"|Connection (?:closed|reset) by (?:authenticating|invalid) user "
    rf"|Disconnected from (?:authenticating|invalid) user "
    rf"|Disconnecting (?:authenticating|invalid) user )(?P<user>\S+)(?: from)? {_PEER}"
)


@dataclass(slots=True)
class Connection:
    """One TCP connection as sshd saw it; `user` stays empty if the client never named one."""

    port: int
    user: str = ""
    accepted: bool = False
    sessions: int = 0


def read_connections(lines: Iterable[str]) -> list[Connection]:
    """Connections in the order they came, from sshd's log at LogLevel VERBOSE.

    The peer's port tells them apart; it may come back, hence the order matters.
    """
    found: list[Connection] = []
    by_port: dict[int, Connection] = {}
    for line in lines:
        if match := _CONNECTION.match(line):
            port = int(match["port"])
            by_port[port] = Connection(port)
            found.append(by_port[port])
        elif (match := _ACCEPTED.match(line)) and (one := by_port.get(int(match["port"]))):
            one.user, one.accepted = match["user"], True
        elif (match := _SESSION.match(line)) and (one := by_port.get(int(match["port"]))):
            one.sessions += 1
        elif (match := _NAMED.match(line)) and (one := by_port.get(int(match["port"]))):
            one.user = one.user or match["user"]
    return found


@dataclass(slots=True)
class Sshd:
    """Files of one sshd. `max_sessions` and `extra` are what `write_config` puts down next."""

    places: Places
    port: int
    options: LabOptions
    max_sessions: int = field(init=False)
    extra: str = field(init=False)

    def __post_init__(self) -> None:
        self.max_sessions = self.options.max_sessions
        self.extra = self.options.sshd_config_extra

    @property
    def config_file(self) -> Path:
        return self.places.ssh / "sshd_config"

    @property
    def client_config_file(self) -> Path:
        """An ssh_config with one Host per user, named as the user."""
        return self.places.ssh / "config"

    @property
    def known_hosts_file(self) -> Path:
        return self.places.ssh / "known_hosts"

    @property
    def journal(self) -> Path:
        return self.places.journals / "sshd.log"

    @property
    def _host_key(self) -> Path:
        return self.places.ssh / "host_key"

    def argv(self) -> list[str]:
        return ["/usr/sbin/sshd", "-D", "-f", str(self.config_file), "-E", str(self.journal)]

    def prepare(self) -> None:
        """Folder, host key, known_hosts and configuration."""
        PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        self.places.ssh.mkdir(mode=0o755)
        self.new_host_key()
        self.trust_host_key()
        self.write_config()
        self.journal.touch()

    def new_host_key(self) -> None:
        """Another host key; sshd reads it when it starts, clients still know the old one."""
        for old in (self._host_key, self._host_key.with_suffix(".pub")):
            old.unlink(missing_ok=True)
        generate_key(self._host_key, "host")

    def trust_host_key(self) -> None:
        """Make known_hosts agree with the host key."""
        public = self._host_key.with_suffix(".pub").read_text()
        self.known_hosts_file.write_text(f"[{HOST}]:{self.port} {public}")

    def write_config(self) -> None:
        """sshd_config; the far side's commands find Slurm, and are counted, through SetEnv."""
        places = self.places
        env = [f"SLURM_CONF={places.slurm_conf}", f"JOBMOND_LAB={places.folder}"]
        if self.options.count_commands:
            env.append(f"PATH={places.counting}/bin:/usr/local/bin:/usr/bin:/bin")
        # sshd takes the first value it meets, so extra lines come first and win.
        self.config_file.write_text(f"""\
{self.extra.rstrip()}
ListenAddress {HOST}
Port {self.port}
HostKey {self._host_key}
PidFile none
AuthorizedKeysFile {places.ssh}/%u.pub
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitRootLogin no
AllowUsers {places.tag}u*
MaxSessions {self.max_sessions}
MaxStartups {self.options.max_startups}
PrintMotd no
UseDNS no
SetEnv {" ".join(env)}
Subsystem sftp /usr/lib/openssh/sftp-server
LogLevel VERBOSE
""")

    def write_client_config(self, users: Iterable[User]) -> None:
        """ssh_config for OpenSSH's client and for whatever reads it."""
        self.client_config_file.write_text(
            "".join(
                f"""\
Host {user.name}
  HostName {HOST}
  Port {self.port}
  User {user.name}
  IdentityFile {user.key_file}
  IdentitiesOnly yes
  UserKnownHostsFile {self.known_hosts_file}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  KexAlgorithms curve25519-sha256
  BatchMode yes
"""
                for user in users
            )
        )

    def connections(self, user: str | None = None) -> list[Connection]:
        """Connections so far, all or those that named `user`."""
        with self.journal.open(errors="replace") as lines:
            found = read_connections(lines)
        return [one for one in found if user is None or one.user == user]


def generate_key(path: Path, comment: str) -> None:
    """An ed25519 key without a passphrase at `path`, its public half at `path`.pub."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)], check=True
    )
