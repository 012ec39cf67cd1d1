"""The sinks of a configuration, made with the ports they ask for."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobmond import registry
from jobmond.errors import ConfigError
from jobmond.ports import Clock, FarSink, HttpApi, Sink


@dataclass(slots=True)
class Outlets:
    """Near sinks are waited for, far ones are not. `close` ends the connections they share."""

    near: dict[str, Sink] = field(default_factory=dict)
    far: dict[str, FarSink] = field(default_factory=dict)
    http: HttpApi | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.near, *self.far)

    def add(self, name: str, sink: Sink) -> None:
        if isinstance(sink, FarSink):
            self.far[name] = sink
        else:
            self.near[name] = sink

    async def close(self) -> None:
        if self.http is not None:
            await self.http.close()


def outlets(
    tables: Iterable[tuple[str, str, Mapping[str, Any]]],
    *,
    clock: Clock,
    http: Callable[[], HttpApi],
) -> Outlets:
    """Sinks from their names, kinds and options.

    The positional-only parameters of a sink's factory are ports, asked for by name: `clock`, and
    `http`, which is made once where one is needed.

    Raises:
        ConfigError: an option has a value that its sink does not take.
    """
    made = Outlets()

    def port(wanted: str) -> object:
        if wanted == "clock":
            return clock
        if wanted != "http":
            raise LookupError(f"no port is called {wanted!r}")
        made.http = made.http or http()
        return made.http

    for name, kind, options in tables:
        factory = registry.sinks[kind]
        parameters = inspect.signature(factory).parameters.values()
        ports = [port(p.name) for p in parameters if p.kind is p.POSITIONAL_ONLY]
        try:
            made.add(name, factory(*ports, **options))
        except ConfigError as error:
            raise ConfigError(f"sinks.{name}.{error}") from error
    return made
