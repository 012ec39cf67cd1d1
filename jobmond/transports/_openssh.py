"""OpenSSH's files and commands as jobmond reads and recommends them. No network."""

import base64
import binascii
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobmond.errors import ConfigError

DEFAULT_PORT = 22
_DEFAULT_KEYS = ("id_ed25519_sk", "id_ecdsa_sk", "id_ed25519", "id_ecdsa", "id_rsa")
_MAGIC = b"openssh-key-v1\0"
_PRIVATE = re.compile(rb"-----BEGIN OPENSSH PRIVATE KEY-----(.*?)-----END", re.DOTALL)
_ENCRYPTED_PEM = re.compile(rb"-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED", re.M)


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A key on disk: whether it is private and needs a passphrase, its public part if known.

    `public` is the key in the wire format of SSH, which is how an agent names it.
    """

    path: Path
    private: bool
    encrypted: bool
    public: bytes | None


def read_key_file(path: Path) -> KeyFile:
    """Look at a private key without opening it; the public part may come from `path`.pub.

    Raises:
        OSError: the file cannot be read.
    """
    raw = path.read_bytes()
    encrypted, public = key_facts(raw)
    if public is None:
        try:
            public = public_blob(Path(f"{path}.pub").read_bytes())
        except OSError:
            public = None
    return KeyFile(path, b"PRIVATE KEY-----" in raw, encrypted, public)


def key_facts(raw: bytes) -> tuple[bool, bytes | None]:
    """Whether a private key file is encrypted, and its public part where the format shows it.

    OpenSSH's own format keeps cipher and public key in the clear; PEM shows the cipher alone.
    """
    if found := _PRIVATE.search(raw):
        try:
            body = base64.b64decode(found.group(1))
        except binascii.Error:
            return False, None
        return _openssh_facts(body)
    return _ENCRYPTED_PEM.search(raw) is not None, public_blob(raw)


def _openssh_facts(body: bytes) -> tuple[bool, bytes | None]:
    if not body.startswith(_MAGIC):
        return False, None
    cipher, rest = _string(body[len(_MAGIC) :])
    _, rest = _string(rest)  # name of the key derivation
    _, rest = _string(rest)  # its options
    public, _ = _string(rest[4:])  # after the number of keys
    return cipher not in (b"none", b""), public or None


def _string(raw: bytes) -> tuple[bytes, bytes]:
    end = 4 + int.from_bytes(raw[:4], "big")
    return raw[4:end], raw[end:]


def public_blob(raw: bytes) -> bytes | None:
    """The key of a one-line public key file (`ssh-ed25519 AAAA… comment`), decoded."""
    words = raw.split(None, 2)
    if len(words) < 2 or not words[1].startswith(b"AAAA"):
        return None
    try:
        return base64.b64decode(words[1], validate=True)
    except binascii.Error:
        return None


def default_key_paths(home: Path) -> list[Path]:
    """The keys that `ssh` tries when nothing names one; those that exist."""
    return [path for name in _DEFAULT_KEYS if (path := home / ".ssh" / name).is_file()]


def known_hosts_paths(
    user_files: Iterable[str] | None,
    global_files: Iterable[str] | None,
    *,
    home: Path,
    tokens: Mapping[str, str],
) -> list[Path]:
    """The files `ssh` would look a host key up in, existing or not.

    The arguments are what ssh_config says, None where it says nothing; the word `none` in it
    stands for no file, never for no checking.
    """
    user = (
        [f"{home}/.ssh/known_hosts", f"{home}/.ssh/known_hosts2"]
        if user_files is None
        else list(user_files)
    )
    system = (
        ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"]
        if global_files is None
        else list(global_files)
    )
    return [
        _expanded(name, home, tokens)
        for name in [*user, *system]
        if name.lower() not in ("none", "")
    ]


def _expanded(name: str, home: Path, tokens: Mapping[str, str]) -> Path:
    name = re.sub("%(.)", lambda m: tokens.get(m.group(1), m.group(0)), name)
    if name == "~" or name.startswith("~/"):
        return home / name[2:]
    return Path(name)


@dataclass(frozen=True, slots=True)
class Login:
    """A host and what the settings say about logging in there. None leaves it to ssh_config."""

    host: str
    user: str | None = None
    port: int | None = None
    identity_file: Path | None = None
    config_file: Path | None = None
    known_hosts_file: Path | None = None
    jump: str | None = None

    def words(self, *options: str) -> list[str]:
        """The `ssh` command line that logs in like this, with further options."""
        words = ["ssh", *options]
        if self.config_file is not None:
            words += ["-F", str(self.config_file)]
        if self.known_hosts_file is not None:
            words += ["-o", f"UserKnownHostsFile={self.known_hosts_file}"]
        if self.identity_file is not None:
            words += ["-i", str(self.identity_file)]
        if self.jump is not None:
            words += ["-J", self.jump]
        if self.port is not None:
            words += ["-p", str(self.port)]
        return [*words, f"{self.user}@{self.host}" if self.user else self.host]

    @property
    def command(self) -> str:
        """The command that logs in like this and goes, for a person to try."""
        return shlex.join([*self.words(), "true"])


def master_command(login: Login, socket: Path, *, keepalive_s: float) -> str:
    """The command with which a person logs in and leaves a connection for others to share.

    It stays without a session on it, whatever ssh_config says about ControlPersist, and ends
    when the far side is silent three times in a row.
    """
    shared = ["-fNM", "-S", socket_word(socket), "-o", "ControlPersist=no"]
    alive = [f"ServerAliveInterval={max(1, round(keepalive_s))}", "ServerAliveCountMax=3"]
    return shlex.join(login.words(*shared, "-o", alive[0], "-o", alive[1]))


def socket_word(socket: Path) -> str:
    """A control socket for `ssh -S`, which would expand per cent signs."""
    return str(socket).replace("%", "%%")


def stale_command(socket: Path) -> str:
    """The command that takes away a socket at which nobody listens."""
    return shlex.join(["rm", "-f", str(socket)])


def folder_command(folder: Path) -> str:
    """The command that makes a folder for a control socket."""
    return shlex.join(["mkdir", "-p", "-m", "700", str(folder)])


def told(configuration: bytes) -> dict[str, str]:
    """What `ssh -G` printed: the value of each keyword, of several the first."""
    found: dict[str, str] = {}
    for line in configuration.decode("utf-8", "surrogateescape").splitlines():
        keyword, _, value = line.partition(" ")
        found.setdefault(keyword.lower(), value)
    return found


def checked_hosts(hosts: Sequence[str], transport: str) -> tuple[str, ...]:
    """Hosts that no program can take for an option or a user.

    Raises:
        ConfigError: there is none, or one is no host.
    """
    if isinstance(hosts, str):
        hosts = [hosts]
    if not hosts:
        raise ConfigError(f"transport {transport}: no host")
    for host in hosts:
        if not host or "@" in host or host.startswith("-") or not host.isprintable():
            raise ConfigError(f"host {host!r} is no host name; a user name goes into `user`")
    return tuple(hosts)


def checked_jump(jump: str | None) -> str | None:
    """A ProxyJump value that can be understood.

    Raises:
        ConfigError: it cannot.
    """
    try:
        stops(jump)
    except ValueError as wrong:
        raise ConfigError(f"proxy_jump: {wrong}") from wrong
    return jump


def known_hosts_name(host: str, port: int) -> str:
    """The name under which known_hosts holds a host."""
    return host if port == DEFAULT_PORT else f"[{host}]:{port}"


def scan_command(host: str, port: int, known_hosts_file: Path) -> str:
    """The command that adds a host's keys to known_hosts."""
    where = [] if port == DEFAULT_PORT else ["-p", str(port)]
    return f"{shlex.join(['ssh-keyscan', *where, host])} >> {shlex.quote(str(known_hosts_file))}"


def add_command(key: Path) -> str:
    """The command that unlocks a key for as long as the agent lives."""
    return shlex.join(["ssh-add", str(key)])


def forget_command(name: str, known_hosts_file: Path) -> str:
    """The command that takes a host's old keys out of known_hosts."""
    return shlex.join(["ssh-keygen", "-R", name, "-f", str(known_hosts_file)])


@dataclass(frozen=True, slots=True)
class Stop:
    """One host of a ProxyJump list."""

    host: str
    user: str | None
    port: int | None


def stops(jump: str | None) -> list[Stop]:
    """The hosts of a ProxyJump value, in the order of travel; `none` is none.

    Raises:
        ValueError: a port is no number.
    """
    if jump is None or jump.strip().lower() in ("", "none"):
        return []
    return [_stop(word.strip()) for word in jump.split(",")]


def _stop(word: str) -> Stop:
    word = word.removeprefix("ssh://").rstrip("/")
    user, _, place = word.rpartition("@")
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = place.partition(":")
    if not host or (port and not port.isascii()) or (port and not port.isdigit()):
        raise ValueError(f"ProxyJump: {word!r} is not [user@]host[:port]")
    return Stop(host, user or None, int(port) if port else None)
