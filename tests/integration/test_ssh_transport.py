"""The SSH transport against a real sshd."""

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from jobmond.errors import ConfigError, NeedsPersonError, TransientTransportError
from jobmond.ports import Answer
from jobmond.transports.ssh import SshTransport
from jobmond.transports.ssh.line import Channel, Line
from tests.needs import need
from tests.sshd import Sshd, keygen, plain_user, processes_of, running_sshd

PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory without keys, configuration or agent."""
    place = tmp_path / "home"
    (place / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return place


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    with running_sshd() as running:
        yield running


@contextlib.asynccontextmanager
async def transport(sshd: Sshd, **settings: object) -> AsyncIterator[SshTransport]:
    """A transport to `sshd`; `settings` win, None takes one away."""
    keywords: dict[str, object] = {
        "hosts": ["127.0.0.1"],
        "port": sshd.port,
        "user": sshd.user,
        "identity_file": sshd.key,
        "known_hosts_file": sshd.known_hosts,
    }
    made = SshTransport(**{**keywords, **settings})  # type: ignore[arg-type] # keywords of the test's own
    try:
        yield made
    finally:
        await made.close()


async def ask(
    made: SshTransport, script: bytes = b"echo hello", *, timeout_s: float = PATIENCE_S
) -> Answer:
    return await made.run(script, timeout_s=timeout_s, max_bytes=1_000_000)


async def until(condition: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_at, "it never came true"
        await asyncio.sleep(0.02)


def sleeper(sleep: str = "sleep") -> tuple[str, bytes]:
    mark = f"jm-{uuid.uuid4()}"
    return mark, f"/bin/sh -c '{sleep} 600; : {mark}'; echo never".encode()


def open_sockets() -> int:
    def is_socket(name: str) -> bool:
        try:
            return os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except OSError:
            return False

    return sum(is_socket(name) for name in os.listdir("/proc/self/fd"))


async def refused(made: SshTransport, match: str) -> NeedsPersonError:
    with pytest.raises(NeedsPersonError, match=match) as caught:
        await ask(made)
    assert "\n" not in str(caught.value)
    return caught.value


# --- one connection


async def test_one_login_for_all_sweeps(sshd: Sshd) -> None:
    async with transport(sshd) as made:
        assert made.logins == 0
        for _ in range(3):
            assert await ask(made) == Answer(0, b"hello\n", b"")
        assert made.logins == 1
    assert sshd.logins() == 1


async def test_those_who_come_together_share_one_login(sshd: Sshd) -> None:
    async with transport(sshd) as made:
        await asyncio.gather(*(ask(made) for _ in range(8)))
        assert made.logins == 1


async def test_those_who_come_together_share_one_failure(sshd: Sshd) -> None:
    sshd.stop()
    async with transport(sshd) as made:
        failures = await asyncio.gather(*(ask(made) for _ in range(4)), return_exceptions=True)
        assert [type(f) for f in failures] == [TransientTransportError] * 4
        assert made.logins == 1


async def test_cancelling_one_who_waits_leaves_the_login_to_the_others(sshd: Sshd) -> None:
    async with transport(sshd) as made:
        first, second = asyncio.create_task(ask(made)), asyncio.create_task(ask(made))
        await until(lambda: made.logins)
        first.cancel()
        assert (await second).stdout == b"hello\n"
        assert made.logins == 1
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_a_connection_that_died_between_sweeps_is_made_anew_once(sshd: Sshd) -> None:
    async with transport(sshd) as made:
        await ask(made)
        sshd.drop_connections()
        assert (await ask(made)).stdout == b"hello\n"
        assert (await ask(made)).stdout == b"hello\n"
        assert made.logins == 2


async def test_a_connection_that_dies_under_a_script_is_no_answer(sshd: Sshd) -> None:
    mark, script = sleeper()
    async with transport(sshd) as made:
        running = asyncio.create_task(ask(made, b"echo partial; " + script))
        await until(lambda: processes_of(mark))
        sshd.drop_connections()
        with pytest.raises(TransientTransportError, match=r"127\.0\.0\.1: .*lost"):
            await running
        await until(lambda: not processes_of(mark))
        assert (await ask(made)).stdout == b"hello\n"
        assert made.logins == 2


async def test_closing_ends_what_runs_and_a_later_run_logs_in_again(sshd: Sshd) -> None:
    mark, script = sleeper()
    async with transport(sshd) as made:
        running = asyncio.create_task(ask(made, script))
        await until(lambda: processes_of(mark))
        await made.close()
        with pytest.raises(TransientTransportError):
            await running
        await until(lambda: not processes_of(mark))
        await ask(made)
        assert made.logins == 2


async def test_a_frozen_sshd_ends_in_time_and_connections_do_not_pile_up(sshd: Sshd) -> None:
    async with transport(sshd, connect_timeout_s=1, login_timeout_s=1) as made:
        await ask(made)
        before = open_sockets()
        sshd.freeze()
        for _ in range(3):
            with pytest.raises(TransientTransportError):
                await ask(made, timeout_s=1.5)
            assert open_sockets() <= before
        sshd.thaw()
        assert (await ask(made)).stdout == b"hello\n"
        assert open_sockets() <= before


async def test_frozen_under_a_script(sshd: Sshd) -> None:
    mark, script = sleeper()
    async with transport(sshd) as made:
        running = asyncio.create_task(ask(made, script, timeout_s=3))
        await until(lambda: processes_of(mark))
        sshd.freeze()
        with pytest.raises(TransientTransportError, match="no whole answer within 3 s"):
            await running
        sshd.thaw()
        await until(lambda: not processes_of(mark))
        assert (await ask(made)).stdout == b"hello\n"


async def test_a_far_side_that_runs_out_of_time_keeps_the_connection(sshd: Sshd) -> None:
    async with transport(sshd) as made:
        with pytest.raises(TransientTransportError, match="out of time at the far side"):
            await ask(made, b"sleep 600", timeout_s=2.5)
        await ask(made)
        assert made.logins == 1


async def test_more_scripts_than_sessions(sshd: Sshd) -> None:
    """sshd allows 10 sessions on a connection; 25 opened at once are 15 refusals."""
    async with transport(sshd) as made:
        answers = await asyncio.gather(
            *(ask(made, f"echo {n}".encode()) for n in range(25)),
        )
        assert [a.stdout for a in answers] == [f"{n}\n".encode() for n in range(25)]
        assert made.logins == 1


async def test_a_site_that_allows_fewer_sessions_makes_scripts_wait() -> None:
    with running_sshd(extra="MaxSessions 1") as sshd:
        mark, script = sleeper()
        async with transport(sshd) as made:
            running = asyncio.create_task(ask(made, script))
            await until(lambda: processes_of(mark))
            waiting = [asyncio.create_task(ask(made)) for _ in range(6)]
            with pytest.raises(TransientTransportError, match="no whole answer within 1 s"):
                await ask(made, timeout_s=1)
            # Who waited in vain has not taken the connection from the one that runs.
            assert processes_of(mark)
            assert not any(one.done() for one in waiting)
            running.cancel()
            await until(lambda: not processes_of(mark))
            assert [one.stdout for one in await asyncio.gather(*waiting)] == [b"hello\n"] * 6
            assert made.logins == 1


async def test_sessions_that_are_not_ours_are_a_passing_failure() -> None:
    with running_sshd(extra="MaxSessions 0") as sshd:
        async with transport(sshd, grace_s=0.1) as made:
            with pytest.raises(TransientTransportError, match="no channel: open failed"):
                await ask(made)
            assert made.logins == 1


async def test_a_refused_session_is_tried_once_more(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sshd refuses for a moment while it takes an earlier session down."""
    refusals = 1
    real = Line.session

    async def busy(line: Line, *arguments: Any) -> Channel:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            raise asyncssh.ChannelOpenError(2, "open failed")
        return await real(line, *arguments)

    monkeypatch.setattr(Line, "session", busy)
    async with transport(sshd, grace_s=0.1) as made:
        assert (await ask(made)).stdout == b"hello\n"
        refusals = 2
        with pytest.raises(TransientTransportError, match="no channel"):
            await ask(made)
        assert (await ask(made)).stdout == b"hello\n"
        assert made.logins == 1


async def test_sessions_opened_for_nobody_are_closed() -> None:
    """A cancelled opening must not use up a session for good."""
    with running_sshd(extra="MaxSessions 4") as sshd:
        async with transport(sshd) as made:
            await ask(made)
            for turns in range(16):
                opening = asyncio.create_task(ask(made))
                while not made._openings:
                    await asyncio.sleep(0)
                for _ in range(turns):  # of the event loop: cancelled at every stage
                    await asyncio.sleep(0)
                opening.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await opening
            for _ in range(20):  # sshd takes its time with sixteen
                with contextlib.suppress(TransientTransportError):
                    assert (await ask(made)).stdout == b"hello\n"
                    break
            else:
                pytest.fail("the sessions were never closed")
            assert made.logins == 1


# --- the far side


@pytest.mark.parametrize("who", ["self", "plain"])
@pytest.mark.parametrize("extra", ["", "SetEnv PATH=/nonexistent"], ids=["timeout", "no timeout"])
@pytest.mark.parametrize("end", ["cancel", "time", "lost"])
async def test_nothing_goes_on_running(who: str, extra: str, end: str) -> None:
    """For any user, with or without `timeout` on the host, whatever ends the script."""
    with contextlib.ExitStack() as stack:
        user = stack.enter_context(plain_user()) if who == "plain" else None
        sshd = stack.enter_context(running_sshd(user=user, extra=extra))
        mark, script = sleeper("/bin/sleep")
        async with transport(sshd) as made:
            running = asyncio.create_task(ask(made, script, timeout_s=3))
            await until(lambda: processes_of(mark))
            if end == "cancel":
                running.cancel()
            elif end == "lost":
                sshd.drop_connections()
            with pytest.raises((TransientTransportError, asyncio.CancelledError)):
                await running
            await until(lambda: not processes_of(mark))


@pytest.mark.parametrize("shell", ["sh", "bash", "csh", "tcsh", "fish", "zsh", "ksh"])
async def test_login_shells(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    with running_sshd(extra=f'ForceCommand exec {program} -c "$SSH_ORIGINAL_COMMAND"') as sshd:
        async with transport(sshd) as made:
            answer = await ask(made, b"echo out; echo err >&2; exit 3")
            assert answer == Answer(3, b"out\n", b"err\n")


async def test_what_the_login_shell_prints_is_dropped() -> None:
    banner = "printf 'Welcome to\\n\\n  LEONARDO\\nJMEND 1 0\\n'"
    with running_sshd(extra=f"ForceCommand {banner}; eval $SSH_ORIGINAL_COMMAND") as sshd:
        async with transport(sshd) as made:
            assert (await ask(made)).stdout == b"hello\n"


async def test_an_account_without_a_shell_is_no_answer() -> None:
    extra = "ForceCommand echo This account is not available.; exit 1"
    with running_sshd(extra=extra) as sshd:
        async with transport(sshd) as made:
            with pytest.raises(TransientTransportError, match=r"exit 1.*not available"):
                await ask(made)


async def test_exit_255_is_an_answer(sshd: Sshd) -> None:
    async with transport(sshd) as made:
        assert (await ask(made, b"exit 255")).exit_code == 255


async def test_a_far_shell_that_is_killed_is_no_answer(sshd: Sshd) -> None:
    async with transport(sshd) as made:
        with pytest.raises(TransientTransportError, match=r"signal KILL|exit 137"):
            await ask(made, b"kill -KILL 0")


# --- hosts


async def test_the_next_host_is_tried_after_a_passing_failure(sshd: Sshd) -> None:
    async with transport(sshd, hosts=["127.0.0.2", "127.0.0.1"]) as made:
        assert (await ask(made)).stdout == b"hello\n"
        await ask(made)
        assert made.logins == 2


async def test_no_host_answers(sshd: Sshd) -> None:
    async with transport(sshd, hosts=["127.0.0.2", "127.0.0.3"]) as made:
        with pytest.raises(TransientTransportError) as caught:
            await ask(made)
        assert "127.0.0.2: connection refused" in str(caught.value)
        assert "127.0.0.3: connection refused" in str(caught.value)
        assert f"ssh -o UserKnownHostsFile={sshd.known_hosts}" in str(caught.value)
        assert made.logins == 2


async def test_no_other_host_is_tried_after_a_refusal(sshd: Sshd, tmp_path: Path) -> None:
    stranger = keygen(tmp_path / "stranger")
    hosts = ["127.0.0.1", "127.0.0.1"]
    async with transport(sshd, hosts=hosts, identity_file=stranger) as made:
        await refused(made, "login refused")
        assert made.logins == 1


async def test_a_name_that_does_not_resolve(sshd: Sshd) -> None:
    async with transport(sshd, hosts=["no-such-host.invalid"]) as made:
        with pytest.raises(TransientTransportError, match=r"no-such-host\.invalid: cannot resolve"):
            await ask(made)


@pytest.mark.parametrize("greeting", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0" * 999])
async def test_a_port_that_closes_at_once(sshd: Sshd, greeting: bytes) -> None:
    """Also what a full sshd (MaxStartups) and a banned address look like."""

    async def slam(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(slam, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with transport(sshd, port=port) as made:
            with pytest.raises(TransientTransportError, match=r"127\.0\.0\.1: "):
                await ask(made)


async def test_a_port_that_never_speaks(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        before = open_sockets()
        async with transport(sshd, port=port, connect_timeout_s=0.5) as made:
            with pytest.raises(TransientTransportError, match="timed out"):
                await ask(made)
            assert open_sockets() == before


# --- host keys


async def test_an_unknown_host_key(sshd: Sshd, tmp_path: Path) -> None:
    empty = tmp_path / "known hosts"
    empty.touch()
    async with transport(sshd, known_hosts_file=empty) as made:
        refusal = await refused(made, "unknown host key ssh-ed25519 SHA256:")
        assert refusal.remedy == f"ssh-keyscan -p {sshd.port} 127.0.0.1 >> '{empty}'"
        need("ssh-keyscan", "ssh-keyscan is missing")
        subprocess.run(refusal.remedy, shell=True, check=True, capture_output=True)
        made.retry_login()
        assert (await ask(made)).stdout == b"hello\n"


async def test_a_changed_host_key(sshd: Sshd) -> None:
    sshd.stop()
    sshd.new_host_key()
    sshd.start()
    async with transport(sshd) as made:
        refusal = await refused(made, "host key has CHANGED, it is now ssh-ed25519 SHA256:")
        assert refusal.remedy == f"ssh-keygen -R '[127.0.0.1]:{sshd.port}' -f {sshd.known_hosts}"
        assert sshd.logins() == 0


async def test_a_changed_key_in_a_hashed_file_is_told_apart_too(sshd: Sshd) -> None:
    subprocess.run(["ssh-keygen", "-H", "-f", sshd.known_hosts], check=True, capture_output=True)
    async with transport(sshd) as made:
        await ask(made)
    sshd.stop()
    sshd.new_host_key()
    sshd.start()
    async with transport(sshd) as made:
        await refused(made, "CHANGED")


async def test_a_revoked_host_key(sshd: Sshd) -> None:
    line = sshd.known_hosts.read_text()
    sshd.known_hosts.write_text(f"{line}@revoked {line}")
    async with transport(sshd) as made:
        await refused(made, "revoked")


@pytest.mark.parametrize(
    "lax",
    [
        "StrictHostKeyChecking no",
        "StrictHostKeyChecking accept-new",
        "UserKnownHostsFile none",
        "UserKnownHostsFile /dev/null",
        "UserKnownHostsFile none\nGlobalKnownHostsFile none",
    ],
)
async def test_host_keys_are_checked_whatever_ssh_config_says(
    sshd: Sshd, home: Path, lax: str
) -> None:
    (home / ".ssh" / "config").write_text(f"Host *\n{lax}\n")
    async with transport(sshd, known_hosts_file=None) as made:
        await refused(made, "unknown host key")
    assert sshd.logins() == 0


async def test_the_users_own_known_hosts_file(sshd: Sshd, home: Path) -> None:
    shutil.copy(sshd.known_hosts, home / ".ssh" / "known_hosts")
    async with transport(sshd, known_hosts_file=None) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_a_known_hosts_file_that_cannot_be_read_as_one(sshd: Sshd) -> None:
    sshd.known_hosts.write_text("garbage\n")
    async with transport(sshd) as made:
        await refused(made, "known_hosts: Invalid known hosts entry")


# --- keys


async def test_a_refused_login_is_not_tried_again_until_somebody_acted(
    sshd: Sshd, tmp_path: Path
) -> None:
    stranger = keygen(tmp_path / "stranger")
    async with transport(sshd, identity_file=stranger) as made:
        first = await refused(made, f"login refused for {sshd.user}@127.0.0.1 port {sshd.port}")
        second = await refused(made, "login refused")
        assert (str(first), first.remedy) == (str(second), second.remedy)
        assert first.remedy == (
            f"ssh -o UserKnownHostsFile={sshd.known_hosts} -i {stranger} "
            f"-p {sshd.port} {sshd.user}@127.0.0.1 true"
        )
        assert made.logins == 1
        sshd.authorize(stranger)
        made.retry_login()
        assert (await ask(made)).stdout == b"hello\n"
        assert made.logins == 2


async def test_those_who_waited_for_a_channel_do_not_try_a_refused_login(
    sshd: Sshd, tmp_path: Path
) -> None:
    stranger = keygen(tmp_path / "stranger")
    async with transport(sshd, identity_file=stranger) as made:
        failures = await asyncio.gather(*(ask(made) for _ in range(9)), return_exceptions=True)
        assert {type(f) for f in failures} == {NeedsPersonError}
        assert made.logins == 1


@pytest.mark.parametrize(("kind", "form"), [("ed25519", ""), ("rsa", "PEM"), ("rsa", "PKCS8")])
async def test_an_encrypted_key_needs_an_agent(
    sshd: Sshd, tmp_path: Path, kind: str, form: str
) -> None:
    locked = keygen(tmp_path / "locked", passphrase="correct horse", kind=kind, form=form)
    sshd.authorize(locked)
    async with transport(sshd, identity_file=locked) as made:
        refusal = await refused(made, f"{locked} is encrypted and no agent offers it")
        assert refusal.remedy == f"ssh-add {locked}"


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An ssh-agent; yields its socket."""
    need("ssh-agent", "ssh-agent is missing (Debian: openssh-client)")
    sock = tmp_path / "agent"
    with subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(sock)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        give_up_at = time.monotonic() + PATIENCE_S
        while not sock.exists():
            assert time.monotonic() < give_up_at
        monkeypatch.setenv("SSH_AUTH_SOCK", str(sock))
        yield sock
        process.terminate()


def ssh_add(key: Path, tmp_path: Path, passphrase: str = "") -> None:
    ask_pass = tmp_path / "ask-pass"
    ask_pass.write_text(f"#!/bin/sh\necho '{passphrase}'\n")
    ask_pass.chmod(0o700)
    env = {**os.environ, "SSH_ASKPASS": str(ask_pass), "SSH_ASKPASS_REQUIRE": "force"}
    subprocess.run(["ssh-add", "-q", str(key)], check=True, env=env, capture_output=True)


async def test_an_encrypted_key_that_the_agent_holds(
    sshd: Sshd, agent: Path, tmp_path: Path
) -> None:
    locked = keygen(tmp_path / "locked", passphrase="correct horse")
    sshd.authorize(locked)
    ssh_add(locked, tmp_path, "correct horse")
    Path(f"{locked}.pub").unlink()  # the public part is in the private file too
    async with transport(sshd, identity_file=locked) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_the_agents_keys_serve_without_a_named_key(
    sshd: Sshd, agent: Path, tmp_path: Path
) -> None:
    ssh_add(sshd.key, tmp_path)
    async with transport(sshd, identity_file=None) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_a_public_key_names_one_of_the_agents(
    sshd: Sshd, agent: Path, tmp_path: Path
) -> None:
    ssh_add(sshd.key, tmp_path)
    async with transport(sshd, identity_file=f"{sshd.key}.pub") as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_only_the_named_key_of_a_full_agent_is_offered(agent: Path, tmp_path: Path) -> None:
    with running_sshd(extra="MaxAuthTries 2") as sshd:
        for number in range(4):
            ssh_add(keygen(tmp_path / f"key{number}"), tmp_path)
        ssh_add(sshd.key, tmp_path)
        async with transport(sshd) as made:
            assert (await ask(made)).stdout == b"hello\n"


async def test_too_many_keys_need_a_person(agent: Path, tmp_path: Path) -> None:
    with running_sshd(extra="MaxAuthTries 1") as sshd:
        for number in range(3):
            ssh_add(keygen(tmp_path / f"key{number}"), tmp_path)
        async with transport(sshd, identity_file=None) as made:
            await refused(made, "Too many authentication failures")


async def test_an_agent_that_is_gone_is_no_obstacle(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "gone"))
    async with transport(sshd) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_the_users_default_key(sshd: Sshd, home: Path) -> None:
    shutil.copy(sshd.key, home / ".ssh" / "id_ed25519")
    async with transport(sshd, identity_file=None) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_no_key_at_all(sshd: Sshd) -> None:
    async with transport(sshd, identity_file=None) as made:
        await refused(made, "login refused")


async def test_a_file_that_holds_no_key(sshd: Sshd, tmp_path: Path) -> None:
    poem = tmp_path / "poem"
    poem.write_text("roses are red\n")
    async with transport(sshd, identity_file=poem) as made:
        await refused(made, f"identity_file {poem} holds no key")


async def test_a_broken_key(sshd: Sshd, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text(
        "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"
    )
    async with transport(sshd, identity_file=broken) as made:
        await refused(made, str(broken))
    assert sshd.logins() == 0


async def test_nothing_in_common(sshd: Sshd) -> None:
    sshd.stop()
    sshd.extra = "Ciphers 3des-cbc"
    sshd.start()
    async with transport(sshd) as made:
        while True:
            # sshd finds out as well, and may hang up before its offer is read.
            with contextlib.suppress(TransientTransportError):
                await refused(made, "No matching encryption algorithm found")
                break


# --- ssh_config


def alias(sshd: Sshd, *, name: str = "leonardo", **over: str | None) -> str:
    said: dict[str, str | None] = {
        "HostName": "127.0.0.1",
        "Port": str(sshd.port),
        "User": sshd.user,
        "IdentityFile": str(sshd.key),
        "UserKnownHostsFile": str(sshd.known_hosts),
        **over,
    }
    lines = [f"  {key} {value}" for key, value in said.items() if value is not None]
    return "\n".join([f"Host {name}", *lines, ""])


def by_alias(
    sshd: Sshd, **settings: object
) -> contextlib.AbstractAsyncContextManager[SshTransport]:
    unset = {"port": None, "user": None, "identity_file": None, "known_hosts_file": None}
    return transport(sshd, **{"hosts": ["leonardo"], **unset, **settings})


async def test_an_alias_of_the_users_ssh_config(sshd: Sshd, home: Path) -> None:
    (home / ".ssh" / "config").write_text(alias(sshd))
    async with by_alias(sshd) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_another_ssh_config(sshd: Sshd, home: Path, tmp_path: Path) -> None:
    (home / ".ssh" / "config").write_text("Host leonardo\n  Port 1\n")
    other = tmp_path / "other_config"
    other.write_text(alias(sshd))
    async with by_alias(sshd, ssh_config_file=other) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_include_and_match_exec(sshd: Sshd, home: Path) -> None:
    (home / ".ssh" / "config").write_text(
        'Match originalhost leonardo exec "false"\n  Port 1\n'
        'Match originalhost leonardo exec "true"\n  Include sites/*.conf\n'
    )
    (home / ".ssh" / "sites").mkdir()
    (home / ".ssh" / "sites" / "one.conf").write_text(alias(sshd))
    async with by_alias(sshd) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_match_final(sshd: Sshd, home: Path) -> None:
    (home / ".ssh" / "config").write_text(
        f"{alias(sshd, Port=None, IdentityFile=None)}"
        f"Match final host 127.0.0.1\n  Port {sshd.port}\n  IdentityFile {sshd.key}\n"
    )
    async with by_alias(sshd) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_settings_win_over_ssh_config(sshd: Sshd, home: Path) -> None:
    (home / ".ssh" / "config").write_text(
        alias(sshd, Port="1", User="nobody-here", IdentityFile="/dev/null", ProxyJump="nowhere")
    )
    async with by_alias(
        sshd, port=sshd.port, user=sshd.user, identity_file=sshd.key, proxy_jump="none"
    ) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_options_that_would_spoil_the_answer(sshd: Sshd, home: Path) -> None:
    spoilers = {"RemoteCommand": "echo spoiled", "RequestTTY": "force", "ForwardAgent": "yes"}
    more = {"ForwardX11Trusted": "yes", "ControlMaster": "auto", "ControlPath": "/tmp/none-%r@%h"}
    (home / ".ssh" / "config").write_text(alias(sshd, **spoilers, **more, ProxyCommand="none"))
    async with by_alias(sshd) as made:
        answer = await ask(made, b"printf 'a\\nb'; test -t 1 || echo no terminal")
        assert answer.stdout == b"a\nbno terminal\n"


async def test_a_missing_key_of_ssh_config_is_no_error(sshd: Sshd, home: Path) -> None:
    said = alias(sshd).replace("IdentityFile", "IdentityFile ~/.ssh/id_gone\n  IdentityFile")
    (home / ".ssh" / "config").write_text(said)
    async with by_alias(sshd) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_an_encrypted_key_of_ssh_config(sshd: Sshd, home: Path, tmp_path: Path) -> None:
    locked = keygen(tmp_path / "locked", passphrase="correct horse")
    sshd.authorize(locked)
    (home / ".ssh" / "config").write_text(alias(sshd, IdentityFile=str(locked)))
    async with by_alias(sshd) as made:
        assert (await refused(made, "encrypted")).remedy == f"ssh-add {locked}"


async def test_a_host_key_alias(sshd: Sshd, home: Path) -> None:
    text = sshd.known_hosts.read_text()
    sshd.known_hosts.write_text(text.replace(f"[127.0.0.1]:{sshd.port}", "leo-any"))
    (home / ".ssh" / "config").write_text(alias(sshd, HostKeyAlias="leo-any"))
    async with by_alias(sshd) as made:
        await ask(made)
    sshd.stop()
    sshd.new_host_key()
    sshd.start()
    async with by_alias(sshd) as made:
        refusal = await refused(made, "CHANGED")
        assert refusal.remedy == f"ssh-keygen -R leo-any -f {sshd.known_hosts}"


PROXY = """
import os, socket, sys, threading
far = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def home() -> None:
    while data := far.recv(65536):
        os.write(1, data)
    os._exit(0)
threading.Thread(target=home).start()
while data := os.read(0, 65536):
    far.sendall(data)
os._exit(0)
"""


async def test_a_proxy_command(sshd: Sshd, home: Path, tmp_path: Path) -> None:
    (tmp_path / "proxy.py").write_text(PROXY)
    proxy = f"{sys.executable} {tmp_path}/proxy.py {sshd.port}"
    (home / ".ssh" / "config").write_text(alias(sshd, ProxyCommand=proxy, HostName="login.invalid"))
    sshd.known_hosts.write_text(sshd.known_hosts.read_text().replace("127.0.0.1", "login.invalid"))
    async with by_alias(sshd) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_a_proxy_command_that_does_not_exist(sshd: Sshd, home: Path) -> None:
    (home / ".ssh" / "config").write_text(alias(sshd, ProxyCommand="/nonexistent/proxy %h"))
    async with by_alias(sshd) as made:
        await refused(made, "leonardo: .*nonexistent")


async def test_a_broken_ssh_config(sshd: Sshd, home: Path) -> None:
    (home / ".ssh" / "config").write_text("Host leonardo\n  Port many\n")
    async with by_alias(sshd) as made:
        await refused(made, r"leonardo: .*\.ssh/config line 2: .*many")
        assert made.logins == 0


async def test_a_slow_match_exec_does_not_stop_the_daemon(sshd: Sshd, home: Path) -> None:
    """The program waits for us; the key is found only if we could act meanwhile."""
    slow = home / "slow"
    slow.write_text(
        f"touch {home}/started; n=0\n"
        f"while ! test -e {home}/go && test $n -lt 500; do n=$((n+1)); sleep 0.02; done\n"
        f"test -e {home}/go\n"
    )
    (home / ".ssh" / "config").write_text(
        f'Match originalhost leonardo exec "sh {slow}"\n  IdentityFile {sshd.key}\n'
        + alias(sshd, IdentityFile=None)
    )
    async with by_alias(sshd) as made:
        running = asyncio.create_task(ask(made))
        await until((home / "started").exists)
        (home / "go").touch()
        assert (await running).stdout == b"hello\n"


# --- jump hosts


@pytest.fixture
def gate() -> Iterator[Sshd]:
    with running_sshd() as running:
        yield running


async def test_through_a_jump_host_of_ssh_config(sshd: Sshd, gate: Sshd, home: Path) -> None:
    (home / ".ssh" / "config").write_text(alias(sshd, ProxyJump="gate") + alias(gate, name="gate"))
    async with by_alias(sshd) as made:
        assert (await ask(made)).stdout == b"hello\n"
        await ask(made)
        assert made.logins == 2
    assert (sshd.logins(), gate.logins()) == (1, 1)


async def test_through_a_jump_host_of_the_settings(sshd: Sshd, gate: Sshd) -> None:
    """Key and known_hosts of the settings serve for the jump host too."""
    gate.authorize(gate.key, sshd.key)
    sshd.known_hosts.write_text(sshd.known_hosts.read_text() + gate.known_hosts.read_text())
    async with transport(sshd, proxy_jump=f"{gate.user}@127.0.0.1:{gate.port}") as made:
        assert (await ask(made)).stdout == b"hello\n"
    assert gate.logins() == 1


async def test_through_two_jump_hosts(sshd: Sshd, gate: Sshd, home: Path) -> None:
    with running_sshd() as outer:
        (home / ".ssh" / "config").write_text(
            alias(sshd, ProxyJump="outer,gate")
            + alias(gate, name="gate", ProxyJump="nowhere.invalid")
            + alias(outer, name="outer")
        )
        async with by_alias(sshd) as made:
            assert (await ask(made)).stdout == b"hello\n"
        assert (outer.logins(), gate.logins(), sshd.logins()) == (1, 1, 1)


async def test_a_jump_host_behind_a_jump_host(sshd: Sshd, gate: Sshd, home: Path) -> None:
    with running_sshd() as outer:
        (home / ".ssh" / "config").write_text(
            alias(sshd, ProxyJump="gate")
            + alias(gate, name="gate", ProxyJump="outer")
            + alias(outer, name="outer")
        )
        async with by_alias(sshd) as made:
            assert (await ask(made)).stdout == b"hello\n"
        assert (outer.logins(), gate.logins(), sshd.logins()) == (1, 1, 1)


async def test_a_jump_host_for_all_hosts_holds_not_for_itself(
    sshd: Sshd, gate: Sshd, home: Path
) -> None:
    (home / ".ssh" / "config").write_text(
        alias(sshd) + alias(gate, name="gate") + f"Host *\n  ProxyJump gate:{gate.port}\n"
    )
    async with by_alias(sshd) as made:
        assert (await ask(made)).stdout == b"hello\n"


async def test_jump_hosts_in_a_circle(sshd: Sshd, gate: Sshd, home: Path) -> None:
    (home / ".ssh" / "config").write_text(
        alias(sshd, ProxyJump="a") + "Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n"
    )
    async with by_alias(sshd) as made:
        await refused(made, "circle")


async def test_a_jump_host_that_refuses_is_named(sshd: Sshd, gate: Sshd, home: Path) -> None:
    gate.authorize()
    (home / ".ssh" / "config").write_text(alias(sshd, ProxyJump="gate") + alias(gate, name="gate"))
    async with by_alias(sshd) as made:
        refusal = await refused(made, "leonardo: jump host gate: login refused")
        assert refusal.remedy == "ssh gate true"
        assert sshd.logins() == 0


async def test_a_jump_host_with_another_key_is_named(sshd: Sshd, gate: Sshd, home: Path) -> None:
    gate.known_hosts.write_text("")
    (home / ".ssh" / "config").write_text(alias(sshd, ProxyJump="gate") + alias(gate, name="gate"))
    async with by_alias(sshd) as made:
        refusal = await refused(made, "leonardo: jump host gate: unknown host key")
        assert refusal.remedy == "ssh gate true"


async def test_a_host_that_the_jump_host_cannot_reach(sshd: Sshd, gate: Sshd, home: Path) -> None:
    sshd.stop()
    (home / ".ssh" / "config").write_text(alias(sshd, ProxyJump="gate") + alias(gate, name="gate"))
    before = open_sockets()
    async with by_alias(sshd) as made:
        with pytest.raises(TransientTransportError, match="leonardo: "):
            await ask(made)
        await asyncio.sleep(0)
        assert open_sockets() == before


async def test_a_jump_host_that_dies_takes_the_connection_with_it(
    sshd: Sshd, gate: Sshd, home: Path
) -> None:
    (home / ".ssh" / "config").write_text(alias(sshd, ProxyJump="gate") + alias(gate, name="gate"))
    async with by_alias(sshd) as made:
        await ask(made)
        gate.drop_connections()
        assert (await ask(made)).stdout == b"hello\n"
        assert made.logins == 4


# --- the rest


async def test_asyncssh_is_quiet(sshd: Sshd, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with transport(sshd) as made:
        await ask(made)
    assert [r for r in caplog.records if r.name.startswith("asyncssh")] == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hosts": []}, "no host"),
        ({"hosts": [""]}, "no host name"),
        ({"hosts": ["alice@leonardo"]}, "`user`"),
        ({"hosts": ["-oProxyCommand=x"]}, "no host name"),
        ({"hosts": ["leo\nnardo"]}, "no host name"),
        ({"identity_file": "/nonexistent/key"}, "identity_file: /nonexistent/key does not exist"),
        ({"identity_file": "/"}, "identity_file: / does not exist or is no file"),
        ({"known_hosts_file": "/nonexistent/kh"}, "known_hosts_file: /nonexistent/kh"),
        ({"ssh_config_file": "~/nonexistent"}, "ssh_config_file: /.*/nonexistent"),
        ({"proxy_jump": "gate:many"}, "proxy_jump: .*gate:many"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SshTransport(**{"hosts": ["leonardo"], **settings})  # type: ignore[arg-type] # keywords of the test's own


async def test_nothing_is_contacted_before_the_first_run(sshd: Sshd) -> None:
    waiting: Awaitable[Answer]
    async with transport(sshd) as made:
        waiting = ask(made)
        assert made.logins == 0
        await waiting
