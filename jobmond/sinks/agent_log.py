"""Failure entries on disk, and an index of each day."""

import asyncio
import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobmond.analysis.visible import visible
from jobmond.errors import SinkRefusal, SinkRetry
from jobmond.model.outcome import Delivery
from jobmond.registry import sinks

_ENTRY = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)/(?P<file>[A-Za-z0-9][A-Za-z0-9._-]{0,250}\.md)")
_INDEX = "INDEX.md"
_HEAD_BYTES = 16 * 1024  # front matter is far shorter


@sinks.plugin("agent-log")
class AgentLogSink:
    """Makes entries stand: `<folder>/YYYY-MM-DD/<cluster>-<id>-<name>.md`.

    `root` is the folder of entries. A delivery's body is `{"path", "text"}`, its path relative
    to that folder or absolute below it.
    """

    def __init__(self, *, root: Path) -> None:
        self._folder = Path(root)

    async def send(self, deliveries: Sequence[Delivery]) -> None:
        """Writes each entry that is not there as it should be, then the indexes of their days.

        An entry is replaced whole or not at all. One about another incarnation that has the same
        name is kept beside it, its birth in its name.

        Raises:
            SinkRetry: the folder cannot be written.
            SinkRefusal: a path leads elsewhere, or the body has no text.
        """
        await asyncio.to_thread(self._send, deliveries)

    def _send(self, deliveries: Sequence[Delivery]) -> None:
        entries = [self._entry(delivery) for delivery in deliveries]
        days = dict.fromkeys(target.parent for target, _ in entries)
        try:
            for target, text in entries:
                _make_folder(target.parent)
                _keep_other_birth(target, text)
                _replace(target, text)
            for day in days:
                # A folder of that name is somebody else's: the entries stand without an index.
                with contextlib.suppress(IsADirectoryError):
                    _replace(day / _INDEX, _index(day))
        except OSError as error:
            where = error.filename or self._folder
            raise SinkRetry(f"{where}: {error.strerror or error}; the entry is not written") from (
                error
            )

    def _entry(self, delivery: Delivery) -> tuple[Path, bytes]:
        path, text = delivery.body.get("path"), delivery.body.get("text")
        if not isinstance(path, str) or not isinstance(text, str):
            raise SinkRefusal(f"entry {delivery.key} has no path or no text")
        relative = path.removeprefix(f"{self._folder}/")
        found = _ENTRY.fullmatch(relative)
        if found is None or ".." in relative or found["file"] == _INDEX:
            raise SinkRefusal(f"entry {delivery.key}: {visible(path)!r} is no place for an entry")
        return self._folder / relative, text.encode("utf-8", "backslashreplace")


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _replace(target: Path, text: bytes) -> None:
    """Writes `target` whole and on disk, or leaves it as it was."""
    with contextlib.suppress(FileNotFoundError):
        if target.read_bytes() == text:
            return
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    _sync(target.parent)


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _keep_other_birth(target: Path, text: bytes) -> None:
    try:
        with target.open("rb") as file:
            there = _front_matter(file.read(_HEAD_BYTES))
    except FileNotFoundError:
        return
    birth = there.get("birth")
    if birth and birth != _front_matter(text[:_HEAD_BYTES]).get("birth"):
        name = re.sub(r"[^A-Za-z0-9._-]", "_", str(birth))[:60]
        target.replace(target.with_name(f"{target.stem}@{name}.md"))


def _front_matter(head: bytes) -> Mapping[str, Any]:
    """The values at the head of an entry; empty where there are none."""
    begin, *rest = head.decode("utf-8", "replace").split("\n")
    if begin != "---":
        return {}
    values: dict[str, Any] = {}
    for line in rest:
        if line == "---":
            return values
        name, _, value = line.partition(": ")
        with contextlib.suppress(ValueError):
            values[name] = json.loads(value)
    return {}


def _index(day: Path) -> bytes:
    rows = sorted(_rows(day))
    lines = [
        f"# Failures of {day.name}",
        "",
        "| Ended (UTC) | Job | Name | State | Cause | Entry |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


def _rows(day: Path) -> Iterator[tuple[str, ...]]:
    for path in day.glob("*.md"):
        if path.name == _INDEX or path.name.startswith(".") or not path.is_file():
            continue
        try:
            with path.open("rb") as file:
                values = _front_matter(file.read(_HEAD_BYTES))
        except OSError:
            continue  # what others put here and we may not read holds up no entry of ours
        cells = (_cell(values.get(name)) for name in ("ended_at", "ref", "name", "state", "cause"))
        yield (*cells, f"[{path.name}]({path.name})")


def _cell(value: object) -> str:
    text = visible(str(value if value is not None else "—"))
    return re.sub(r"([\\`*_\[\]<>|&])", r"\\\1", text)
