"""The server: starlette on uvicorn over a socket that is bound before uvicorn sees it."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from jobmond import __version__
from jobmond.api.listen import Listener, listen, peer_of
from jobmond.api.routes import application
from jobmond.desk.desk import Desk
from jobmond.reports.document import SCHEMA

_GRACE_S = 5


class ApiServer:
    """Serves one desk at one socket, in the running event loop."""

    def __init__(self, desk: Desk, path: Path, *, gid: int | None = None) -> None:
        """`gid` is the socket group: its members may connect, and the desk's rights decide."""
        self._desk = desk
        self._path = path
        self._gid = gid
        self._listener: Listener | None = None
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def path(self) -> Path:
        """Where the socket is."""
        return self._path

    async def start(self) -> None:
        """Answer from now on.

        Raises:
            Refused: a living daemon answers at the socket, or it is another user's.
            ConfigError: the path cannot be a socket.
        """
        self._listener = listen(self._path, gid=self._gid)
        config = uvicorn.Config(
            application(self._desk, self._health),
            http=_PeerProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            # uvicorn would tell every defect again that the journal has told.
            log_level="critical",
            access_log=False,
            server_header=False,
            headers=[("Jobmond-Version", __version__)],
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(
            self._server.serve(sockets=[self._listener.socket]), name="api"
        )
        ready = asyncio.create_task(self._server.ready.wait())
        await asyncio.wait({ready, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._serving.done():
            await self.stop()

    async def stop(self) -> None:
        """Take no more requests, let those in hand end (5 s at most), remove the socket."""
        if self._server is None or self._listener is None or self._serving is None:
            return
        self._desk.close()
        self._server.should_exit = True
        try:
            await self._serving
        finally:
            self._listener.close()
            self._server = self._listener = self._serving = None

    def _health(self) -> Mapping[str, Any]:
        return {
            "version": __version__,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "schema": SCHEMA,
        }


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The daemon owns the signals."""
        yield


class _PeerProtocol(H11Protocol):
    """Puts the peer, as the kernel names it, into every request's scope."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # we listen on sockets, whose transports these are
        super().connection_made(transport)
        self.app_state = {**self.app_state, "peer": peer_of(transport.get_extra_info("socket"))}
