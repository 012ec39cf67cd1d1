"""Where the configuration, the state and the socket are. Standard library only: the client's start.

`env` is the process environment, always an argument.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from jobmond.errors import ConfigError

_ETC = Path("/etc")
_RUN = Path("/run")


def home(env: Mapping[str, str]) -> Path:
    """The user's home folder."""
    return Path(env["HOME"]) if env.get("HOME") else Path.home()


def expanded(text: str, *, folder: Path, env_home: Path) -> Path:
    """`text` as an absolute path: `~` is `env_home`, a relative path is relative to `folder`."""
    if text == "~" or text.startswith("~/"):
        return env_home / text[2:]
    if text.startswith("~"):
        return Path(text).expanduser()
    return folder / text


def config_path(given: str | None, env: Mapping[str, str], *, etc: Path = _ETC) -> Path | None:
    """The configuration file to read; None where there is none, which is valid.

    Raises:
        ConfigError: a file that was named (`--config`, `$JOBMOND_CONFIG`) does not exist. Taking
            another one then would watch other clusters than the person asked for.
    """
    for name, text in (("--config", given), ("JOBMOND_CONFIG", env.get("JOBMOND_CONFIG"))):
        if text:
            named = expanded(text, folder=Path.cwd(), env_home=home(env))
            if not named.exists():
                raise ConfigError(f"{name}: {named} does not exist")
            return named
    for path in (own_config(env), etc / "jobmond/config.toml"):
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from error
        return path
    return None


def own_config(env: Mapping[str, str]) -> Path:
    """Where a user's configuration belongs."""
    return _xdg(env, "XDG_CONFIG_HOME", ".config") / "jobmond/config.toml"


def state_directory(env: Mapping[str, str]) -> Path:
    """Where the database and everything beside it is, unless the configuration says otherwise.

    systemd may pass several folders in `STATE_DIRECTORY`; the first is ours.
    """
    given = env.get("STATE_DIRECTORY", "").split(":")[0]
    return Path(given) if given else _xdg(env, "XDG_STATE_HOME", ".local/state") / "jobmond"


def given_socket(given: str | None, env: Mapping[str, str]) -> Path | None:
    """The socket that `--socket` or `$JOBMOND_SOCKET` names, if one does."""
    text = given or env.get("JOBMOND_SOCKET")
    return expanded(text, folder=Path.cwd(), env_home=home(env)) if text else None


def socket_candidates(
    given: str | None, env: Mapping[str, str], configured: Path | None, *, run: Path = _RUN
) -> tuple[Path, ...]:
    """Where the socket may be, in order.

    A daemon binds the first that was given or whose parent it can create, a client takes the
    first that answers. `configured` is the configuration's `socket`. A socket named by
    `--socket` or `$JOBMOND_SOCKET` is the only candidate: answering for another daemon than the
    one that was asked would be worse than no answer.
    """
    named = given_socket(given, env)
    if named is not None:
        return (named,)
    places = [configured] if configured is not None else []
    if env.get("XDG_RUNTIME_DIR"):
        places.append(Path(env["XDG_RUNTIME_DIR"]) / "jobmond/socket")
    places.append(run / "jobmond/socket")
    places.append(_xdg(env, "XDG_STATE_HOME", ".local/state") / "jobmond/socket")
    return tuple(dict.fromkeys(places))


def configured_socket(config: Path | None, env: Mapping[str, str]) -> Path | None:
    """Only `socket` of a configuration file, without validating the rest.

    A file that cannot be read or parsed names no socket: a client must still find the daemon
    that goes on with the last good configuration.
    """
    if config is None:
        return None
    try:
        text = tomllib.loads(config.read_text(encoding="utf-8")).get("socket")
    except (OSError, ValueError):
        return None
    if not isinstance(text, str) or not text:
        return None
    return expanded(text, folder=config.absolute().parent, env_home=home(env))


def _xdg(env: Mapping[str, str], variable: str, default: str) -> Path:
    # The XDG specification: a relative path in these variables is invalid and must be ignored.
    given = env.get(variable, "")
    return Path(given) if given.startswith("/") else home(env) / default
