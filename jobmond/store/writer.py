"""The one thread in which the store is used."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Writer:
    """Runs what is asked for one after the other."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    async def call(self, fn: Callable[P, R], /, *args: P.args, **kw: P.kwargs) -> R:
        """Run `fn` in the writer's thread, after everything asked for before it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(fn, *args, **kw))

    def close(self) -> None:
        """Wait for what is in hand."""
        self._thread.shutdown(wait=True)
