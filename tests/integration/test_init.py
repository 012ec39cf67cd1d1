"""`jobmond init` against real sshds, each contacted once."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.host import Host
from tests.sshd import Sshd, running_sshd


@pytest.fixture(scope="module")
def sshd() -> Iterator[Sshd]:
    with running_sshd(extra="LogLevel VERBOSE") as running:
        yield running


@pytest.fixture
def host(tmp_path: Path, sshd: Sshd) -> Iterator[Host]:
    """A home whose ssh_config names the sshd twice: with its key, and with a key it does not
    know."""
    made = Host(tmp_path / "home")
    folder = made.home / ".ssh"
    folder.mkdir(mode=0o700)
    (folder / "config").write_text(
        "Include parts/*\n"
        f"Host *\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {sshd.user}\n"
        f"  UserKnownHostsFile {sshd.known_hosts}\n  IdentitiesOnly yes\n"
    )
    (folder / "parts").mkdir()
    (folder / "parts/1").write_text(
        f"Host good\n  IdentityFile {sshd.key}\nHost bad\n  IdentityFile {sshd.host_key}\n"
    )
    yield made
    made.close()


def test_every_host_is_tried_once_and_said_what_it_is(host: Host, sshd: Sshd) -> None:
    before = sshd.connections()
    done = host.jobmond("init", "--yes")
    assert done.returncode == 0, done.stderr
    assert sshd.connections() - before == 2
    good, bad = done.stderr.splitlines()
    assert good.startswith("good: answers")
    assert bad.startswith("bad: bad: login refused for ")
    assert done.stdout == f"written: {host.config}; `jobmond check` tries it\n"
    assert host.config.stat().st_mode & 0o777 == 0o600
    checked = host.jobmond("check", "--offline")
    assert checked.returncode == 0, checked.stdout
    assert "ok    cluster bad: inactive" in checked.stdout

    again = host.jobmond("init", "--yes")
    assert again.returncode == 1
    assert again.stderr == (
        f"jobmond: {host.config} exists and is left alone; --force replaces it\n"
    )
    assert sshd.connections() - before == 2  # refused before anybody was contacted


def test_the_ones_that_are_named_are_tried_and_no_other(host: Host, sshd: Sshd) -> None:
    before = sshd.connections()
    done = host.jobmond("init", "--host", "good", "--output", "-")
    assert (done.returncode, sshd.connections() - before) == (0, 1)
    assert "good: answers" in done.stdout
    assert "bad" not in done.stdout
    assert not host.config.exists()


def test_without_a_person_to_ask_nobody_is_contacted(host: Host, sshd: Sshd) -> None:
    before = sshd.connections()
    done = host.jobmond("init")
    assert (done.returncode, sshd.connections() - before) == (2, 0)
    assert "--host NAME" in done.stderr


def test_a_person_picks_from_the_list(host: Host, sshd: Sshd) -> None:
    before = sshd.connections()
    main, side = pty.openpty()
    words = [sys.executable, "-m", "jobmond", "init", "--output", "-"]
    process = host.spawn(*words, stdin=side, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(side)
    os.write(main, b"1\n")
    out, err = process.communicate(timeout=60)
    os.close(main)
    assert process.returncode == 0, err
    assert err.splitlines()[:2] == ["   1  good", "   2  bad"]
    assert 'host = "good"' in out
    assert sshd.connections() - before == 1


def test_a_home_without_hosts_gets_a_configuration_for_this_one(host: Host) -> None:
    (host.home / ".ssh/config").unlink()
    done = host.jobmond("init")
    assert done.returncode == 0
    assert "names no host" in done.stderr
    assert "[clusters.local]" in host.config.read_text()
