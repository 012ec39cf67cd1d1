"""Column types that mean the same on SQLite and PostgreSQL."""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, Text
from sqlalchemy.types import TypeDecorator

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

Json = JSON(none_as_null=True)
# Plain JSON, not JSONB, on PostgreSQL as well: nothing is searched inside it, and JSONB refuses
# the NUL and the lone surrogates that a hostile job name can hold.


class Instant(TypeDecorator[datetime]):
    """An aware instant, given back in UTC; a naive one is refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"an instant without time zone: {value}")
        value = value.astimezone(UTC)
        # SQLite keeps text that sorts by time; its type would silently drop any other offset.
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        known: datetime = value
        return known.replace(tzinfo=UTC) if known.tzinfo is None else known.astimezone(UTC)


class Words(TypeDecorator[str]):
    """Text; what no database takes (NUL, lone surrogates) becomes U+FFFD.

    One unstorable character in one job's name must not cost a cluster its whole commit.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else _UNSTORABLE.sub("\ufffd", str(value))


def json_text(value: Any) -> str:
    """JSON of `value` in ASCII; NaN and infinities become the strings `nan inf -inf`."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _finite(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(held) for held in value]
    return value
