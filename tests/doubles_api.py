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


# Clients have threads of their own: in the loop's they would leave none to the server.
_CLIENTS = ThreadPoolExecutor(32, thread_name_prefix="client")


async def ask(path, method, target, body=None, **over):
    asking = partial(ask_now, path, method, target, body, **over)
    return await asyncio.get_running_loop().run_in_executor(_CLIENTS, asking)


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
