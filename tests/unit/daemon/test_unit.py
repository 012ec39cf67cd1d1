"""The units that `jobmond unit` prints."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jobmond.daemon import unit
from jobmond.errors import ConfigError, Refused
from tests.needs import need

WORST_EXPOSURE = 2.0


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program where a service of the host would see it."""
    monkeypatch.setattr(unit, "_HIDDEN", ("/nowhere",))
    return made(tmp_path / "opt/jobmond/bin/jobmond")


def made(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def analyze(*words: str, runtime: Path) -> "subprocess.CompletedProcess[str]":
    need("systemd-analyze", "systemd-analyze is missing (Debian: systemd)")
    env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "SYSTEMD_PAGER": "", "LANG": "C.UTF-8"}
    return subprocess.run(
        ["systemd-analyze", *words], env=env, capture_output=True, text=True, check=False
    )


def written(text: str, path: Path) -> str:
    path.write_text(text)
    return str(path)


def settings(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("user", [False, True])
def test_it_starts_this_program_and_nothing_is_left_to_fill_in(program: Path, user: bool) -> None:
    text = unit.rendered(str(program), user=user)
    assert settings(text)["ExecStart"] == [f"{program} run"]
    assert "@" not in settings(text)["ExecStart"][0]
    assert settings(text)["Type"] == ["notify"]


def test_the_service_of_the_host_is_not_exposed(program: Path, tmp_path: Path) -> None:
    path = written(unit.rendered(str(program), user=False), tmp_path / "jobmond.service")
    done = analyze("security", "--offline=yes", path, runtime=tmp_path)
    verdict = done.stdout.strip().splitlines()[-1]
    assert "Overall exposure level for jobmond.service" in verdict, done.stderr
    assert float(verdict.partition("service: ")[2].split()[0]) <= WORST_EXPOSURE


@pytest.mark.parametrize("user", [False, True])
def test_systemd_finds_nothing_wrong(program: Path, tmp_path: Path, user: bool) -> None:
    text = unit.rendered(str(program), user=user)
    path = written(text, tmp_path / "jobmond.service")
    manager = ("--user",) if user else ()
    done = analyze(*manager, "verify", path, runtime=tmp_path)
    said = [line for line in done.stderr.splitlines() if "jobmond" in line]
    assert (done.returncode, said) == (0, []), done.stderr


def test_a_program_that_is_not_there_is_noticed(program: Path, tmp_path: Path) -> None:
    """The check above can fail."""
    text = unit.rendered(str(program), user=False).replace("ProtectClock=yes", "ProtectClok=yes")
    path = written(text, tmp_path / "jobmond.service")
    assert "ProtectClok" in analyze("verify", path, runtime=tmp_path).stderr


def test_the_users_unit_uses_nothing_that_needs_a_namespace(program: Path) -> None:
    needing = (
        "Protect", "Private", "ReadOnly", "ReadWrite", "Inaccessible", "Bind", "Root", "Temporary",
        "DynamicUser", "LoadCredential", "SetCredential", "StateDirectory", "CapabilityBounding",
        "NetworkNamespace", "IPAddress", "Mount",
    )  # fmt: skip
    keys = settings(unit.rendered(str(program), user=True))
    assert [key for key in keys if key.startswith(needing)] == []


def test_who_asks_at_the_socket_is_seen_as_who_it_is(program: Path) -> None:
    """In a user namespace every peer would be nobody."""
    keys = settings(unit.rendered(str(program), user=False))
    assert "PrivateUsers" not in keys
    assert "AF_UNIX" in keys["RestrictAddressFamilies"][0].split()


@pytest.mark.parametrize("folder", ["/home/alice/venv/bin", "/root/bin", "/tmp/x"])
def test_where_the_service_could_not_see_it_is_refused(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"{folder}/jobmond")
    with pytest.raises(Refused, match=f"{folder}/jobmond is hidden .* /opt/jobmond"):
        unit.rendered("jobmond", user=False)
    assert f"ExecStart={folder}/jobmond run" in unit.rendered("jobmond", user=True)


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/opt/jobmond/bin/jobmond", "/opt/jobmond/bin/jobmond"),
        ("/opt/my tools/jobmond", '"/opt/my tools/jobmond"'),
        ("/opt/100%/$x/jobmond", "/opt/100%%/$$x/jobmond"),
        ('/opt/a"b\\c', '"/opt/a\\"b\\\\c"'),
    ],
)
def test_a_path_is_one_word_for_systemd(
    path: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: path)
    assert settings(unit.rendered("jobmond", user=False))["ExecStart"] == [f"{word} run"]


def test_no_program_no_unit() -> None:
    with pytest.raises(ConfigError, match="no program"):
        unit.rendered("/nowhere/jobmond", user=False)
