"""What a failure means: try again later, or tell a person.

Trying again a login that was refused locks accounts and bans addresses, so everything about
identity (keys, host keys, configuration) waits for somebody; everything about the way there is
tried again.
"""

import socket

import asyncssh

from jobmond.analysis.visible import visible
from jobmond.errors import NeedsPersonError, TransientTransportError, TransportError
from jobmond.transports import _openssh
from jobmond.transports.ssh.plan import Plan, Route

# What asyncssh raises while it reads files, logs in and opens a channel.
FAILURES = (asyncssh.Error, OSError, ValueError)

_REASON_MAX = 300
_TOO_MANY = "Too many authentication failures"
_FOR_A_PERSON = (
    asyncssh.KeyExchangeFailed,
    asyncssh.IllegalUserName,
    ValueError,  # among them KeyImportError, KeyEncryptionError, ConfigParseError
    FileNotFoundError,  # a ProxyCommand or CertificateFile
)


class Doorman(asyncssh.SSHClient):
    """Lets no unknown host key in, and remembers it for the message."""

    def __init__(self) -> None:
        self.offered: asyncssh.SSHKey | None = None
        self._asked: tuple[str, str, int | None] = ("", "", None)  # host, address, unusual port

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        self.offered = key
        self._asked = (host, addr, port if port != _openssh.DEFAULT_PORT else None)
        return False

    def named_in(self, known: asyncssh.SSHKnownHosts) -> bool:
        """Whether `known` has another key of the host."""
        return bool(known.match(*self._asked)[0])


def login_failure(route: Route, plan: Plan, doorman: Doorman, failure: Exception) -> TransportError:
    """The error for a login that failed."""
    if isinstance(failure, asyncssh.HostKeyNotVerifiable):
        return _host_key(route, plan, doorman, failure)
    if isinstance(failure, asyncssh.PermissionDenied) or _TOO_MANY in str(failure):
        return _refused(route, plan, failure)
    if isinstance(failure, _FOR_A_PERSON):
        return unusable(route, failure)
    return TransientTransportError(f"{route.name}: {reason(failure)}; see `{route.login}`")


def unusable(route: Route, failure: Exception) -> NeedsPersonError:
    """The error for files or settings with which nobody can log in."""
    return NeedsPersonError(f"{route.name}: {reason(failure)}", remedy=route.login)


def channel_failure(name: str, failure: Exception) -> TransientTransportError:
    """The error for a connection that takes no further script."""
    return TransientTransportError(f"{name}: no channel: {reason(failure)}")


def _refused(route: Route, plan: Plan, failure: Exception) -> NeedsPersonError:
    who = f"{plan.user}@{plan.address} port {plan.port}"
    text = f"{route.name}: login refused for {who}: {reason(failure)}"
    if not plan.locked:
        return NeedsPersonError(text, remedy=route.login)
    locked = plan.locked[0]
    return NeedsPersonError(
        f"{text}; {visible(str(locked))} is encrypted and no agent offers it",
        remedy=_openssh.add_command(locked),
    )


def _host_key(route: Route, plan: Plan, doorman: Doorman, failure: Exception) -> NeedsPersonError:
    key = doorman.offered
    if key is None:  # revoked, or a certificate
        return unusable(route, failure)
    offered = f"{key.algorithm.decode('ascii', 'replace')} {key.get_fingerprint()}"
    for path, known in plan.known:
        if doorman.named_in(known):
            return NeedsPersonError(
                f"{route.name}: the host key has CHANGED, it is now {offered}: either the site "
                "renewed it or somebody is in between; ask the site, then forget the old one",
                remedy=_openssh.forget_command(plan.key_name, path),
            )
    return NeedsPersonError(
        f"{route.name}: unknown host key {offered}, not in {plan.known_hosts_file}: "
        "compare it with what the site publishes, then add it",
        remedy=_openssh.scan_command(plan.address, plan.port, plan.known_hosts_file)
        if plan.direct
        else route.login,
    )


def reason(failure: Exception) -> str:
    """A library's or server's words on one line, safe to show."""
    match failure:
        case socket.gaierror():
            text = f"cannot resolve the name: {failure.strerror}"
        case ConnectionRefusedError():
            text = "connection refused"
        case TimeoutError():
            text = "timed out"
        case asyncssh.Error():
            text = failure.reason
        case OSError():
            text = str(failure)
        case _:
            text = str(failure)
    words = " ".join(text.split()) or type(failure).__name__
    return visible(words)[:_REASON_MAX]
