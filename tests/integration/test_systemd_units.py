"""Both units, run by a real systemd."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobmond.daemon import unit
from tests.integration.host import ROOT, until
from tests.integration.service_manager import (
    INSTALLED,
    ServiceManager,
    folder,
    system_manager,
    user_manager,
)

QUIET = '[clusters.here]\nkind = "local"\nslurm = false\n'
SOON = "[Service]\nWatchdogSec=10s\nRestartSec=100ms\n"
UNIT = "jobmond.service"


@pytest.fixture
def user() -> Iterator[ServiceManager]:
    """A user whose unit is installed as the README says."""
    home = folder()
    program = home / "bin/jobmond"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m jobmond "$@"\n')
    program.chmod(0o755)
    units = home / ".config/systemd/user"
    (units / f"{UNIT}.d").mkdir(parents=True)
    (units / UNIT).write_text(unit.rendered(str(program), user=True))
    (units / f"{UNIT}.d/soon.conf").write_text(SOON)
    configure(home / ".config/jobmond/config.toml", QUIET)
    with user_manager(home) as made:
        yield made


def configure(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def config(manager: ServiceManager) -> Path:
    return manager.place / ".config/jobmond/config.toml"


def jobmonctl(manager: ServiceManager, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "jobmond.cli.main", *words],
        env={**manager.env, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_users_service_starts_answers_reloads_and_stops(user: ServiceManager) -> None:
    started = user.ctl("start", UNIT)  # returns when it is ready
    assert started.returncode == 0, started.stderr
    status = jobmonctl(user, "status", "--json")
    assert status.returncode == 0, status.stderr
    assert json.loads(status.stdout)["daemon"]["running"] is True
    until(
        lambda: user.shown(UNIT, "StatusText")["StatusText"].startswith("watching 0 jobs"),
        "systemctl shows how it is",
    )
    configure(config(user), f'{QUIET}[clusters.more]\nkind = "local"\nslurm = false\n')
    reloaded = user.ctl("reload", UNIT)
    assert reloaded.returncode == 0, reloaded.stderr
    until(
        lambda: '"more"' in jobmonctl(user, "status", "--json").stdout,
        "the new configuration counts",
    )
    assert user.shown(UNIT, "ActiveState", "NRestarts") == {
        "ActiveState": "active",
        "NRestarts": "0",
    }
    assert user.ctl("stop", UNIT).returncode == 0
    assert ended(user) == {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}
    assert jobmonctl(user, "status").returncode == 3


def test_one_that_hangs_or_is_killed_is_started_again(user: ServiceManager) -> None:
    assert user.ctl("start", UNIT).returncode == 0
    os.kill(pid(user), signal.SIGSTOP)
    until(lambda: restarts(user) == 1, "the watchdog ends it, and it is started again")
    until(lambda: jobmonctl(user, "status").returncode == 0, "it answers")
    os.kill(pid(user), signal.SIGKILL)
    until(lambda: restarts(user) == 2, "so it is when it was killed")
    until(lambda: jobmonctl(user, "status").returncode == 0, "it answers")


def test_a_wrong_configuration_is_left_to_a_person(user: ServiceManager) -> None:
    configure(config(user), "colour = 7\n")
    assert user.ctl("start", UNIT).returncode != 0
    assert ended(user) == {"ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": "2"}
    assert restarts(user) == 0


# The service of the host

SECRET = "whsec_aHVudGVyMmh1bnRlcjJodW50ZXIy"
HOOK = """
[sinks.team]
kind = "webhook"
url_file = "$CREDENTIALS_DIRECTORY/keys_url"
secret_file = "$CREDENTIALS_DIRECTORY/keys_secret"
"""


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceManager]:
    """A host whose unit is installed as the README says, with keys that only root can read."""
    place = folder()
    monkeypatch.setattr(shutil, "which", lambda name: name)
    (place / f"units/{UNIT}.d").mkdir(parents=True)
    (place / "units" / UNIT).write_text(unit.rendered(INSTALLED, user=False))
    said = "[Service]\nStandardOutput=append:/run/said\nStandardError=append:/run/said\n"
    (place / f"units/{UNIT}.d/soon.conf").write_text(f"{SOON}{said}")
    keys = place / "etc/jobmond/keys"
    keys.mkdir(parents=True, mode=0o700)
    for name, text in (("url", "http://127.0.0.1:9/hook"), ("secret", SECRET)):
        (keys / name).write_text(text)
        (keys / name).chmod(0o600)
    configure(place / "etc/jobmond/config.toml", QUIET + HOOK)
    monkeypatch.undo()
    with system_manager(place) as made:
        yield made


def test_the_hosts_service_runs_as_a_user_of_its_own_with_roots_keys(host: ServiceManager) -> None:
    started = host.ctl("start", UNIT)
    said = host.inside("cat", "/run/said").stdout
    assert started.returncode == 0, said
    until(
        lambda: host.shown(UNIT, "StatusText")["StatusText"].startswith("watching 0 jobs"),
        "systemctl shows how it is",
    )
    main = host.shown(UNIT, "MainPID")["MainPID"]
    user = host.inside("stat", "-c", "%u", f"/proc/{main}").stdout.strip()
    assert int(user) >= 61184  # systemd's range for users that exist while a service runs
    about = host.inside("stat", "-c", "%a %u %n", "/run/jobmond/socket").stdout.split()
    assert about == ["600", user, "/run/jobmond/socket"]
    files = host.inside("find", "/var/lib/private/jobmond", "-type", "f", "-printf", "%m %U %f\n")
    rows = [line.split() for line in files.stdout.splitlines()]
    assert {(mode, owner) for mode, owner, _ in rows} == {("600", user)}
    assert {"jobmond.db", "report.json"} <= {name for _, _, name in rows}

    # Root's keys reach it, and whoever asks at the socket is seen as who it is.
    status = host.inside(*CTL, "status", "--json")
    assert status.returncode == 0, status.stderr
    sinks = {one["name"]: one for one in json.loads(status.stdout)["sinks"]}
    assert sinks["team"]["last_error"] is None
    assert host.ctl("reload", UNIT).returncode == 0
    until(lambda: "configuration read again" in host.inside("cat", "/run/said").stdout, "reload")
    assert host.ctl("stop", UNIT).returncode == 0
    assert ended(host) == {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}
    said = host.inside("cat", "/run/said").stdout
    assert "level=error" not in said
    assert "Traceback" not in said


def test_the_hosts_service_does_its_work_behind_its_walls(host: ServiceManager) -> None:
    """A process of another user of the host is watched to its end, and told to the receiver."""
    assert host.ctl("start", UNIT).returncode == 0
    work = host.inside("sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!")
    added = host.inside(*CTL, "add", f"pid-{work.stdout.strip()}")
    assert added.returncode == 0, added.stderr
    ref = f"here/pid-{work.stdout.strip()}"
    until(lambda: shown(host, ref) == "RUNNING", "it is watched")
    host.inside("kill", "-9", work.stdout.strip())
    until(lambda: host.inside(*CTL, "sweep", "--wait").returncode == 0, "it is looked at")
    until(lambda: shown(host, ref) == "LOST", "its end is seen")

    def tried() -> bool:
        [team] = [s for s in document(host)["sinks"] if s["name"] == "team"]
        return "refused the connection" in (team["last_error"] or "")

    until(tried, "the receiver of root's file is tried")
    assert host.ctl("stop", UNIT).returncode == 0
    assert "Traceback" not in host.inside("cat", "/run/said").stdout


def test_the_hosts_service_serves_a_group(host: ServiceManager) -> None:
    """With the drop-in that the README names."""
    words = (
        "sed -i '1i socket_group = \"users\"' /etc/jobmond/config.toml\n"
        f"mkdir -p /etc/systemd/system/{UNIT}.d\n"
        "printf '[Service]\\nSupplementaryGroups=users\\n' "
        f">/etc/systemd/system/{UNIT}.d/team.conf"
    )
    assert host.inside("sh", "-c", words).returncode == 0
    assert host.ctl("daemon-reload").returncode == 0
    started = host.ctl("start", UNIT)
    assert started.returncode == 0, host.inside("cat", "/run/said").stdout
    about = host.inside("stat", "-c", "%a %G", "/run/jobmond/socket").stdout
    assert about == "660 users\n"
    for group, code in (("users", 0), ("daemon", 3)):
        words = ("setpriv", "--reuid=nobody", "--regid=nogroup", f"--groups={group}", *CTL)
        assert host.inside(*words, "status", "--json").returncode == code, group


CTL = (
    "env",
    "PYTHONHOME=/opt/jobmond/python",
    "PYTHONPATH=/opt/jobmond/source:/opt/jobmond/site",
    "LD_LIBRARY_PATH=/opt/jobmond/python/lib",
    "PYTHONDONTWRITEBYTECODE=1",
    "XDG_RUNTIME_DIR=/nonexistent",
    "HOME=/nonexistent",
    "/opt/jobmond/python/bin/python3",
    "-m",
    "jobmond.cli.main",
)


def document(host: ServiceManager) -> dict[str, list[dict[str, str | None]]]:
    found: dict[str, list[dict[str, str | None]]] = json.loads(
        host.inside(*CTL, "status", "--json").stdout
    )
    return found


def shown(host: ServiceManager, ref: str) -> str | None:
    return next((job["state"] for job in document(host)["jobs"] if job["ref"] == ref), None)


def ended(manager: ServiceManager) -> dict[str, str]:
    return manager.shown(UNIT, "ActiveState", "Result", "ExecMainStatus")


def restarts(manager: ServiceManager) -> int:
    return int(manager.shown(UNIT, "NRestarts")["NRestarts"])


def pid(manager: ServiceManager) -> int:
    """The daemon, as this side of its namespace sees it."""
    return until(lambda: next(iter(_daemons(manager)), None), "the daemon runs")


def _daemons(manager: ServiceManager) -> list[int]:
    mark = f"HOME={manager.place}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or mark not in _words(entry / "environ"):
                continue
            if _words(entry / "cmdline")[-3:] == [b"jobmond", b"run", b""]:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _words(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\0")
