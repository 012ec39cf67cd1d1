"""Lists and single records of the API server, read page by page and checked."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from jobmond.analysis.visible import readable, visible
from jobmond.backends.kubernetes.records import Unreadable
from jobmond.errors import JobmondError, TransientTransportError
from jobmond.ports import Clock, HttpAnswer, KubeApi, Offload

T = TypeVar("T")

_SAID_CHARS = 300
_MAX_PAGES = 1000


class Refusal(JobmondError):
    """The server answered, and what it says is no answer to the question."""

    def __init__(self, status: int, said: str, *, missing: bool = False) -> None:
        super().__init__(said)
        self.status = status
        self.missing = missing  # it says that the thing itself does not exist


@dataclass(slots=True)
class Listed(Generic[T]):
    """Items in their order, and by name why others could not be read."""

    items: list[T] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Asking:
    """One poll's questions: how they are sent, how long they may take together, and their count."""

    api: KubeApi
    clock: Clock
    offload: Offload
    deadline: float  # on the monotonic clock
    request_s: float
    max_bytes: int
    page: int
    calls: dict[str, int] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    async def get(self, name: str, path: str, query: Mapping[str, str]) -> HttpAnswer:
        """Raises TransportError: no answer, or no time left to ask."""
        left_s = self.deadline - self.clock.monotonic()
        if left_s <= 0:
            raise TransientTransportError("the sweep's time is up")
        self.calls[name] = self.calls.get(name, 0) + 1
        return await self.api.get(
            path, query, timeout_s=min(left_s, self.request_s), max_bytes=self.max_bytes
        )

    async def default_namespace(self) -> str:
        """Raises TransportError."""
        return await self.api.namespace(timeout_s=self.request_s)

    async def record(self, name: str, path: str) -> Any:
        """One record as it came.

        Raises:
            TransportError: no answer.
            Refusal: an answer that is none.
        """
        answer = await self.get(name, path, {})
        if answer.status != 200:
            raise refusal(answer)
        return await self.offload(lambda: _object(answer.body))

    async def list(
        self, name: str, path: str, query: Mapping[str, str], read: Callable[[Any], T]
    ) -> Listed[T]:
        """Every item of a list. One that cannot be read is left out and named.

        Raises:
            TransportError, Refusal: as for `record`. A list that came in part is no answer.
        """
        for last in (False, True):
            try:
                return await self._pages(name, path, query, read)
            except Refusal as gone:
                # The list grew too old while it was read: the pages that came say nothing of
                # those that did not.
                if gone.status != 410 or last:
                    raise
        raise AssertionError  # the loop returns or raises

    async def _pages(
        self, name: str, path: str, query: Mapping[str, str], read: Callable[[Any], T]
    ) -> Listed[T]:
        whole: Listed[T] = Listed()
        token = ""
        for _ in range(_MAX_PAGES):
            asked = {**query, "limit": str(self.page)}
            if token:
                asked["continue"] = token
            answer = await self.get(name, path, asked)
            if answer.status != 200:
                raise refusal(answer)
            found, token = await self.offload(_page_reader(answer.body, read))
            whole.items.extend(found.items)
            whole.unreadable.update(found.unreadable)
            whole.complaints.extend(found.complaints)
            if not token:
                self.complaints.extend(whole.complaints)
                return whole
        raise Refusal(200, f"{path}: the list does not end")


def _page_reader(body: bytes, read: Callable[[Any], T]) -> Callable[[], tuple[Listed[T], str]]:
    return lambda: _page(body, read)


def _page(body: bytes, read: Callable[[Any], T]) -> tuple[Listed[T], str]:
    held = _object(body)
    items, meta = held.get("items"), held.get("metadata")
    if items is None and str(held.get("kind", "")).endswith("List"):
        items = []  # how an empty list is written by some
    if not isinstance(items, list) or not isinstance(meta, dict | None):
        raise Refusal(200, f"an answer that is no list: {_clipped(body)}")
    found: Listed[T] = Listed()
    for raw in items:
        try:
            found.items.append(read(raw))
        except Unreadable as odd:
            name = _name(raw)
            found.complaints.append(f"{name or 'a record'}: {odd}")
            if name:
                found.unreadable[name] = str(odd)
    token = (meta or {}).get("continue") or ""
    if not isinstance(token, str):
        raise Refusal(200, "a list whose continue token is no text")
    return found, token


def _name(raw: Any) -> str | None:
    meta = raw.get("metadata") if isinstance(raw, dict) else None
    name = meta.get("name") if isinstance(meta, dict) else None
    return visible(name) if isinstance(name, str) else None


def _object(body: bytes) -> dict[str, Any]:
    try:
        held = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(200, f"an answer that is no JSON: {_clipped(body)}") from error
    if not isinstance(held, dict):
        raise Refusal(200, f"an answer that is no object: {_clipped(body)}")
    return held


def refusal(answer: HttpAnswer) -> Refusal:
    """What an answer other than 200 says, in one line."""
    status = _status(answer.body)
    missing = answer.status == 404 and status is not None
    said = status if status else _clipped(answer.body)
    if not said:
        said = "no text with it"
    if said.lstrip().lower().startswith(("<!doctype", "<html", "<")):
        said = "a page in HTML, of a proxy or load balancer"
    return Refusal(
        answer.status, f"the API server answers {answer.status}: {said}", missing=missing
    )


def _status(body: bytes) -> str | None:
    """The message of a Status record; None where the body is none."""
    try:
        held = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(held, dict) or held.get("kind") != "Status":
        return None
    return visible(str(held.get("message") or held.get("reason") or "no reason given"))[
        :_SAID_CHARS
    ]


def _clipped(body: bytes) -> str:
    return visible(readable(body[:_SAID_CHARS]).strip().partition("\n")[0])
