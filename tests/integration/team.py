"""A receiver of news for daemons that run as processes of their own."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Team:
    """A receiver in a thread. While `hanging`, a request gets no answer until it is `freed`.

    While its `gate` is closed, requests are answered late. `came` are all events that were sent,
    `asked` the paths and keys of all requests, `taken` the events it kept, each key once.
    """

    def __init__(self) -> None:
        self.came: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        self.taken: list[dict[str, Any]] = []
        self.hanging = threading.Event()
        self.freed = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        team = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                news = json.loads(self.rfile.read(int(self.headers["content-length"])))
                team.came.append(news)
                team.asked.append((self.path, news["key"]))
                team.gate.wait()
                if team.hanging.is_set():
                    team.freed.wait()
                    return
                if news["key"] not in [one["key"] for one in team.taken]:
                    team.taken.append(news)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook"

    def close(self) -> None:
        self.freed.set()
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
