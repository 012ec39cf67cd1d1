import subprocess
import sys
from pathlib import Path

import pytest

from jobmond.errors import ConfigError
from jobmond.settings.paths import (
    config_path,
    configured_socket,
    given_socket,
    socket_candidates,
    state_directory,
)


def _write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_no_configuration_anywhere_is_valid(tmp_path: Path) -> None:
    assert config_path(None, {"HOME": str(tmp_path)}, etc=tmp_path / "etc") is None


def test_the_first_configuration_that_exists_is_taken(tmp_path: Path) -> None:
    etc = tmp_path / "etc"
    env = {"HOME": str(tmp_path / "home")}
    system = _write(etc / "jobmond/config.toml")
    assert config_path(None, env, etc=etc) == system
    mine = _write(tmp_path / "home/.config/jobmond/config.toml")
    assert config_path(None, env, etc=etc) == mine
    xdg = _write(tmp_path / "xdg/jobmond/config.toml")
    env["XDG_CONFIG_HOME"] = str(tmp_path / "xdg")
    assert config_path(None, env, etc=etc) == xdg
    named = _write(tmp_path / "named.toml")
    env["JOBMOND_CONFIG"] = str(named)
    assert config_path(None, env, etc=etc) == named
    given = _write(tmp_path / "given.toml")
    assert config_path(str(given), env, etc=etc) == given


def test_a_named_configuration_that_is_missing_is_an_error(tmp_path: Path) -> None:
    _write(tmp_path / ".config/jobmond/config.toml")
    missing = str(tmp_path / "missing.toml")
    with pytest.raises(ConfigError, match=r"^--config: .*missing.toml does not exist$"):
        config_path(missing, {"HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"^JOBMOND_CONFIG: .*missing.toml does not exist$"):
        config_path(None, {"HOME": str(tmp_path), "JOBMOND_CONFIG": missing})


def test_a_relative_xdg_variable_is_ignored(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "XDG_STATE_HOME": "relative"}
    assert state_directory(env) == tmp_path / ".local/state/jobmond"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "/home/alice/.local/state/jobmond"),
        ({"XDG_STATE_HOME": "/state"}, "/state/jobmond"),
        (
            {"XDG_STATE_HOME": "/state", "STATE_DIRECTORY": "/var/lib/jobmond"},
            "/var/lib/jobmond",
        ),
        ({"STATE_DIRECTORY": "/var/lib/jobmond:/var/lib/other"}, "/var/lib/jobmond"),
    ],
)
def test_state_directory(variables: dict[str, str], expected: str) -> None:
    assert state_directory({"HOME": "/home/alice"} | variables) == Path(expected)


def test_sockets_in_order() -> None:
    env = {"HOME": "/home/alice", "XDG_RUNTIME_DIR": "/run/user/1000"}
    assert socket_candidates(None, env, Path("/srv/socket")) == (
        Path("/srv/socket"),
        Path("/run/user/1000/jobmond/socket"),
        Path("/run/jobmond/socket"),
        Path("/home/alice/.local/state/jobmond/socket"),
    )


def test_without_a_runtime_folder_there_are_two_places() -> None:
    env = {"HOME": "/home/alice", "XDG_STATE_HOME": "/state"}
    assert socket_candidates(None, env, None) == (
        Path("/run/jobmond/socket"),
        Path("/state/jobmond/socket"),
    )


def test_a_socket_that_was_named_is_the_only_one() -> None:
    env = {"HOME": "/home/alice", "JOBMOND_SOCKET": "/tmp/env.sock"}
    assert socket_candidates("/tmp/cli.sock", env, Path("/srv/socket")) == (Path("/tmp/cli.sock"),)
    assert socket_candidates(None, env, Path("/srv/socket")) == (Path("/tmp/env.sock"),)
    assert given_socket(None, {"HOME": "/home/alice"}) is None
    assert given_socket("~/s", env) == Path("/home/alice/s")


def test_the_socket_of_a_configuration(tmp_path: Path) -> None:
    env = {"HOME": "/home/alice"}
    path = _write(tmp_path / "config.toml", 'socket = "~/run/socket"\nnonsense = 1\n')
    assert configured_socket(path, env) == Path("/home/alice/run/socket")
    _write(path, 'socket = "here"')
    assert configured_socket(path, env) == tmp_path / "here"


@pytest.mark.parametrize("text", ["socket = ", "socket = 3", "", "socket = ''", "[socket]"])
def test_a_broken_configuration_names_no_socket(tmp_path: Path, text: str) -> None:
    path = _write(tmp_path / "config.toml", text)
    assert configured_socket(path, {"HOME": "/home/alice"}) is None


def test_no_file_names_no_socket(tmp_path: Path) -> None:
    assert configured_socket(None, {}) is None
    assert configured_socket(tmp_path / "missing", {}) is None
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert configured_socket(tmp_path / "binary", {}) is None


def test_finding_the_socket_imports_nothing_heavy() -> None:
    code = (
        "import sys; import jobmond.settings.paths;"
        "print([m for m in ('pydantic', 'pydantic_settings') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
