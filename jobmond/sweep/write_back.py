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


class WriteBacks:
    """Sinks of registry files, each made once: it may have a write in hand."""

    def __init__(self, words: StoredWords) -> None:
        self._words = words
        self._sinks: dict[str, Sink] = {}

    def of(self, waiting: Iterable[str], watched: Iterable[str]) -> dict[str, Sink]:
        """Those for the `waiting` queues whose file is watched; others are left alone."""
        by_name = {sink_name(path): path for path in watched}
        return {name: self._sink(name, by_name[name]) for name in waiting if name in by_name}

    def _sink(self, name: str, path: str) -> Sink:
        if name not in self._sinks:
            factory = registry.sinks["registry-file"]
            self._sinks[name] = factory(self._words, path=Path(path))
        return self._sinks[name]
