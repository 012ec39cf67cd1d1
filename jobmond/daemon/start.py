"""From the command line to a running daemon, or to one sweep without one."""

import asyncio
import os
import shlex
import shutil
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import structlog

from jobmond.api.server import ApiServer
from jobmond.app import open_app
from jobmond.clock import SystemClock
from jobmond.daemon.counter import desk_of, refit
from jobmond.daemon.daemon import Daemon
from jobmond.daemon.handover import Handover
from jobmond.daemon.notify import Systemd
from jobmond.daemon.pickup import Pickup
from jobmond.daemon.registries import Registries
from jobmond.desk.desk import Desk
from jobmond.desk.peer import group_id
from jobmond.errors import ConfigError
from jobmond.settings import Loaded, Settings
from jobmond.settings.paths import socket_candidates, state_directory
from jobmond.sweep.sweep import Result

journal = structlog.get_logger("jobmond")

RECEIVERS_S = 60.0  # how long a sweep without a daemon waits for receivers elsewhere


async def serve(
    load: Callable[[], Loaded],
    *,
    given_socket: str | None,
    env: Mapping[str, str],
    say: Callable[[str], object] = lambda line: None,
    ready: Callable[[], object] = lambda: None,
) -> None:
    """Run the daemon until it is told to stop.

    `say` shows a person a line; `ready` is called once the daemon answers.

    Raises:
        JobmondError: it cannot start; one line says why.
    """
    loaded = await asyncio.to_thread(load)
    app = await open_app(loaded.settings, state_directory(env), SystemClock())
    try:
        daemon = Daemon(
            app,
            reload=_again(load, loaded),
            seed=socket.gethostname(),
            systemd=Systemd.of(env, pid=os.getpid()),
        )
        desk = desk_of(
            app,
            request_sweep=daemon.request,
            wake=daemon.wake,
            changed=daemon.changed,
            last_answer=daemon.last_answer,
        )
        daemon.refit = partial(refit, desk)
        pickup, registries = Pickup(desk, app.runs, app.runs_since), Registries(app, desk)
        daemon.pick_up = partial(_one_by_one, pickup.look, registries.look_around)
        daemon.notice = registries.look
        desk.handover = Handover(app, desk, registries)
        daemon.idle = lambda: [say(line) for line in first_steps(sys.argv[0], given_socket)]
        app.problems = lambda: [*daemon.problems, *registries.problems]
        app.next_sweep_at = lambda: daemon.bell.next_at
        app.on_commit = desk.notify
        server = _server(desk, loaded, given_socket, env, ready)
        await daemon.run(server, before_end=desk.close)
    finally:
        await app.close()


async def _one_by_one(*looks: Callable[[], Awaitable[None]]) -> None:
    for look in looks:
        await look()


def _again(load: Callable[[], Loaded], first: Loaded) -> Callable[[], Settings]:
    """Reads the configuration anew; one that is gone is a mistake, not a wish for the built-in."""

    def read() -> Settings:
        loaded = load()
        if first.path is not None and loaded.path is None:
            raise ConfigError(f"{first.path} is gone")
        return loaded.settings

    return read


def first_steps(program: str, given_socket: str | None) -> tuple[str, str]:
    """What to type next where nothing is tracked, by somebody who started `program`."""
    beside = Path(program).with_name("jobmonctl")
    if shutil.which("jobmonctl") is None and beside.exists():
        client = shlex.quote(str(beside))
    else:
        client = "jobmonctl"
    to = f" --socket {shlex.quote(given_socket)}" if given_socket else ""
    return (
        f"Nothing is tracked yet. In another terminal:  {client} run{to} -- CMD",
        f"and then, to see how it is doing:             {client} status{to}",
    )


class _Server:
    """The API at the first socket that can be made."""

    def __init__(self, servers: list[ApiServer], ready: Callable[[], object]) -> None:
        self._servers = servers
        self._ready = ready
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
            journal.info("ready", socket=str(server.path))
            self._ready()
            return

    async def stop(self) -> None:
        if self._running is not None:
            await self._running.stop()


def _server(
    desk: Desk,
    loaded: Loaded,
    given: str | None,
    env: Mapping[str, str],
    ready: Callable[[], object],
) -> _Server:
    settings = loaded.settings
    gid = group_id(settings.socket_group) if settings.socket_group else None
    places = socket_candidates(given, env, settings.socket)
    return _Server([ApiServer(desk, path, gid=gid) for path in places], ready)


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
        desk = desk_of(app)
        await Pickup(desk, app.runs, app.runs_since).look()
        await Registries(app, desk).look()
        done = await asyncio.gather(*(app.sweep(name) for name in app.clusters))
        if app.parts.outlets.far:
            await app.couriers.idle(timeout_s=RECEIVERS_S)
            await app.report()
        await app.remind()
        await app.errands.idle()
        await app.expire()
        return list(done)
    finally:
        await app.close()
