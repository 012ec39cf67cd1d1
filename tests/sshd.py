"""A private sshd on loopback for tests: throw-away keys, a high port, gone afterwards."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.accounts import change_accounts
from tests.needs import need

PROGRAM = "/usr/sbin/sshd"


def need_sshd() -> None:
    need(Path(PROGRAM).exists(), f"{PROGRAM} is missing (Debian: openssh-server)")
    need("ssh-keygen", "ssh-keygen is missing (Debian: openssh-client)")


def keygen(path: Path, *, passphrase: str = "", kind: str = "ed25519", form: str = "") -> Path:
    """A new key pair; `form` may be PEM."""
    words = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", str(path), "-C", "test"]
    subprocess.run([*words, *(["-m", form] if form else [])], check=True, stdin=subprocess.DEVNULL)
    return path


@contextlib.contextmanager
def plain_user() -> Iterator[str]:
    """An unprivileged user made for the test; needs root."""
    need(os.geteuid() == 0, "only root can make a user")
    name = f"jmt{os.getpid()}"
    words = ["useradd", "-M", "-d", "/tmp", "-s", "/bin/sh", "-p", "*", name]
    change_accounts(words)
    try:
        yield name
    finally:
        # -f: what ends the user's last script may live for five seconds more.
        change_accounts(["userdel", "-f", name])


@dataclass
class Sshd:
    """One sshd; `extra` are lines of sshd_config that win over the defaults here."""

    place: Path
    user: str = field(default_factory=getpass.getuser)
    extra: str = ""
    port: int = 0
    process: subprocess.Popen[str] | None = None

    def __post_init__(self) -> None:
        self.host_key = keygen(self.place / "host_key")
        self.key = keygen(self.place / "client_key")
        self.log = self.place / "sshd.log"
        self.authorized = self.place / "authorized_keys"
        self.authorize(self.key)
        self.known_hosts = self.place / "known_hosts"
        self.port = _free_port()
        self.trust()

    def authorize(self, *keys: Path) -> None:
        self.authorized.write_text("".join(Path(f"{key}.pub").read_text() for key in keys))

    def trust(self) -> None:
        """Write the host key into `known_hosts`."""
        kind, data, *_ = Path(f"{self.host_key}.pub").read_text().split()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {kind} {data}\n")

    def new_host_key(self) -> None:
        self.host_key.unlink()
        keygen(self.host_key)

    def start(self) -> None:
        """Start, and wait until it listens."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = self.place / "sshd_config"
        config.write_text(
            f"{self.extra}\nListenAddress 127.0.0.1\nPort {self.port}\nHostKey {self.host_key}\n"
            f"AuthorizedKeysFile {self.authorized}\nPidFile none\nUsePAM no\nStrictModes no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
            "MaxStartups 100\nLogLevel INFO\nPrintMotd no\n"
        )
        self.process = subprocess.Popen(
            [PROGRAM, "-D", "-e", "-f", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        said = ""
        for line in self.process.stderr:
            said += line
            if "Server listening" in line:
                break
        else:
            raise AssertionError(f"sshd did not start: {said}")
        # It writes some lines a login; nobody reads them while the test runs, so to a file.
        with self.log.open("ab") as log:
            self._drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=log)
        self.process.stderr.close()

    def stop(self) -> None:
        """End it and every connection."""
        if self.process is None:
            return
        pids = [self.process.pid, *self.session_pids()]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(60)
        self._drain.wait(60)
        self.process = None

    def session_pids(self) -> list[int]:
        """The processes of sshd that serve connections."""
        assert self.process is not None
        return [pid for pid in _descendants(self.process.pid) if _comm(pid).startswith("sshd")]

    def drop_connections(self) -> None:
        for pid in self.session_pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def freeze(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)
        for pid in self.session_pids():
            with contextlib.suppress(ProcessLookupError):  # a session may be just ending
                os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        for pid in (self.process.pid, *self.session_pids()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def connections(self) -> int:
        """Connections that somebody opened, logged in or not; `extra` must ask for VERBOSE."""
        return self.log.read_text().count("Connection from")

    def logins(self) -> int:
        """Logins that sshd accepted."""
        return self.log.read_text().count("Accepted publickey")


@contextlib.contextmanager
def running_sshd(*, user: str | None = None, extra: str = "") -> Iterator[Sshd]:
    """An sshd that accepts `key` for `user` (default: the one who runs the test)."""
    need_sshd()
    place = Path(tempfile.mkdtemp(prefix="jobmond-sshd-"))
    place.chmod(0o755)  # sshd reads authorized_keys as the user
    sshd = Sshd(place, user or getpass.getuser(), extra)
    try:
        sshd.start()
        yield sshd
    finally:
        sshd.stop()
        shutil.rmtree(place)


@contextlib.contextmanager
def master_connection(sshd: Sshd, control: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A logged-in connection of OpenSSH's client that shares itself at `control`."""
    words = ["ssh", "-F", "none", "-NM", "-S", str(control), "-i", str(sshd.key)]
    words += ["-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={sshd.known_hosts}"]
    words += ["-p", str(sshd.port), f"{sshd.user}@127.0.0.1"]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for_master(control, process)
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for_master(control: Path, process: subprocess.Popen[bytes]) -> None:
    """Return when something listens at `control`; `process` is to do that."""
    while True:
        with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
            probe.connect(str(control))
            return
        if process.poll() is not None:
            raise AssertionError(f"no master: {process.communicate()[1].decode()}")
        time.sleep(0.02)


def processes_of(mark: str) -> list[int]:
    """Processes with `mark` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _descendants(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text()
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""
