"""How to log in to one host: what the settings, ssh_config, known_hosts and key files say."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from jobmond.transports import _openssh

_SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
_NO_KEY = b"\0"  # an identity that no agent holds


@dataclass(frozen=True, slots=True)
class Route:
    """A host and what the settings say about reaching it. None leaves it to ssh_config.

    `behind` names the host that is wanted where this one is only on the way to it.
    """

    host: str
    user: str | None = None
    port: int | None = None
    jump: str | None = None
    identity_file: Path | None = None
    known_hosts_file: Path | None = None
    config_file: Path | None = None
    behind: str | None = None

    @property
    def name(self) -> str:
        """The host for a message."""
        return self.host if self.behind is None else f"{self.behind}: jump host {self.host}"

    @property
    def login(self) -> str:
        """The command with which a person logs in like this."""
        return _openssh.Login(
            self.host,
            user=self.user,
            port=self.port,
            identity_file=self.identity_file,
            config_file=self.config_file,
            known_hosts_file=self.known_hosts_file,
            jump=None if self.behind else self.jump,
        ).command


@dataclass(frozen=True, slots=True)
class Plan:
    """A route with everything looked up.

    `options` are keywords of `asyncssh.connect`; `stops` are the hosts to go through first;
    `known` are the known_hosts files that exist, `known_hosts_file` is where a new key belongs;
    `locked` are private keys that only an agent can use.
    """

    options: dict[str, Any]
    stops: Sequence[_openssh.Stop]
    user: str
    address: str
    port: int
    key_name: str
    direct: bool
    known: Sequence[tuple[Path, asyncssh.SSHKnownHosts]]
    known_hosts_file: Path
    locked: Sequence[Path]


def plan(route: Route) -> Plan:
    """Look everything up. Blocks: reads files, and `Match exec` runs programs.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file cannot be understood.
    """
    config = config_paths(route)
    base = _base(route, config)
    said = base.config.get
    keys = _keys(route, said("IdentityFile"))
    known, known_hosts_file = _known_hosts(route, base)
    stops = _stops(route, base)
    proxy_command = None if stops or route.jump else said("ProxyCommand")
    if isinstance(proxy_command, str) and proxy_command.strip().lower() == "none":
        proxy_command = None
    options: dict[str, Any] = {
        "config": config,
        "port": route.port or (),
        "username": route.user or (),
        "known_hosts": _together(known),
        "client_keys": _usable(keys, named=route.identity_file),
        "agent_identities": None,
        "agent_forwarding": False,
        "x11_forwarding": False,
        "proxy_command": proxy_command,
    }
    if said("IdentitiesOnly") or route.identity_file in [key.path for key in keys]:
        # Six keys of an agent before the right one are six refused logins.
        options["agent_identities"] = [key.public for key in keys if key.public] or [_NO_KEY]
    if said("IdentityAgent") == "none":
        options["agent_path"] = None
    return Plan(
        options=options,
        stops=stops,
        user=base.username,
        address=base.host,
        port=base.port,
        key_name=base.host_key_alias or _openssh.known_hosts_name(base.host, base.port),
        direct=not (stops or proxy_command or base.host_key_alias or route.behind),
        known=known,
        known_hosts_file=known_hosts_file,
        locked=[key.path for key in keys if key.encrypted],
    )


def config_paths(route: Route) -> list[Path]:
    if route.config_file is not None:
        return [route.config_file]
    return [p for p in (Path.home() / ".ssh" / "config", _SYSTEM_CONFIG) if p.is_file()]


def _base(route: Route, config: list[Path]) -> asyncssh.SSHClientConnectionOptions:
    """ssh_config for the route, without loading a key."""
    base = asyncssh.SSHClientConnectionOptions(
        config=config,
        host=route.host,
        port=route.port or (),
        username=route.user or (),
        known_hosts=b"",
        client_keys=None,
    )
    if base.config.has_match_final():
        base.update(reload=True, final=True)
    return base


def _keys(route: Route, configured: object) -> list[_openssh.KeyFile]:
    """The private keys to try, and public ones that name a key of the agent.

    A missing IdentityFile of ssh_config is no error, as with `ssh`. A jump host has its own keys
    in ssh_config or uses ours.
    """
    named = [Path(str(n)).expanduser() for n in configured] if isinstance(configured, list) else []
    if route.identity_file is not None and not (route.behind and named):
        key = _openssh.read_key_file(route.identity_file)
        if not key.private and key.public is None:
            raise ValueError(f"identity_file {route.identity_file} holds no key")
        return [key]
    paths = named or _openssh.default_key_paths(Path.home())
    return [_openssh.read_key_file(path) for path in paths if path.is_file()]


def _usable(keys: Sequence[_openssh.KeyFile], *, named: Path | None) -> list[asyncssh.SSHKeyPair]:
    """The private keys that can be used without a passphrase, with their certificates.

    One broken file of ssh_config does not spoil the others; one that the settings name does.
    """
    usable: list[asyncssh.SSHKeyPair] = []
    for key in keys:
        if key.encrypted or not key.private:
            continue
        try:
            usable += asyncssh.load_keypairs(str(key.path))
        except asyncssh.KeyImportError as failure:
            if key.path == named:
                raise ValueError(f"{key.path}: {failure}") from failure
    return usable


def _known_hosts(
    route: Route, base: asyncssh.SSHClientConnectionOptions
) -> tuple[list[tuple[Path, asyncssh.SSHKnownHosts]], Path]:
    if route.known_hosts_file is not None:
        paths = [route.known_hosts_file]
    else:
        paths = _openssh.known_hosts_paths(
            _words(base.config.get("UserKnownHostsFile")),
            _words(base.config.get("GlobalKnownHostsFile")),
            home=Path.home(),
            tokens={
                "%": "%",
                "d": str(Path.home()),
                "h": base.host,
                "n": route.host,
                "p": str(base.port),
                "r": base.username,
            },
        )
    known = [(path, _read_known_hosts(path)) for path in paths if path.is_file()]
    return known, paths[0] if paths else Path.home() / ".ssh" / "known_hosts"


def _words(said: object) -> list[str] | None:
    return [str(word) for word in said] if isinstance(said, list) else None


def _read_known_hosts(path: Path) -> asyncssh.SSHKnownHosts:
    try:
        return asyncssh.SSHKnownHosts(path.read_text("utf-8", "replace"))
    except ValueError as failure:
        raise ValueError(f"{path}: {failure}") from failure


def _together(known: Sequence[tuple[Path, asyncssh.SSHKnownHosts]]) -> asyncssh.SSHKnownHosts:
    """All files as one, never None: to asyncssh None means no check."""
    together = asyncssh.SSHKnownHosts()
    for path, _ in known:
        together.load(path.read_text("utf-8", "replace"))
    return together


def _stops(route: Route, base: asyncssh.SSHClientConnectionOptions) -> list[_openssh.Stop]:
    said = route.jump if route.jump is not None else base.config.get("ProxyJump")
    stops = _openssh.stops(said if isinstance(said, str) else None)
    # `Host * / ProxyJump gate` holds for the gate itself too; ssh goes there directly.
    own = {(name, base.port) for name in (route.host, base.host)}
    if any((stop.host, stop.port or _openssh.DEFAULT_PORT) in own for stop in stops):
        return []
    return stops
