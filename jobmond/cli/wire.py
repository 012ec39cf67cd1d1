"""HTTP over the daemon's Unix socket, with the standard library only."""

import http.client
import json
import os
import pwd
import socket
import stat
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobmond.errors import DaemonUnreachable, JobmondError

ANSWER_S = 10.0
_START = "`jobmond run --detach` starts one"


class DaemonRefusal(JobmondError):
    """The daemon understood and said no; `exit_code` is the one it named."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, connected: socket.socket) -> None:
        super().__init__("jobmond")
        self._connected = connected

    def connect(self) -> None:
        self.sock = self._connected


class Daemon:
    """Asks the daemon behind the first candidate that takes a connection.

    Every request raises `DaemonUnreachable` where nobody answers in time and `DaemonRefusal`
    where the daemon says no. `uid` and `gids` are the asking process's. `heard` is called with
    the version of the daemon that answered.
    """

    def __init__(
        self,
        candidates: Sequence[Path],
        *,
        uid: int,
        gids: Sequence[int] = (),
        heard: Callable[[str], object] = lambda version: None,
    ) -> None:
        self._candidates = tuple(candidates)
        self._uid = uid
        self._gids = frozenset(gids)
        self._heard = heard

    def get(
        self, path: str, query: Mapping[str, object] | None = None, *, timeout_s: float = ANSWER_S
    ) -> dict[str, Any]:
        """GET; entries of `query` that are None are left out."""
        return self.ask("GET", path, query=query, timeout_s=timeout_s)

    def post(
        self, path: str, body: Mapping[str, object], *, timeout_s: float = ANSWER_S
    ) -> dict[str, Any]:
        """POST; entries of `body` that are None are left out."""
        return self.ask("POST", path, body=body, timeout_s=timeout_s)

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        timeout_s: float = ANSWER_S,
    ) -> dict[str, Any]:
        """One request, one JSON object."""
        words = {k: v for k, v in (query or {}).items() if v is not None}
        target = f"{path}?{urllib.parse.urlencode(words)}" if words else path
        content = None
        if body is not None:
            content = json.dumps({k: v for k, v in body.items() if v is not None}).encode()
        where, connected = self._connected(timeout_s)
        with connected:
            try:
                status, raw, version = _exchange(connected, method, target, content)
            except TimeoutError as error:
                raise DaemonUnreachable(
                    f"the daemon at {where} gave no answer in {timeout_s:.0f} s"
                ) from error
            except (OSError, http.client.HTTPException) as error:
                raise DaemonUnreachable(f"the daemon at {where} hung up: {error!r}") from error
        if version is not None:
            self._heard(version)
        return _answer(status, raw, where)

    def _connected(self, timeout_s: float) -> tuple[Path, socket.socket]:
        reasons: list[str] = []
        for path in self._candidates:
            try:
                found = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                reasons.append(f"{path}: {error.strerror}")
                continue
            reason = self._unfit(path, found)
            if reason is None:
                try:
                    return path, _connect(path, timeout_s)
                except OSError as error:
                    reason = _unconnected(path, found, error)
            reasons.append(reason)
        raise DaemonUnreachable(self._nobody(reasons))

    def _nobody(self, reasons: Sequence[str]) -> str:
        if reasons:
            return f"no daemon to talk to: {'; '.join(reasons)}; {_START}"
        places = ", ".join(map(str, self._candidates))
        return f"no daemon is running (no socket at {places}); {_START}"

    def _unfit(self, path: Path, found: os.stat_result) -> str | None:
        """Why this socket must not be talked to, if so.

        Another user's socket is a daemon's only where that user opened it to our group, or for
        root where root gave that user the folder; what anybody could have put there might be an
        impostor.
        """
        if not stat.S_ISSOCK(found.st_mode):
            return f"{path} is no socket"
        if found.st_uid in (self._uid, 0):
            return None
        shared = found.st_mode & stat.S_IWGRP and not found.st_mode & stat.S_IWOTH
        if shared and (self._uid == 0 or found.st_gid in self._gids):
            return None
        if self._uid == 0 and _given(path.parent, found.st_uid):
            return None
        return _foreign(path, found)


def _given(folder: Path, uid: int) -> bool:
    """Whether `folder` is that user's and nobody but root could make it so, as in /run."""
    try:
        own, above = folder.stat(), folder.resolve().parent.stat()
    except OSError:
        return False
    return own.st_uid == uid and above.st_uid == 0 and not above.st_mode & 0o022


def _connect(path: Path, timeout_s: float) -> socket.socket:
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connected.settimeout(timeout_s)
    try:
        connected.connect(str(path))
    except OSError:
        connected.close()
        raise
    return connected


def _unconnected(path: Path, found: os.stat_result, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return _foreign(path, found)
    if isinstance(error, ConnectionRefusedError):
        return f"nobody listens at {path} any more"
    return f"{path}: {error.strerror or error}"


def _foreign(path: Path, found: os.stat_result) -> str:
    try:
        owner = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        owner = f"uid {found.st_uid}"
    return f"{path} belongs to {owner} and is not open to you"


def _exchange(
    connected: socket.socket, method: str, target: str, content: bytes | None
) -> tuple[int, bytes, str | None]:
    connection = _UnixConnection(connected)
    headers = {"Content-Type": "application/json"} if content is not None else {}
    try:
        connection.request(method, target, body=content, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(), response.headers.get("Jobmond-Version")
    finally:
        connection.close()


def _answer(status: int, raw: bytes, where: Path) -> dict[str, Any]:
    try:
        answer = json.loads(raw or b"{}")
    except ValueError as error:
        raise DaemonUnreachable(f"what answers at {where} is no jobmond") from error
    if not isinstance(answer, dict):
        raise DaemonUnreachable(f"what answers at {where} is no jobmond")
    if status >= 400:
        code = answer.get("exit_code")
        message = str(answer.get("error") or f"the daemon answered {status}")
        raise DaemonRefusal(message, code if code in (1, 2, 3) else 1)
    return answer
