"""Which failure is tried again and which waits for a person, as a table."""

import errno
import socket
from pathlib import Path

import asyncssh
import pytest

from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.transports.ssh.failures import (
    Doorman,
    channel_failure,
    login_failure,
    reason,
    unusable,
)
from jobmond.transports.ssh.plan import Plan, Route

ROUTE = Route(host="login.leonardo", user="alice", port=2222)


def planned(**over: object) -> Plan:
    said: dict[str, object] = {
        "options": {},
        "stops": [],
        "user": "alice",
        "address": "10.0.0.1",
        "port": 2222,
        "key_name": "[10.0.0.1]:2222",
        "direct": True,
        "known": [],
        "known_hosts_file": Path("/k"),
        "locked": [],
    }
    return Plan(**{**said, **over})  # type: ignore[arg-type] # keywords of the test's own


TRANSIENT = [
    ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
    ConnectionResetError(errno.ECONNRESET, "reset"),
    BrokenPipeError(),
    TimeoutError(),
    TimeoutError(errno.ETIMEDOUT, "timed out"),
    OSError(errno.EHOSTUNREACH, "no route to host"),
    OSError(errno.ENETUNREACH, "network is unreachable"),
    OSError("Multiple exceptions: a, b"),
    socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
    socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
    asyncssh.ConnectionLost("Connection lost"),
    asyncssh.ConnectionLost("Login timeout expired"),
    asyncssh.ChannelOpenError(2, "Connection refused"),
    asyncssh.ProtocolError("Too many banner lines"),
    asyncssh.ProtocolNotSupported("Unsupported SSH version"),
    asyncssh.MACError("MAC verification failed"),
    asyncssh.ServiceNotAvailable("Unexpected service"),
    asyncssh.DisconnectError(12, "Too many connections"),
]
NEEDS_PERSON = [
    asyncssh.PermissionDenied("Permission denied"),
    asyncssh.HostKeyNotVerifiable("Host key is not trusted"),
    asyncssh.KeyImportError("Invalid private key"),
    asyncssh.KeyEncryptionError("Unable to decrypt"),
    asyncssh.ProtocolError("Too many authentication failures"),
    asyncssh.DisconnectError(2, "Too many authentication failures for alice"),
    asyncssh.KeyExchangeFailed("No matching key exchange algorithm found"),
    asyncssh.IllegalUserName("no"),
    asyncssh.ConfigParseError("line 2: bad"),
    ValueError("3des is not a valid encryption algorithm"),
    UnicodeError("label too long"),
    FileNotFoundError(errno.ENOENT, "No such file or directory", "proxy"),
]


@pytest.mark.parametrize("failure", TRANSIENT, ids=repr)
def test_tried_again(failure: Exception) -> None:
    error = login_failure(ROUTE, planned(), Doorman(), failure)
    assert type(error) is TransientTransportError
    assert str(error).startswith("login.leonardo: ")
    assert str(error).endswith("; see `ssh -p 2222 alice@login.leonardo true`")


@pytest.mark.parametrize("failure", NEEDS_PERSON, ids=repr)
def test_waits_for_a_person(failure: Exception) -> None:
    error = login_failure(ROUTE, planned(), Doorman(), failure)
    assert isinstance(error, NeedsPersonError)
    assert str(error).startswith("login.leonardo: ")
    assert error.remedy == "ssh -p 2222 alice@login.leonardo true"


def test_a_locked_key_is_the_likely_reason_for_a_refusal() -> None:
    plan = planned(locked=[Path("/keys/a b")])
    error = login_failure(ROUTE, plan, Doorman(), asyncssh.PermissionDenied("no"))
    assert isinstance(error, NeedsPersonError)
    assert error.remedy == "ssh-add '/keys/a b'"
    assert str(error) == (
        "login.leonardo: login refused for alice@10.0.0.1 port 2222: no; "
        "/keys/a b is encrypted and no agent offers it"
    )


def test_a_locked_key_has_nothing_to_do_with_other_failures() -> None:
    plan = planned(locked=[Path("/keys/a")])
    error = login_failure(ROUTE, plan, Doorman(), asyncssh.KeyExchangeFailed("no"))
    assert isinstance(error, NeedsPersonError)
    assert error.remedy == "ssh -p 2222 alice@login.leonardo true"


def offered(host: str, addr: str, port: int) -> tuple[Doorman, asyncssh.SSHKey]:
    key = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()
    doorman = Doorman()
    assert doorman.validate_host_public_key(host, addr, port, key) is False
    return doorman, key


def known(line: str) -> asyncssh.SSHKnownHosts:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    return asyncssh.SSHKnownHosts(f"{line} {other}")


NOT_TRUSTED = asyncssh.HostKeyNotVerifiable("Host key is not trusted for host 10.0.0.1")


def test_an_unknown_host_key() -> None:
    doorman, key = offered("leo", "10.0.0.1", 2222)
    plan = planned(known=[(Path("/k"), known("elsewhere"))])
    error = login_failure(ROUTE, plan, doorman, NOT_TRUSTED)
    assert isinstance(error, NeedsPersonError)
    assert f"unknown host key ssh-ed25519 {key.get_fingerprint()}, not in /k" in str(error)
    assert error.remedy == "ssh-keyscan -p 2222 10.0.0.1 >> /k"


def test_an_unknown_host_key_that_cannot_be_scanned_from_here() -> None:
    doorman, _ = offered("leo", "", 22)
    error = login_failure(ROUTE, planned(direct=False), doorman, NOT_TRUSTED)
    assert isinstance(error, NeedsPersonError)
    assert error.remedy == "ssh -p 2222 alice@login.leonardo true"


@pytest.mark.parametrize(
    ("line", "port"),
    [("leo", 22), ("[leo]:2222", 2222), ("leo", 2222), ("10.0.0.1", 22), ("*.other,le*", 22)],
)
def test_a_changed_host_key_is_found_in_its_file(line: str, port: int) -> None:
    doorman, key = offered("leo", "10.0.0.1", port)
    plan = planned(known=[(Path("/a"), known("elsewhere")), (Path("/b"), known(line))])
    error = login_failure(ROUTE, plan, doorman, NOT_TRUSTED)
    assert isinstance(error, NeedsPersonError)
    assert f"CHANGED, it is now ssh-ed25519 {key.get_fingerprint()}" in str(error)
    assert error.remedy == "ssh-keygen -R '[10.0.0.1]:2222' -f /b"


def test_a_jump_host_is_named_with_the_host_behind_it() -> None:
    gate = Route(host="gate", behind="login.leonardo", jump="none")
    error = unusable(gate, ValueError("no"))
    assert str(error) == "login.leonardo: jump host gate: no"
    assert error.remedy == "ssh gate true"


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (ConnectionRefusedError(111, "Connect call failed"), "connection refused"),
        (TimeoutError(), "timed out"),
        (socket.gaierror(-2, "Name unknown"), "cannot resolve the name: Name unknown"),
        (OSError(errno.EHOSTUNREACH, "No route"), "[Errno 113] No route"),
        (asyncssh.ConnectionLost("gone\r\n\x1b[31mred"), "gone \\x1b[31mred"),
        (asyncssh.DisconnectError(11, ""), "DisconnectError"),
        (ValueError("a" * 999), "a" * 300),
    ],
)
def test_a_servers_words_are_one_safe_line(failure: Exception, words: str) -> None:
    assert reason(failure) == words


def test_a_connection_that_takes_no_script() -> None:
    error = channel_failure("leo", asyncssh.ChannelOpenError(2, "open failed"))
    assert str(error) == "leo: no channel: open failed"
