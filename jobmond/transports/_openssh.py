"""OpenSSH's files and commands as jobmond reads and recommends them. No network."""

import base64
import binascii
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

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


def login_command(
    host: str,
    *,
    user: str | None = None,
    port: int | None = None,
    identity_file: Path | None = None,
    config_file: Path | None = None,
    known_hosts_file: Path | None = None,
    jump: str | None = None,
) -> str:
    """The `ssh` command that logs in the way jobmond does, for a person to try."""
    words = ["ssh"]
    if config_file is not None:
        words += ["-F", str(config_file)]
    if known_hosts_file is not None:
        words += ["-o", f"UserKnownHostsFile={known_hosts_file}"]
    if identity_file is not None:
        words += ["-i", str(identity_file)]
    if jump is not None:
        words += ["-J", jump]
    if port is not None:
        words += ["-p", str(port)]
    words += [f"{user}@{host}" if user else host, "true"]
    return shlex.join(words)


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
