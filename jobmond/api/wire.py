"""JSON in and out: bounded, strict on the way in, plain on the way out."""

import asyncio
import json
import math
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from jobmond.errors import ConfigError

MAX_BODY_BYTES = 1024 * 1024
BODY_TIMEOUT_S = 10.0
# What is too large is read on for a while and dropped: a client that is still sending sees only
# a broken pipe, and never the answer.
_DRAIN_BYTES = 16 * MAX_BODY_BYTES


class TooLarge(ConfigError):
    """The body is larger than `MAX_BODY_BYTES`."""


class TooSlow(ConfigError):
    """The body did not arrive within `BODY_TIMEOUT_S`."""


def answer(content: Any, status: int = 200) -> Response:
    """`content` as JSON; NaN and infinities become the words `nan inf -inf`."""
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(content), allow_nan=False, separators=(",", ":"))
    return Response(text.encode("ascii"), status_code=status, media_type="application/json")


async def body_of(request: Request) -> Any:
    """The request's JSON; an empty body is an empty object.

    Raises:
        ConfigError: no JSON, or one that no honest client writes (NaN, endless nesting).
        TooLarge, TooSlow
    """
    raw = await _raw(request)
    if not raw.strip():
        return {}
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as bad:
        what = "too deeply nested" if isinstance(bad, RecursionError) else _reason(bad)
        raise ConfigError(f"the request is no JSON: {what}") from bad


async def _raw(request: Request) -> bytes:
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for part in request.stream():
                size += len(part)
                if size <= MAX_BODY_BYTES:
                    parts.append(part)
                elif size > _DRAIN_BYTES:
                    break
    except TimeoutError as slow:
        raise TooSlow(f"the request did not arrive within {BODY_TIMEOUT_S:g} s") from slow
    except ClientDisconnect as gone:
        raise ConfigError("the client went away in the middle of its request") from gone
    if size > MAX_BODY_BYTES:
        raise TooLarge(f"the request is larger than {MAX_BODY_BYTES} bytes")
    return b"".join(parts)


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON number")


def _reason(bad: BaseException) -> str:
    return str(bad).splitlines()[0][:200]


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value
