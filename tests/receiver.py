"""A real HTTP server that answers as a test says, and dedupes by key as receivers should."""

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Request:
    """One whole request. Names of headers are in lower case."""

    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def key(self) -> str:
        return self.headers["webhook-id"]

    @property
    def news(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """What goes back. `take` is whether the receiver keeps the event, `then` how it ends."""

    raw: bytes
    take: bool = False
    then: str = "open"  # or close, reset, hang


def status(code: int, body: bytes = b"ok", **headers: str) -> Reply:
    lines = [f"HTTP/1.1 {code} Said", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return Reply("\r\n".join(lines).encode() + b"\r\n\r\n" + body, take=200 <= code < 300)


HANG = Reply(b"", then="hang")
HALF_HANG = Reply(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nha", take=True, then="hang")
RESET = Reply(b"", then="reset")
RESET_TAKEN = Reply(b"", take=True, then="reset")
CLOSE = Reply(b"", then="close")
MID_BODY = Reply(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nha", take=True, then="close")
MID_CHUNK = Reply(
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha", take=True, then="close"
)
NO_HTTP = Reply(b"SSH-2.0-OpenSSH_9.2\r\n", then="close")
OK = status(200)

Script = Callable[[Request], Reply]


@dataclass
class Receiver:
    """Answers with one of `replies` after the other and then with 200; `script` overrides both.

    `requests` are all that came, `taken` the news it kept, in order, each key once.
    """

    replies: list[Reply] = field(default_factory=list)
    script: Script | None = None
    tls: ssl.SSLContext | None = None
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    taken: dict[str, Request] = field(default_factory=dict)
    again: list[str] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _open: dict[asyncio.Task[None], asyncio.StreamWriter] = field(default_factory=dict)

    @property
    def url(self) -> str:
        scheme = "https" if self.tls else "http"
        return f"{scheme}://127.0.0.1:{self.port}/hook"

    async def up(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self.tls, reuse_address=True
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._open.values():
            writer.transport.abort()
        if self._open:
            await asyncio.wait(list(self._open))
        await self._server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(self, *failure: object) -> None:
        self.released.set()
        await self.down()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        task.add_done_callback(self._open.pop)
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await _request(reader)
        self.requests.append(request)
        self.arrived.set()
        reply = self._reply(request)
        if reply.take and "webhook-id" in request.headers:
            self._take(request)
        writer.write(reply.raw)
        await writer.drain()
        if reply.then == "hang":
            await reader.read()  # until the other side gives up
        if reply.then == "reset":
            raw: socket.socket = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return reply.then == "open"

    def _reply(self, request: Request) -> Reply:
        if self.script is not None:
            return self.script(request)
        return self.replies.pop(0) if self.replies else OK

    def _take(self, request: Request) -> None:
        if request.key in self.taken:
            self.again.append(request.key)
            assert self.taken[request.key].body == request.body
        else:
            self.taken[request.key] = request


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(first.split(" ")[1], headers, body)
