"""OpenSSH's files and commands, as bytes and words."""

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.errors import ConfigError
from jobmond.transports import _openssh
from tests.needs import need
from tests.sshd import keygen

HOME = Path("/home/alice")
TOKENS = {"%": "%", "d": "/home/alice", "h": "login.leonardo", "r": "alice"}


@pytest.mark.parametrize("passphrase", ["", "correct horse"])
@pytest.mark.parametrize(
    ("kind", "form"),
    [("ed25519", ""), ("ecdsa", ""), ("rsa", ""), ("rsa", "PEM"), ("rsa", "PKCS8")],
)
def test_real_key_files(tmp_path: Path, kind: str, form: str, passphrase: str) -> None:
    need("ssh-keygen", "ssh-keygen is missing (Debian: openssh-client)")
    path = keygen(tmp_path / "key", passphrase=passphrase, kind=kind, form=form)
    blob = base64.b64decode(Path(f"{path}.pub").read_text().split()[1])
    whole = _openssh.KeyFile(path, private=True, encrypted=bool(passphrase), public=blob)
    assert _openssh.read_key_file(path) == whole
    public = _openssh.read_key_file(Path(f"{path}.pub"))
    assert public == _openssh.KeyFile(
        Path(f"{path}.pub"), private=False, encrypted=False, public=blob
    )
    Path(f"{path}.pub").unlink()
    assert _openssh.read_key_file(path).public == (None if form else blob)


def test_a_missing_key_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        _openssh.read_key_file(tmp_path / "none")


@given(st.binary())
def test_any_bytes_are_taken_for_a_key_file(raw: bytes) -> None:
    encrypted, public = _openssh.key_facts(raw)
    assert encrypted in (True, False)
    assert public is None or isinstance(public, bytes)


@given(st.binary())
def test_any_body_of_an_openssh_key(body: bytes) -> None:
    raw = (
        b"-----BEGIN OPENSSH PRIVATE KEY-----\n"
        + base64.b64encode(b"openssh-key-v1\0" + body)
        + b"\n-----END OPENSSH PRIVATE KEY-----\n"
    )
    encrypted, public = _openssh.key_facts(raw)
    assert encrypted in (True, False)
    assert public is None or public in body


def test_a_key_file_in_plain_sight() -> None:
    none = b"\0\0\0\4none"
    body = b"openssh-key-v1\0" + none + none + b"\0\0\0\0" + b"\0\0\0\1" + b"\0\0\0\3key"
    raw = b"-----BEGIN OPENSSH PRIVATE KEY-----\n%s\n-----END" % base64.b64encode(body)
    assert _openssh.key_facts(raw) == (False, b"key")
    locked = raw.replace(base64.b64encode(body), base64.b64encode(body.replace(b"none", b"aes!")))
    assert _openssh.key_facts(locked) == (True, b"key")
    assert _openssh.key_facts(b"-----BEGIN OPENSSH PRIVATE KEY-----\n*\n-----END") == (False, None)


@pytest.mark.parametrize(
    ("raw", "blob"),
    [
        (b"ssh-ed25519 AAAAaGVsbG8= a comment\n", b"\0\0\0hello"),
        (b"ssh-ed25519 AAAAaGVsbG8=", b"\0\0\0hello"),
        (b"ssh-ed25519 AAAA*", None),
        (b"ssh-ed25519 aGVsbG8=", None),
        (b"ssh-ed25519", None),
        (b"", None),
    ],
)
def test_public_key_files(raw: bytes, blob: bytes | None) -> None:
    assert _openssh.public_blob(raw) == blob


def test_default_keys_are_those_that_exist(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").touch()
    (tmp_path / ".ssh" / "id_ed25519").touch()
    (tmp_path / ".ssh" / "id_other").touch()
    assert _openssh.default_key_paths(tmp_path) == [
        tmp_path / ".ssh" / "id_ed25519",
        tmp_path / ".ssh" / "id_rsa",
    ]


@pytest.mark.parametrize(
    ("user_files", "global_files", "paths"),
    [
        (
            None,
            None,
            [
                "/home/alice/.ssh/known_hosts",
                "/home/alice/.ssh/known_hosts2",
                "/etc/ssh/ssh_known_hosts",
                "/etc/ssh/ssh_known_hosts2",
            ],
        ),
        (["~/mine"], [], ["/home/alice/mine"]),
        (["%d/%h-%r", "/a%%b"], ["none"], ["/home/alice/login.leonardo-alice", "/a%b"]),
        ([], [], []),
        (["NONE"], ["/x%z"], ["/x%z"]),
    ],
)
def test_where_host_keys_are_looked_up(
    user_files: list[str] | None, global_files: list[str] | None, paths: list[str]
) -> None:
    found = _openssh.known_hosts_paths(user_files, global_files, home=HOME, tokens=TOKENS)
    assert found == [Path(p) for p in paths]


def test_login_commands() -> None:
    assert _openssh.Login("leonardo").command == "ssh leonardo true"
    assert _openssh.Login("h", user="alice", port=2222).command == "ssh -p 2222 alice@h true"
    assert (
        _openssh.Login(
            "h",
            identity_file=Path("/a key"),
            config_file=Path("/c"),
            known_hosts_file=Path("/k"),
            jump="gate",
        ).command
        == "ssh -F /c -o UserKnownHostsFile=/k -i '/a key' -J gate h true"
    )
    assert _openssh.Login("$(reboot)").command == "ssh '$(reboot)' true"


def test_commands_for_keys() -> None:
    known = Path("/home/alice/known hosts")
    assert _openssh.scan_command("h", 22, known) == "ssh-keyscan h >> '/home/alice/known hosts'"
    assert _openssh.scan_command("h", 99, Path("/k")) == "ssh-keyscan -p 99 h >> /k"
    assert _openssh.forget_command("[h]:99", Path("/k")) == "ssh-keygen -R '[h]:99' -f /k"
    assert _openssh.known_hosts_name("h", 22) == "h"
    assert _openssh.known_hosts_name("h", 99) == "[h]:99"
    assert _openssh.add_command(Path("/a key")) == "ssh-add '/a key'"


@pytest.mark.parametrize(
    ("jump", "hosts"),
    [
        (None, []),
        ("", []),
        ("none", []),
        ("None", []),
        ("gate", [("gate", None, None)]),
        ("bob@gate:99", [("gate", "bob", 99)]),
        ("a, b@c@b:1", [("a", None, None), ("b", "b@c", 1)]),
        ("ssh://bob@gate:99/", [("gate", "bob", 99)]),
        ("[fe80::1]:99", [("fe80::1", None, 99)]),
        ("bob@[fe80::1]", [("fe80::1", "bob", None)]),
    ],
)
def test_jump_hosts(jump: str | None, hosts: list[tuple[str, str | None, int | None]]) -> None:
    assert _openssh.stops(jump) == [_openssh.Stop(*host) for host in hosts]


@pytest.mark.parametrize("jump", ["gate:many", "gate:-1", "gate:²", "a,,b", ":22", "bob@"])
def test_words_that_are_no_jump_host(jump: str) -> None:
    with pytest.raises(ValueError, match="ProxyJump"):
        _openssh.stops(jump)


@given(st.text())
def test_any_words_as_jump_hosts(jump: str) -> None:
    try:
        for stop in _openssh.stops(jump):
            assert stop.host
    except ValueError:
        pass


def test_the_command_that_opens_a_master() -> None:
    login = _openssh.Login("h", user="alice", port=2222, config_file=Path("/c"), jump="gate")
    assert _openssh.master_command(login, Path("/run/a b/100%"), keepalive_s=15) == (
        "ssh -fNM -S '/run/a b/100%%' -o ControlPersist=no -o ServerAliveInterval=15 "
        "-o ServerAliveCountMax=3 -F /c -J gate -p 2222 alice@h"
    )
    short = _openssh.master_command(_openssh.Login("h"), Path("/s"), keepalive_s=0.2)
    assert "ServerAliveInterval=1 " in short  # 0 would be never
    hostile = _openssh.master_command(_openssh.Login("$(reboot)"), Path("/s;x"), keepalive_s=1)
    assert hostile.startswith("ssh -fNM -S '/s;x' ")
    assert hostile.endswith(" '$(reboot)'")


def test_commands_for_sockets() -> None:
    assert _openssh.stale_command(Path("/run/a b")) == "rm -f '/run/a b'"
    assert _openssh.folder_command(Path("/run/a b")) == "mkdir -p -m 700 '/run/a b'"


def test_what_ssh_says_about_its_configuration() -> None:
    said = b"user alice\nhostname 127.0.0.1\nidentityfile ~/.ssh/a\nidentityfile ~/.ssh/b\n"
    said += b"controlpath /home/al ice/cm-\xff\nforkafterauthentication\n"
    assert _openssh.told(said) == {
        "user": "alice",
        "hostname": "127.0.0.1",
        "identityfile": "~/.ssh/a",
        "controlpath": "/home/al ice/cm-\udcff",
        "forkafterauthentication": "",
    }


@given(st.binary())
def test_any_bytes_are_taken_for_a_configuration(raw: bytes) -> None:
    assert all(isinstance(value, str) for value in _openssh.told(raw).values())


@pytest.mark.parametrize("hosts", [[], [""], ["-oProxyCommand=x"], ["alice@h"], ["a\nb"]])
def test_what_is_no_host(hosts: list[str]) -> None:
    with pytest.raises(ConfigError, match="host"):
        _openssh.checked_hosts(hosts, "openssh")
    assert _openssh.checked_hosts("h", "ssh") == ("h",)
