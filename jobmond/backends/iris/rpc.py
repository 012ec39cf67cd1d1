"""Calls of the controller: Connect RPC, JSON over plain HTTP POST.

Source: lib/iris of marin-community/marin (controller.proto, logging.proto), and
https://connectrpc.com/docs/protocol for what a status and an error body mean.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from jobmond.analysis.mask import mask
from jobmond.analysis.visible import visible
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.ports import Clock, HttpAnswer, HttpApi, Offload

CONTROLLER = "iris.cluster.ControllerService"
LOGS = "proxy/system.log-server/finelog.logging.LogService"
_HEADERS = {"content-type": "application/json", "accept": "application/json"}
_SAID_CHARS = 300
_LARGE_BYTES = 128 * 1024  # more than that is decoded where the event loop does not wait for it
_LOGIN = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
    }
)
# The controller's own word about this one question; asking another one can go well.
_ABOUT_THIS = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.CONFLICT,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.NOT_IMPLEMENTED,
    }
)

Object = Mapping[str, Any]


class Declined(TransientTransportError):
    """The controller itself answered, and not with what was asked for. `code` is its word."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class TooLong(TransientTransportError):
    """The answer is longer than may be read; a smaller question can have a shorter one."""


@dataclass(slots=True)
class Time:
    """What is left of the time for a sweep."""

    clock: Clock
    until: float

    @classmethod
    def of(cls, clock: Clock, timeout_s: float) -> "Time":
        return cls(clock, clock.monotonic() + timeout_s)

    @property
    def left_s(self) -> float:
        return self.until - self.clock.monotonic()


@dataclass(slots=True)
class Controller:
    """One controller, asked one thing after the other.

    `each_s` bounds one call. `calls` counts them by method. `remedy` is what a person can do when
    the controller refuses who asks.
    """

    http: HttpApi
    url: str
    offload: Offload
    max_bytes: int
    each_s: float = 20.0
    remedy: str | None = None
    calls: Counter[str] = field(default_factory=Counter)

    async def call(self, method: str, question: Object, time: Time) -> Object:
        """The controller's answer to `method`."""
        return await self._ask(CONTROLLER, method, question, time)

    async def logs(self, question: Object, time: Time) -> Object:
        """The log service's answer."""
        return await self._ask(LOGS, "FetchLogs", question, time)

    async def _ask(self, service: str, method: str, question: Object, time: Time) -> Object:
        """Raises:
        Declined: it answered with an error about this question.
        TooLong: the answer has more than `max_bytes`.
        TransientTransportError: no whole answer, or none of the controller's.
        NeedsPersonError: it refuses who asks.
        """
        if time.left_s <= 0:
            raise TransientTransportError("the time for this sweep is over")
        self.calls[method] += 1
        answer = await self.http.request(
            "POST",
            f"{self.url}/{service}/{method}",
            headers=_HEADERS,
            body=json.dumps(question).encode(),
            timeout_s=min(self.each_s, time.left_s),
            max_bytes=self.max_bytes + 1,
        )
        if len(answer.body) > self.max_bytes:
            raise TooLong(f"{method}: the answer has more than {self.max_bytes} bytes")
        if len(answer.body) > _LARGE_BYTES:
            return await self.offload(lambda: said(method, answer, remedy=self.remedy))
        return said(method, answer, remedy=self.remedy)


def said(method: str, answer: HttpAnswer, *, remedy: str | None = None) -> Object:
    """The object that `answer` holds; see `Controller` for what it raises."""
    status = answer.status
    if status == HTTPStatus.OK:
        found = _object(answer)
        if found is None:
            raise TransientTransportError(
                f"{method}: the answer is no whole JSON object{_kind(answer)}: is url the"
                " controller's?"
            )
        return found
    words = f"{method}: answered {status}{_phrase(status)}"
    error = _object(answer) or {}
    code, message = error.get("code"), error.get("message")
    if isinstance(message, str) and message:
        words += f": {visible(mask(' '.join(message[:2000].split())))[:_SAID_CHARS]}"
    if status in _LOGIN:
        raise NeedsPersonError(words, remedy=remedy)
    if status in _ABOUT_THIS and isinstance(code, str):
        raise Declined(words, code)
    if 300 <= status < 400:
        words += "; redirects are not followed: is there a login page before the controller?"
    elif not error:
        words += f"{_kind(answer)}: not the controller's own words"
    raise TransientTransportError(words)


def _object(answer: HttpAnswer) -> Object | None:
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _kind(answer: HttpAnswer) -> str:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip()
    return f" but {visible(kind)[:60]}" if kind and kind != "application/json" else ""


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""
