"""A real server over a desk of doubles, and a client for it."""

import asyncio
import http.client
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from jobmond.api.server import ApiServer


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("jobmond", timeout=60)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def ask_now(path, method, target, body=None, *, raw=None):
    connection = Connection(path)
    try:
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        connection.request(method, target, body=content)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


async def ask(path, method, target, body=None, **over):
    # Threads of their own: the server takes the loop's for its answers, and there are few of them.
    loop = asyncio.get_running_loop()
    own = ThreadPoolExecutor(1)
    try:
        return await loop.run_in_executor(own, partial(ask_now, path, method, target, body, **over))
    finally:
        own.shutdown(wait=False)


class Served:
    """A running server over a scene of doubles."""

    def __init__(self, scene, path, **over):
        self.scene, self.path = scene, path
        self.desk = scene.desk(**over)
        self.server = ApiServer(self.desk, path)

    async def __aenter__(self):
        await self.server.start()
        return self

    async def __aexit__(self, *exc):
        await self.server.stop()

    async def ask(self, method, target, body=None, **over):
        return await ask(self.path, method, target, body, **over)
