"""Where the client finds the daemon's socket and its last report."""

import errno
import json
import os
import stat
import tomllib
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobmond.errors import JobmondError
from jobmond.settings.paths import (
    config_path,
    configured_socket,
    socket_candidates,
    state_directory,
)

_SQLITE = ("sqlite:///", "sqlite+pysqlite:///")
_LARGEST_BYTES = 1 << 28


def sockets(given: str | None, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Where the socket may be, in the order to try."""
    return socket_candidates(given, env, configured_socket(config_path(None, env), env))


def runs_directory(env: Mapping[str, str]) -> Path:
    """The folder for records and logs of `jobmonctl run`, made and closed to others.

    Beside the database, where a daemon of the same user looks; where that is somebody else's
    (the daemon is a system service), in the user's own state directory.

    Raises:
        OSError: neither can be written.
    """
    beside = beside_database(env) / "runs"
    try:
        return _own_folder(beside)
    except OSError:
        own = state_directory(env) / "runs"
        if own == beside:
            raise
        return _own_folder(own)


def _own_folder(path: Path) -> Path:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.geteuid() or not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "not a folder of yours", str(path))
    return path.absolute()


def report_path(env: Mapping[str, str]) -> Path:
    """The report that every sweep writes."""
    return beside_database(env) / "report.json"


def beside_database(env: Mapping[str, str]) -> Path:
    """The folder of the daemon's database and other files.

    The configuration is not validated here: a mistake in it must not hide the report.
    """
    url = env.get("JOBMOND_DATABASE__URL") or _configured_url(config_path(None, env)) or ""
    for prefix in _SQLITE:
        if url.startswith(prefix):
            file = urllib.parse.unquote(url.removeprefix(prefix).partition("?")[0])
            if file and file != ":memory:":
                return Path(file).parent
    return state_directory(env)


def stored_report(env: Mapping[str, str]) -> dict[str, Any] | None:
    """The last stored report with `daemon.running` false, None where there is none.

    Raises:
        JobmondError: there is one and it cannot be read.
    """
    path = report_path(env)
    try:
        report = _read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise JobmondError(f"{path} cannot be read: {error}") from error
    return {**report, "daemon": {**report["daemon"], "running": False}}


def _read(path: Path) -> dict[str, Any]:
    # Non-blocking, because opening a pipe that somebody put there would wait for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST_BYTES:
            raise ValueError("it is no report")
        report = json.loads(file.read())
    parts = {"daemon": dict, "clusters": list, "jobs": list, "summary": dict}
    if not isinstance(report, dict) or not all(
        isinstance(report.get(key), kind) for key, kind in parts.items()
    ):
        raise ValueError("it is no report")
    return report


def _configured_url(config: Path | None) -> str | None:
    if config is None:
        return None
    try:
        url = tomllib.loads(config.read_text(encoding="utf-8")).get("database", {}).get("url")
    except (OSError, ValueError, AttributeError):
        return None
    return url if isinstance(url, str) else None
