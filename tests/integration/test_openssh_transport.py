"""The transport through the user's own ssh, against a real sshd that counts who comes.

Every program it starts gets the way to sshd and a key that is accepted, so that a login of its
own would be made and counted if anything but the transport's own options were in the way.
"""

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.ports import Answer
from jobmond.transports.openssh import OpensshTransport
from jobmond.transports.openssh.master import Master, check_words, session_words
from tests.needs import need
from tests.person import Site, folder_for_masters, second_factor_site
from tests.sshd import processes_of, running_sshd

PATIENCE_S = 30.0
HELLO = Answer(0, b"hello\n", b"")


@pytest.fixture
def place() -> Iterator[Path]:
    with folder_for_masters() as folder:
        yield folder


@pytest.fixture
def site(place: Path) -> Iterator[Site]:
    """A host that wants a key only: the same to the transport, and every user can test it."""
    with running_sshd(extra="LogLevel VERBOSE") as sshd:
        yield Site(sshd, place)


@pytest.fixture
def guarded(place: Path) -> Iterator[Site]:
    """A host that wants a key and then an answer from the keyboard."""
    with second_factor_site(place) as site:
        yield site


@contextlib.asynccontextmanager
async def transport(site: Site, **settings: object) -> AsyncIterator[OpensshTransport]:
    keywords: dict[str, object] = {
        "hosts": ["127.0.0.1"],
        "user": site.sshd.user,
        "port": site.sshd.port,
        "identity_file": site.sshd.key,
        "known_hosts_file": site.sshd.known_hosts,
        "control_path": site.control,
        "program": site.program,
    }
    made = OpensshTransport(**{**keywords, **settings})  # type: ignore[arg-type] # keywords of the test's own
    yield made
    await made.close()
    assert made.logins == 0


async def ask(
    made: OpensshTransport, script: bytes = b"echo hello", *, timeout_s: float = PATIENCE_S
) -> Answer:
    return await made.run(script, timeout_s=timeout_s, max_bytes=1_000_000)


async def refused(made: OpensshTransport, match: str) -> NeedsPersonError:
    with pytest.raises(NeedsPersonError, match=match) as caught:
        await ask(made)
    assert "\n" not in str(caught.value)
    return caught.value


async def until(condition: object) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not condition():  # type: ignore[operator] # any callable
        assert time.monotonic() < give_up_at, "it never came true"
        await asyncio.sleep(0.02)


# --- a host with a second factor


async def test_everything_goes_through_the_one_login_of_a_person(guarded: Site) -> None:
    async with transport(guarded) as made:
        nobody = await refused(made, r"^127\.0\.0\.1: nobody is logged in, there is no master")
        assert nobody.remedy is not None
        assert nobody.remedy.startswith(f"ssh -fNM -S {guarded.control} -o ControlPersist=no ")
        assert not await made.acted()
        assert guarded.sshd.connections() == 0
        guarded.person(nobody.remedy)
        assert await made.acted()
        who = await ask(made, b"id -un; exit 255")
        assert who == Answer(255, f"{guarded.sshd.user}\n".encode(), b"")
        assert await asyncio.gather(*(ask(made) for _ in range(8))) == [HELLO] * 8
    log = guarded.sshd.log.read_text()
    assert guarded.sshd.connections() == 1
    assert log.count("Accepted keyboard-interactive/pam") == 1


async def test_without_one_nobody_ever_tries_to_log_in(guarded: Site) -> None:
    async with transport(guarded) as made:
        for _ in range(3):
            await refused(made, "nobody is logged in")
            made.retry_login()
        failures = await asyncio.gather(*(ask(made) for _ in range(6)), return_exceptions=True)
        assert {type(f) for f in failures} == {NeedsPersonError}
    assert guarded.sshd.connections() == 0


async def test_a_master_that_was_killed_is_missed_and_replaced_by_a_person(guarded: Site) -> None:
    async with transport(guarded) as made:
        guarded.person((await refused(made, "nobody")).remedy or "")
        assert await ask(made) == HELLO
        guarded.kill_master()
        for _ in range(3):
            gone = await refused(made, r"nobody is logged in any more, .*/cm has ended")
        assert guarded.sshd.connections() == 1
        assert (gone.remedy or "").startswith(f"rm -f {guarded.control} && ssh -fNM -S ")
        guarded.person(gone.remedy or "")
        assert await ask(made) == HELLO
    assert guarded.sshd.connections() == 2


# --- never a login


@pytest.mark.parametrize("barred", [True, False])
@pytest.mark.parametrize("socket", ["missing", "stale", "a file"])
async def test_ssh_itself_cannot_fall_back(site: Site, socket: str, barred: bool) -> None:
    """Where the master goes in the moment between the look and the session."""
    if socket == "stale":
        site.log_in()
        site.kill_master()
    elif socket == "a file":
        site.control.touch()
    before = site.sshd.connections()
    master = Master("127.0.0.1", site.control, 0)
    words = session_words(site.program, master, "echo hello")
    if not barred:  # what the test would see otherwise
        free = {
            "ProxyCommand=false": "ProxyCommand=none",
            "PreferredAuthentications=none": "PreferredAuthentications=publickey",
        }
        words = [free.get(word, word) for word in words]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    logged_in = site.sshd.connections() - before
    assert (done.returncode, logged_in) == ((255, 0) if barred else (0, 1))


async def test_a_look_at_a_master_is_no_login_either(site: Site) -> None:
    words = check_words(site.program, "127.0.0.1", site.control)
    assert subprocess.run(words, capture_output=True, check=False).returncode == 255
    assert site.sshd.connections() == 0


async def test_a_master_that_dies_under_a_script(site: Site) -> None:
    site.log_in()
    async with transport(site) as made:
        running = asyncio.create_task(ask(made, b"echo partial; sleep 600"))
        await until(lambda: "Starting session" in site.sshd.log.read_text())
        site.kill_master()
        with pytest.raises(NeedsPersonError, match="nobody is logged in any more"):
            await running
    assert site.sshd.connections() == 1


async def test_a_connection_that_breaks_under_a_script(site: Site) -> None:
    """The master goes with it, and takes its socket away."""
    site.log_in()
    async with transport(site) as made:
        running = asyncio.create_task(ask(made, b"echo partial; sleep 600"))
        await until(lambda: "Starting session" in site.sshd.log.read_text())
        site.sshd.drop_connections()
        with pytest.raises((NeedsPersonError, TransientTransportError)) as caught:
            await running
        assert "partial" not in str(caught.value)
        await until(lambda: not site.control.exists())
        await refused(made, "nobody is logged in, there is no master")
    assert site.sshd.connections() == 1


async def test_a_client_that_is_killed_is_no_answer(site: Site) -> None:
    site.log_in()
    async with transport(site) as made:
        running = asyncio.create_task(ask(made, b"echo partial; sleep 600"))
        await until(lambda: processes_of("exec /bin/sh -c"))
        await until(lambda: "Starting session" in site.sshd.log.read_text())
        for pid in processes_of("exec /bin/sh -c"):
            if str(site.control).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(TransientTransportError, match=r"did not run to its end \(signal 9\)"):
            await running
        assert await ask(made) == HELLO
    assert site.sshd.connections() == 1


# --- sessions


@pytest.fixture
def narrow(place: Path) -> Iterator[Site]:
    with running_sshd(extra="LogLevel VERBOSE\nMaxSessions 2") as sshd:
        site = Site(sshd, place)
        site.log_in()
        yield site


async def test_more_scripts_than_sessions_wait_for_each_other(narrow: Site) -> None:
    async with transport(narrow, channels=6, grace_s=0.2) as made:
        scripts = [f"sleep 0.2; echo {n}".encode() for n in range(8)]
        answers = await asyncio.gather(*(ask(made, script) for script in scripts))
        assert [a.stdout for a in answers] == [f"{n}\n".encode() for n in range(8)]
    assert narrow.sshd.connections() == 1


async def test_sessions_of_the_person_take_the_place(narrow: Site) -> None:
    words = [narrow.program, "-F", "none", "-S", str(narrow.control), "x", "echo up; read -r line"]
    theirs = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)
    ]
    for one in theirs:
        assert one.stdout is not None
        assert one.stdout.readline() == b"up\n"
    async with transport(narrow, grace_s=0.2) as made:
        for _ in range(2):
            with pytest.raises(TransientTransportError, match=r"no further session.*MaxSes"):
                await ask(made)
        for one in theirs:
            one.communicate(b"\n")
        assert await ask(made) == HELLO
    assert narrow.sshd.connections() == 1


async def test_a_script_that_the_site_does_not_run(place: Path) -> None:
    said = "echo 'Your account has expired.' >&2; exit 1"
    with running_sshd(extra=f"LogLevel VERBOSE\nForceCommand {said}") as sshd:
        site = Site(sshd, place)
        site.log_in()
        async with transport(site) as made:
            with pytest.raises(TransientTransportError, match=r"exit 1\): Your account has exp"):
                await ask(made)


# --- silence


async def test_a_master_that_does_not_answer(site: Site) -> None:
    site.log_in()
    pid = site.master_pid()
    async with transport(site, check_timeout_s=0.5) as made:
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(TransientTransportError, match=r"/cm gave no answer within 0\.5 s"):
            await ask(made)
        assert not await made.acted()
        os.kill(pid, signal.SIGCONT)
    async with transport(site) as made:
        assert await ask(made) == HELLO
    assert site.sshd.connections() == 1


async def test_a_host_that_does_not_answer(site: Site) -> None:
    site.log_in()
    async with transport(site) as made:
        site.sshd.freeze()
        with pytest.raises(TransientTransportError, match=r"no whole answer within 1 s"):
            await ask(made, timeout_s=1)
        site.sshd.thaw()
        assert await ask(made) == HELLO
    assert site.sshd.connections() == 1


async def test_what_the_remedy_opens_notices_a_dead_host_by_itself(site: Site) -> None:
    async with transport(site, keepalive_interval_s=1) as made:
        site.person((await refused(made, "nobody")).remedy or "")
        site.sshd.freeze()
        await until(lambda: not site.control.exists())
        site.sshd.thaw()


# --- where the socket is


def config(site: Site, text: str) -> Path:
    path = site.place / "config"
    path.write_text(text)
    return path


async def test_ssh_config_says_where_the_socket_is(site: Site) -> None:
    """What a person has already is used: an alias, a ControlPath with tokens, a shared login."""
    said = config(
        site,
        f"Host lab\n HostName 127.0.0.1\n Port {site.sshd.port}\n User {site.sshd.user}\n"
        f" IdentityFile {site.sshd.key}\n UserKnownHostsFile {site.sshd.known_hosts}\n"
        f" ControlPath {site.place}/%n-%r@%h:%p\n ControlMaster auto\n ControlPersist yes\n",
    )
    socket = site.place / f"lab-{site.sshd.user}@127.0.0.1:{site.sshd.port}"
    async with transport(
        site,
        hosts=["lab"],
        control_path=None,
        ssh_config_file=said,
        user=None,
        port=None,
        identity_file=None,
        known_hosts_file=None,
        program="ssh",
    ) as made:
        nobody = await refused(made, f"^lab: nobody is logged in.* {socket}$")
        assert f"-S {socket} " in (nobody.remedy or "")
        assert (nobody.remedy or "").endswith(f" -F {said} lab")
        site.person(f"ssh -F {said} lab true")  # as they always did
        assert await ask(made) == HELLO
    assert site.sshd.connections() == 1


async def test_the_setting_wins_over_ssh_config(site: Site) -> None:
    said = config(site, "ControlPath /elsewhere/%C\n")
    async with transport(site, ssh_config_file=said, control_path=site.place / "100%%-%p") as made:
        socket = site.place / f"100%-{site.sshd.port}"
        nobody = await refused(made, f"no master connection at {socket}$")
        site.person(nobody.remedy or "")
        assert socket.is_socket()
        assert await ask(made) == HELLO


@pytest.mark.parametrize("text", ["", "ControlPath none\n"])
async def test_without_a_control_path_there_is_a_folder_of_ours(site: Site, text: str) -> None:
    folder = site.place / "a state"
    async with transport(
        site, control_path=None, control_folder=folder, ssh_config_file=config(site, text)
    ) as made:
        nobody = await refused(made, f"no master connection at {folder}/ssh-[0-9a-f]{{16}}$")
        assert not folder.exists()
        assert (nobody.remedy or "").startswith(f"mkdir -p -m 700 '{folder}' && ssh -fNM -S '")
        site.person(nobody.remedy or "")
        assert folder.stat().st_mode & 0o777 == 0o700
        assert await ask(made) == HELLO


async def test_two_hosts_have_two_sockets_of_ours(site: Site) -> None:
    places = {"control_path": None, "control_folder": site.place}
    said = []
    for user, host in [("alice", "127.0.0.1"), ("bob", "127.0.0.1"), ("alice", "127.0.0.2")]:
        async with transport(site, hosts=[host], user=user, program="ssh", **places) as made:
            said.append(str(await refused(made, "nobody")).rpartition("/")[2])
    assert len(set(said)) == 3


async def test_what_ssh_config_says_counts_from_the_next_look(site: Site) -> None:
    said = config(site, f"ControlPath {site.place}/old\n")
    async with transport(site, control_path=None, ssh_config_file=said) as made:
        await refused(made, "/old$")
        config(site, f"ControlPath {site.control}\n")
        site.log_in()
        assert await ask(made) == HELLO


async def test_the_remedy_lasts_whatever_ssh_config_says(site: Site) -> None:
    said = config(site, "ControlPersist 1\nControlMaster no\nRequestTTY yes\n")
    async with transport(site, ssh_config_file=said) as made:
        site.person((await refused(made, "nobody")).remedy or "")
        pid = site.master_pid()
        await ask(made)
        await asyncio.sleep(2.5)  # the time that ControlPersist counts is not ours to fake
        assert site.master_pid() == pid


async def test_the_first_host_with_a_master_is_used(site: Site) -> None:
    path = f"{site.place}/%h"
    async with transport(site, hosts=["127.0.0.3", "127.0.0.1"], control_path=path) as made:
        nobody = await refused(made, r"^127\.0\.0\.3: nobody .*; 127\.0\.0\.1: nobody .*")
        assert (nobody.remedy or "").endswith("@127.0.0.3")
        words = [site.program, "-F", "none", "-fNM", "-S", f"{site.place}/127.0.0.1", "127.0.0.1"]
        site.person(shlex.join(words))
        assert await ask(made) == HELLO


# --- what cannot be used


async def test_a_file_is_no_socket(site: Site) -> None:
    site.control.write_text("mine")
    async with transport(site) as made:
        failure = await refused(made, r"/cm is no socket; control_path can name another$")
    assert failure.remedy is None
    assert site.control.read_text() == "mine"


async def test_a_socket_of_somebody_else_is_not_trusted(site: Site) -> None:
    need(os.geteuid() == 0, "only root can give a file away")
    site.log_in()
    os.chown(site.control, 65534, 65534)
    async with transport(site) as made:
        # Root trusts nobody but root and itself; whoever listens could answer anything.
        await refused(made, "/cm belongs to another user")


async def test_a_path_that_is_too_long_for_a_socket(site: Site) -> None:
    path = site.place / ("x" * 100)
    async with transport(site, control_path=path) as made:
        await refused(made, r"cannot be made: \d+ bytes are too long, 90 at most")


async def test_a_path_as_long_as_we_allow_works(site: Site) -> None:
    path = site.place / ("x" * (90 - len(str(site.place)) - 1))
    async with transport(site, control_path=path) as made:
        site.person((await refused(made, "nobody")).remedy or "")
        assert await ask(made) == HELLO


async def test_without_the_program(site: Site) -> None:
    async with transport(site, program="/nowhere/ssh") as made:
        await refused(made, r"cannot start /nowhere/ssh: No such file .*OpenSSH client is needed")


async def test_an_ssh_config_that_ssh_does_not_understand(site: Site) -> None:
    said = config(site, "ControlPaths /tmp/x\n")
    async with transport(site, ssh_config_file=said) as made:
        failure = await refused(made, r"ssh cannot use its configuration \(exit 255\): .*config")
        assert failure.remedy is not None
        assert failure.remedy.startswith(f"ssh -F {said} ")


async def test_a_match_that_hangs(site: Site) -> None:
    said = config(site, 'Match exec "sleep 600"\n')
    async with transport(site, ssh_config_file=said, check_timeout_s=0.5) as made:
        with pytest.raises(TransientTransportError, match=r"ssh -G gave no answer within 0\.5 s"):
            await ask(made)


async def test_nothing_is_left_open(site: Site) -> None:
    site.log_in()
    async with transport(site) as made:
        await ask(made)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            await ask(made, b"exit 1")
        assert len(os.listdir("/proc/self/fd")) == before
