"""Where the client finds the daemon's socket and its last report."""

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

_SQLITE = "sqlite:///"
_LARGEST_BYTES = 1 << 28


def sockets(given: str | None, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Where the socket may be, in the order to try."""
    return socket_candidates(given, env, configured_socket(config_path(None, env), env))


def runs_directory(env: Mapping[str, str]) -> Path:
    """Where records and logs of processes started by `jobmonctl run` are."""
    return state_directory(env) / "runs"


def report_path(env: Mapping[str, str]) -> Path:
    """The report that every sweep writes beside the database.

    The configuration is not validated here: a mistake in it must not hide the report.
    """
    url = env.get("JOBMOND_DATABASE__URL") or _configured_url(config_path(None, env))
    if url and url.startswith(_SQLITE):
        file = urllib.parse.unquote(url.removeprefix(_SQLITE).partition("?")[0])
        if file and file != ":memory:":
            return Path(file).parent / "report.json"
    return state_directory(env) / "report.json"


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
