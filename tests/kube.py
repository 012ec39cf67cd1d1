"""A Kubernetes API server of Python objects: as a port, and over HTTP with faults on request."""

import asyncio
import contextlib
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from jobmond.ports import HttpAnswer

_LIST = re.compile(r"/(?:api|apis)/(?:[^/]+/)?(?:v1|v1beta1|v1beta2)/namespaces/([^/]+)/([a-z]+)")
KINDS = {
    "jobs": ("batch/v1", "Job", "batch"),
    "pods": ("v1", "Pod", ""),
    "events": ("v1", "Event", ""),
    "workloads": ("kueue.x-k8s.io/v1beta2", "Workload", "kueue.x-k8s.io"),
}


def status_body(code: int, reason: str, message: str, **details: Any) -> bytes:
    return json.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": details,
            "code": code,
        }
    ).encode()


JSON = {"content-type": "application/json"}
TEXT = {"content-type": "text/plain; charset=utf-8"}


@dataclass
class ApiState:
    """Objects by (plural, namespace), and what is asked of them."""

    namespaces: set[str] = field(default_factory=lambda: {"ml"})
    objects: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    logs: dict[tuple[str, str, bool], bytes] = field(default_factory=dict)
    kueue: bool = False
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    fixed: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # by the end of a path
    served: dict[str, bytes] = field(default_factory=dict)  # whole lists, made once

    def put(self, plural: str, *objects: dict[str, Any], namespace: str = "ml") -> None:
        self.objects.setdefault((plural, namespace), []).extend(objects)

    def clear(self) -> None:
        self.objects.clear()

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def answer(self, path: str, query: Mapping[str, str]) -> HttpAnswer:
        self.asked.append((path, dict(query)))
        for end, (status, body) in self.fixed.items():
            if path.endswith(end):
                return HttpAnswer(status, JSON if body[:1] == b"{" else TEXT, body)
        found = _LIST.match(path)
        if path.endswith("/log"):
            return self._log(path, query)
        if found and found.end() == len(path) and found[2] in KINDS:
            return self._list(found[1], found[2], query)
        parts = path.strip("/").split("/")
        if found and found[2] in KINDS and path.count("/") == found[0].count("/") + 1:
            return self._one(found[1], found[2], parts[-1])
        if path.startswith("/api/v1/namespaces/") and len(parts) == 4:
            return self._namespace(parts[3])
        return HttpAnswer(404, TEXT, b"404 page not found\n")

    def _namespace(self, name: str) -> HttpAnswer:
        if name in self.namespaces:
            body = {"kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}}
            return HttpAnswer(200, JSON, json.dumps(body).encode())
        said = f'namespaces "{name}" not found'
        return HttpAnswer(404, JSON, status_body(404, "NotFound", said, name=name))

    def _one(self, namespace: str, plural: str, name: str) -> HttpAnswer:
        for one in self.objects.get((plural, namespace), []):
            meta = one.get("metadata")
            if isinstance(meta, dict) and meta.get("name") == name:
                return HttpAnswer(200, JSON, json.dumps(one).encode())
        group = KINDS[plural][2]
        said = f'{plural}{"." if group else ""}{group} "{name}" not found'
        return HttpAnswer(404, JSON, status_body(404, "NotFound", said, name=name, kind=plural))

    def _list(self, namespace: str, plural: str, query: Mapping[str, str]) -> HttpAnswer:
        if plural == "workloads" and not self.kueue:
            return HttpAnswer(404, TEXT, b"404 page not found\n")
        items = self.objects.get((plural, namespace), [])
        if wanted := query.get("fieldSelector"):
            uid = wanted.removeprefix("involvedObject.uid=")
            items = [one for one in items if one["involvedObject"]["uid"] == uid]
        if wanted := query.get("labelSelector"):
            key, sign, value = wanted.partition("=")
            if not sign or not key:
                return HttpAnswer(400, JSON, status_body(400, "BadRequest", "unable to parse"))
            items = [o for o in items if o["metadata"].get("labels", {}).get(key) == value]
        start, limit = int(query.get("continue") or 0), int(query.get("limit") or 10**9)
        meta: dict[str, Any] = {"resourceVersion": "7"}
        if start + limit < len(items):
            meta["continue"] = str(start + limit)
        version, kind, _ = KINDS[plural]
        body = {"kind": f"{kind}List", "apiVersion": version, "metadata": meta}
        whole = {**body, "items": items[start : start + limit]}
        return HttpAnswer(200, JSON, json.dumps(whole).encode())

    def _log(self, path: str, query: Mapping[str, str]) -> HttpAnswer:
        pod = path.split("/")[-2]
        previous = query.get("previous") == "true"
        container = query.get("container", "train")
        body = self.logs.get((pod, container, previous))
        if body is None:
            if previous:
                said = f'previous terminated container "{container}" in pod "{pod}" not found'
                return HttpAnswer(400, JSON, status_body(400, "BadRequest", said))
            said = f'pods "{pod}" not found'
            return HttpAnswer(404, JSON, status_body(404, "NotFound", said, name=pod, kind="pods"))
        return HttpAnswer(200, TEXT, served_log(body, query))


def served_log(body: bytes, query: Mapping[str, str]) -> bytes:
    """Lines that begin with their time, as a kubelet serves them."""
    lines = body.splitlines(keepends=True)
    if since := query.get("sinceTime"):
        lines = [line for line in lines if line[:19] >= since[:19].encode()]
    if tail := query.get("tailLines"):
        lines = lines[max(0, len(lines) - int(tail)) :]
    if query.get("timestamps") != "true":
        lines = [line.partition(b" ")[2] for line in lines]
    return b"".join(lines)[: int(query.get("limitBytes") or 10**12)]


class ApiPort:
    """`ApiState` as a `KubeApi`. `fails` is raised instead of any answer."""

    logins = 1

    def __init__(self, state: ApiState | None = None) -> None:
        self.state = state or ApiState()
        self.fails: Exception | None = None
        self.at_once = 0
        self.most_at_once = 0

    async def namespace(self, *, timeout_s: float) -> str:
        if self.fails:
            raise self.fails
        return "ml"

    async def get(
        self, path: str, query: Mapping[str, str], *, timeout_s: float, max_bytes: int
    ) -> HttpAnswer:
        if self.fails:
            raise self.fails
        return self.state.answer(path, query)

    async def close(self) -> None: ...


class Steady:
    """A clock that stands still."""

    def now(self) -> datetime:
        return datetime(2026, 11, 29, 18, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Server:
    """The state over HTTP. `fault` answers instead where it is set and returns something."""

    state: ApiState
    url: str = ""
    fault: Callable[[web.Request], Awaitable[web.StreamResponse | None]] | None = None
    requests: list[web.Request] = field(default_factory=list)
    now: int = 0
    most_at_once: int = 0
    token: str | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.now += 1
        self.most_at_once = max(self.most_at_once, self.now)
        try:
            await asyncio.sleep(0)
            if self.fault is not None:
                faulty = await self.fault(request)
                if faulty is not None:
                    return faulty
            if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
                body = status_body(401, "Unauthorized", "Unauthorized")
                return web.Response(status=401, body=body, headers=JSON)
            said = self.state.answer(request.path, request.query)
            return web.Response(status=said.status, body=said.body, headers=dict(said.headers))
        finally:
            self.now -= 1


@contextlib.asynccontextmanager
async def api_server(
    state: ApiState | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    server = Server(state or ApiState())
    app = web.Application()
    app.router.add_route("*", "/{anything:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def kubeconfig(
    folder: Path,
    url: str,
    *,
    user: dict[str, Any] | None = None,
    cluster: dict[str, Any] | None = None,
    **context: str,
) -> Path:
    """Write one; JSON is YAML."""
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "lab",
                "contexts": [
                    {"name": "lab", "context": {"cluster": "lab", "user": "me", **context}}
                ],
                "clusters": [{"name": "lab", "cluster": {"server": url, **(cluster or {})}}],
                "users": [{"name": "me", "user": user or {"token": "secret-token"}}],
            }
        )
    )
    return path


# ---- objects ---------------------------------------------------------------------------------


def job(name: str = "train", status: Mapping[str, Any] | None = None, **spec: Any) -> dict:
    meta = {
        "name": name,
        "namespace": "ml",
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-11-29T16:00:00Z",
    }
    return {
        "metadata": meta,
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "suspend": False,
            **spec,
            "template": {
                "spec": {"containers": [{"name": "train", "command": ["python", "t.py"]}]}
            },
        },
        "status": dict(status or {}),
    }


def pod(
    name: str = "train-x", status: Mapping[str, Any] | None = None, *, of: str | None = "train"
) -> dict:
    meta: dict[str, Any] = {
        "name": name,
        "namespace": "ml",
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-11-29T16:00:00Z",
    }
    if of is not None:
        meta["labels"] = {
            "batch.kubernetes.io/job-name": of,
            "batch.kubernetes.io/controller-uid": f"uid-{of}",
        }
        meta["ownerReferences"] = [{"kind": "Job", "name": of, "uid": f"uid-{of}"}]
    return {
        "metadata": meta,
        "spec": {"nodeName": "node1", "containers": [{"name": "train"}]},
        "status": dict(status or {"phase": "Pending"}),
    }


def event(about: str, reason: str, message: str, kind: str = "Warning") -> dict:
    return {
        "metadata": {"name": f"e-{about}-{reason}", "uid": f"e-{about}-{reason}"},
        "involvedObject": {"uid": about},
        "type": kind,
        "reason": reason,
        "message": message,
        "lastTimestamp": "2026-11-29T16:05:00Z",
    }


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> dict:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-29T16:30:00Z",
    }


RUNNING = {
    "phase": "Running",
    "containerStatuses": [
        {
            "name": "train",
            "restartCount": 0,
            "state": {"running": {"startedAt": "2026-11-29T16:00:05Z"}},
        }
    ],
}


def terminated(code: int, reason: str = "Error", message: str = "", phase: str = "Failed") -> dict:
    over = {
        "exitCode": code,
        "reason": reason,
        "message": message,
        "startedAt": "2026-11-29T16:00:05Z",
        "finishedAt": "2026-11-29T16:20:00Z",
    }
    held = {"name": "train", "restartCount": 0, "state": {"terminated": over}}
    return {"phase": phase, "containerStatuses": [held]}
