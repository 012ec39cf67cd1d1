"""jobmond's own journal: one line an event, on standard error."""

import logging
import os
import sys
from typing import Any

import structlog

NEWS = "jobmond.news"  # the journal as a sink: what it does not take is told again later


class Lines:
    """Writes whole lines to a descriptor, past every buffer that would keep what did not fit.

    A journal on a full disk must not end the daemon. Only `strict` ones hear of it, as OSError.
    """

    def __init__(self, descriptor: int, *, strict: bool = False) -> None:
        self._descriptor = descriptor
        self._strict = strict

    def msg(self, message: str) -> None:
        rest = memoryview(f"{message}\n".encode("utf-8", "backslashreplace"))
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            if self._strict:
                raise

    log = debug = info = warning = error = critical = msg


def open_journal() -> None:
    """Send every event of this process, and what libraries say, to standard error."""
    descriptor = sys.stderr.fileno()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer(colors=True)
            if sys.stderr.isatty()
            else structlog.processors.LogfmtRenderer(
                key_order=["timestamp", "level", "event"], drop_missing=True
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *name: _lines(descriptor, name),
    )
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")


def _lines(descriptor: int, name: tuple[Any, ...]) -> Lines:
    return Lines(descriptor, strict=NEWS in name)
