"""Processes that `jobmonctl run` started while no daemon listened: tracked once one does."""

import asyncio
import os
import shlex
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from jobmond.analysis.visible import visible
from jobmond.desk.desk import Desk
from jobmond.desk.peer import Peer
from jobmond.desk.requests import LocalStart
from jobmond.errors import ConfigError
from jobmond.store.launched import Launched, recent

journal = structlog.get_logger("jobmond.daemon")

_COMMAND_CHARS = 16_384
_ASKED = ("name", "description", "labels", "bucket", "type", "run")
_SEEN = ("log", "workdir", "started_at")


class Pickup:
    """Brings to the desk what was written down and never announced.

    `since` says how far back an end is still news. The folder is read only when it changed.
    """

    def __init__(self, desk: Desk, folder: Path, since: Callable[[], datetime]) -> None:
        self._desk = desk
        self._folder = folder
        self._since = since
        self._read_at: int | None = None

    async def look(self) -> None:
        """Track what is new in the folder."""
        changed_at = await asyncio.to_thread(_changed_at, self._folder)
        if changed_at is None or changed_at == self._read_at:
            return
        records = await asyncio.to_thread(recent, self._folder, self._since())
        starts = [start for one in records if (start := start_of(one))]
        rows = await self._desk.take_up(starts, _myself())
        for row in rows:
            if row["error"] is None:
                journal.info("found a run that nobody announced", job=row["ref"])
        # Whatever cannot be tracked now, for instance because an earlier process with its number
        # is still tracked, is tried again.
        self._read_at = None if any(row["error"] for row in rows) else changed_at


def start_of(one: Launched) -> LocalStart | None:
    """The announcement that did not arrive, without what the desk would not take of it.

    None where even the process is no possible one.
    """
    body = one.body
    boot_id, _, ticks = one.birth.partition(":")
    must: dict[str, Any] = {"pid": one.pid, "birth": ticks, "boot_id": boot_id}
    seen = {key: body[key] for key in _SEEN if body.get(key)}
    asked = {key: body[key] for key in _ASKED if body.get(key)}
    attempts: Sequence[dict[str, Any]] = (
        must | seen | asked | {"command": _command(body.get("command"))},
        must | seen,
        must,
    )
    for attempt in attempts:
        try:
            return LocalStart.read(attempt)
        except ConfigError as wrong:
            journal.debug("record not taken whole", record=one.path.name, why=str(wrong))
    return None


def _command(words: Any) -> str | None:
    if not isinstance(words, list) or not words:
        return None
    line = str(words[0]) if len(words) == 1 else shlex.join(str(word) for word in words)
    return visible(line)[:_COMMAND_CHARS]


def _changed_at(folder: Path) -> int | None:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return None


def _myself() -> Peer:
    return Peer(uid=os.geteuid(), gid=os.getegid(), pid=os.getpid())
