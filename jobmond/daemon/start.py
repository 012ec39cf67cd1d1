"""From the command line to a running daemon, or to one sweep without one."""

import asyncio
import socket
from collections.abc import Callable, Mapping

import structlog

from jobmond.api.server import ApiServer
from jobmond.app import open_app
from jobmond.clock import SystemClock
from jobmond.daemon.counter import desk_of
from jobmond.daemon.daemon import Daemon
from jobmond.desk.peer import group_id
from jobmond.errors import ConfigError
from jobmond.settings import Loaded
from jobmond.settings.paths import socket_candidates, state_directory
from jobmond.sweep.sweep import Result

journal = structlog.get_logger("jobmond")


async def serve(
    load: Callable[[], Loaded], *, given_socket: str | None, env: Mapping[str, str]
) -> None:
    """Run the daemon until it is told to stop.

    Raises:
        JobmondError: it cannot start; one line says why.
    """
    loaded = await asyncio.to_thread(load)
    app = await open_app(loaded.settings, state_directory(env), SystemClock())
    try:
        daemon = Daemon(app, reload=lambda: load().settings, seed=socket.gethostname())
        desk = desk_of(app, daemon)
        app.next_sweep_at = lambda: daemon.bell.next_at
        app.on_commit = desk.notify
        server = _server(desk, loaded, given_socket, env)
        await daemon.run(server, before_end=desk.close)
    finally:
        await app.close()


class _Server:
    """The API at the first socket that can be made."""

    def __init__(self, servers: list[ApiServer]) -> None:
        self._servers = servers
        self._running: ApiServer | None = None

    async def start(self) -> None:
        """Raises ConfigError or Refused, as the last candidate does, where none can be made."""
        for number, server in enumerate(self._servers, 1):
            try:
                await server.start()
            except ConfigError:
                if number == len(self._servers):
                    raise
                continue
            self._running = server
            return

    async def stop(self) -> None:
        if self._running is not None:
            await self._running.stop()


def _server(desk: "object", loaded: Loaded, given: str | None, env: Mapping[str, str]) -> _Server:
    settings = loaded.settings
    gid = group_id(settings.socket_group) if settings.socket_group else None
    places = socket_candidates(given, env, settings.socket)
    return _Server([ApiServer(desk, path, gid=gid) for path in places])  # type: ignore[arg-type]


async def sweep_once(load: Callable[[], Loaded], env: Mapping[str, str]) -> list[Result]:
    """One sweep of every cluster without a daemon.

    Raises:
        Refused: a daemon holds the database.
        JobmondError: it cannot start; one line says why.
    """
    loaded = await asyncio.to_thread(load)
    app = await open_app(loaded.settings, state_directory(env), SystemClock())
    try:
        await app.deliver()
        done = await asyncio.gather(*(app.sweep(name) for name in app.clusters))
        await app.expire()
        return list(done)
    finally:
        await app.close()
