"""News to jobmond's own journal: one line each."""

import asyncio
from collections.abc import Sequence
from typing import Any

import structlog

from jobmond.analysis.mask import mask
from jobmond.analysis.visible import visible
from jobmond.errors import SinkRetry
from jobmond.model.outcome import Delivery
from jobmond.registry import sinks

_LEVELS = {"alarm": "error", "watch": "warning"}
_REMEMBERED = 10_000


@sinks.plugin("journal")
class JournalSink:
    """Says every news once per process; after a crash a line can be repeated."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}

    async def send(self, deliveries: Sequence[Delivery]) -> None:
        """Raises: SinkRetry where the journal cannot be written."""
        await asyncio.to_thread(self._say, deliveries)

    def _say(self, deliveries: Sequence[Delivery]) -> None:
        logger = structlog.get_logger("jobmond.news")
        for delivery in deliveries:
            if delivery.key in self._said:
                continue
            body = delivery.body
            level = _LEVELS.get(str(body.get("severity")), "info")
            try:
                getattr(logger, level)(_safe(body.get("title") or delivery.key), **_fields(body))
            except OSError as error:
                raise SinkRetry(f"the journal cannot be written: {error}") from error
            self._said[delivery.key] = None
        while len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]


def _fields(body: Any) -> dict[str, str]:
    job = body.get("job") or {}
    values = {
        "type": body.get("type"),
        "ref": job.get("ref"),
        "cluster": body.get("cluster"),
        "before": body.get("before"),
        "after": body.get("after"),
        "agent_log": body.get("agent_log"),
        "key": body.get("key"),
    }
    return {name: _safe(value) for name, value in values.items() if value is not None}


def _safe(value: object) -> str:
    return visible(mask(str(value)))
