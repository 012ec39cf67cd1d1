"""The sinks of registry files: as many as there are files with something to write."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from jobmond import registry
from jobmond.ports import Clock, Sink
from jobmond.store.registries import sink_name

Call = Callable[..., Awaitable[Any]]


class Registers(Protocol):
    """The part of the store that knows what the entries should say."""

    def wanted(self, path: str) -> Mapping[str, str | None]: ...
    def stood(self, path: str, written: Mapping[str, str | None], now: datetime) -> None: ...


class StoredWords:
    """What entries should say, as the store knows it at that moment."""

    def __init__(self, registers: Registers, call: Call, clock: Clock) -> None:
        self._registers, self._call, self._clock = registers, call, clock

    async def wanted(self, path: str) -> Mapping[str, str | None]:
        words: Mapping[str, str | None] = await self._call(self._registers.wanted, path)
        return words

    async def stood(self, path: str, written: Mapping[str, str | None]) -> None:
        await self._call(self._registers.stood, path, written, self._clock.now())


def write_backs(
    waiting: Iterable[str], watched: Iterable[str], words: StoredWords
) -> dict[str, Sink]:
    """Sinks for those of the `waiting` queues whose file is watched; others are left alone."""
    by_name = {sink_name(path): path for path in watched}
    factory = registry.sinks["registry-file"]
    return {name: factory(words, path=Path(by_name[name])) for name in waiting if name in by_name}
