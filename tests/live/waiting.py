"""The only place of the live tests that sleeps: polling with a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

EVERY_S = 0.05

T = TypeVar("T")


def wait_for(
    predicate: Callable[[], T], timeout_s: float, *, what: str = "", every_s: float = EVERY_S
) -> T:
    """Ask `predicate` until its answer is true and give that answer.

    Raises TimeoutError, naming `what` and the last answer, once `timeout_s` seconds are over.
    """
    deadline = time.monotonic() + timeout_s
    while not (answer := predicate()):
        if time.monotonic() >= deadline:
            raise _too_late(predicate, answer, timeout_s, what)
        time.sleep(every_s)
    return answer


async def until(
    predicate: Callable[[], T], timeout_s: float, *, what: str = "", every_s: float = EVERY_S
) -> T:
    """`wait_for` for a test whose event loop must go on turning.

    `predicate` itself runs in a thread, since asking the lab blocks.
    """
    deadline = time.monotonic() + timeout_s
    while not (answer := await asyncio.to_thread(predicate)):
        if time.monotonic() >= deadline:
            raise _too_late(predicate, answer, timeout_s, what)
        await asyncio.sleep(every_s)
    return answer


def _too_late(
    predicate: Callable[[], object], answer: object, timeout_s: float, what: str
) -> TimeoutError:
    name = what or getattr(predicate, "__qualname__", repr(predicate))
    return TimeoutError(f"waited {timeout_s:g} s for {name}; the last answer was {answer!r}")
