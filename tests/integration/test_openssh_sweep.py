"""A cluster behind a second factor, from the configuration to the news."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from jobmond.app import App, open_app
from jobmond.clock import SystemClock
from jobmond.settings import load
from tests.person import Site, folder_for_masters, second_factor_site

CONFIG = """
[clusters.lab]
kind = "slurm"
transport = "openssh"
host = "127.0.0.1"
user = "{user}"
port = {port}
identity_file = "{key}"
known_hosts_file = "{known_hosts}"
discover = true
bin_dir = "{bin}"
[sinks.news]
kind = "file"
path = "{news}"
"""


@pytest.fixture
def site() -> Iterator[Site]:
    with folder_for_masters() as place, second_factor_site(place) as made:
        yield made


async def opened(site: Site) -> App:
    """jobmond for a cluster whose squeue fails in a way that proves it was called."""
    site.place.chmod(0o755)
    bin_dir = site.place / "bin"
    bin_dir.mkdir(mode=0o755, exist_ok=True)
    squeue = bin_dir / "squeue"
    squeue.write_text("#!/bin/sh\necho 'squeue: error: the lab is closed' >&2; exit 1\n")
    squeue.chmod(0o755)
    path = site.place / "config.toml"
    path.write_text(
        CONFIG.format(
            user=site.sshd.user,
            port=site.sshd.port,
            key=site.sshd.key,
            known_hosts=site.sshd.known_hosts,
            bin=bin_dir,
            news=site.place / "news.jsonl",
        )
    )
    env = {"HOME": str(site.place), "STATE_DIRECTORY": str(site.place / "state")}
    return await open_app(load(path, env).settings, site.place / "state", SystemClock())


def told(site: Site) -> list[dict[str, Any]]:
    news = site.place / "news.jsonl"
    return [json.loads(line) for line in news.read_text().splitlines()] if news.exists() else []


async def test_from_no_login_to_a_lost_one(site: Site) -> None:
    app = await opened(site)
    try:
        for _ in range(3):
            result = await app.sweep("lab")
            assert result.status == "needs-login"
        assert site.sshd.connections() == 0
        [first] = told(site)
        assert (first["type"], first["severity"], first["after"]) == (
            "cluster",
            "alarm",
            "needs-login",
        )
        what, _, command = first["body"].partition(" Try: ")
        assert what.startswith("127.0.0.1: nobody is logged in, there is no master connection at ")
        assert command == result.remedy
        site.person(command)
        # Nobody has to tell jobmond: the next sweep of its own finds the connection.
        after = await app.sweep("lab")
        assert (after.status, after.contacted) == ("unreachable", True)
        assert "the lab is closed" in (after.error or "")
        assert site.sshd.connections() == 1
    finally:
        await app.close()


async def test_a_daemon_that_starts_again_uses_the_same_connection(site: Site) -> None:
    for sweep in range(3):
        app = await opened(site)
        try:
            result = await app.sweep("lab", asked=True)
            if sweep == 0:
                site.person(result.remedy or "")
        finally:
            await app.close()
    assert "the lab is closed" in (result.error or "")
    assert site.sshd.connections() == 1


async def test_a_lost_connection_is_told_with_what_brings_it_back(site: Site) -> None:
    app = await opened(site)
    try:
        site.person((await app.sweep("lab")).remedy or "")
        await app.sweep("lab")
        [socket] = (site.place / "state").glob("ssh-*")
        site.kill_master(socket)
        result = await app.sweep("lab", asked=True)
        last = told(site)[-1]
        assert last["after"] == "needs-login"
        assert f"Try: rm -f {socket} && ssh -fNM -S {socket} " in last["body"]
        site.person(result.remedy or "")
        again = await app.sweep("lab")
        assert again.status == "unreachable"
        # What was said about this login is over, and nothing else was tried.
        assert site.sshd.connections() == 2
    finally:
        await app.close()
