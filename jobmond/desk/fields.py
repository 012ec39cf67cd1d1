"""Request bodies and query words checked field by field: type, length, characters, unknown keys."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from jobmond.desk.refusals import nearest, quoted
from jobmond.errors import ConfigError


class Field(Protocol):
    """How one value must look."""

    def read(self, key: str, value: object) -> Any:
        """`value` in the type its user wants.

        Raises:
            ConfigError: it is something else; the message names `key`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """A non-empty string without control characters (`lines` lets newlines and tabs through).

    Characters that cannot be written as UTF-8 (lone surrogates) are refused: neither a database
    nor a remote shell takes them.
    """

    max_chars: int = 256
    pattern: re.Pattern[str] | None = None
    means: str = "text"
    lines: bool = False

    def read(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise ConfigError(f"{key} must be {self.means}, not {_type(value)}")
        if not value.strip():
            raise ConfigError(f"{key} is empty")
        if len(value) > self.max_chars:
            raise ConfigError(f"{key} is longer than {self.max_chars} characters")
        allowed = "\n\t" if self.lines else ""
        if any(unicodedata.category(c) in ("Cc", "Cs") and c not in allowed for c in value):
            raise ConfigError(f"{key} holds a control character: {quoted(value)}")
        if self.pattern is not None and not self.pattern.fullmatch(value):
            raise ConfigError(f"{key} must be {self.means}: {quoted(value)}")
        return value


@dataclass(frozen=True, slots=True)
class Raw:
    """A string that somebody else reads: a whole file."""

    max_chars: int

    def read(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise ConfigError(f"{key} must be text, not {_type(value)}")
        if len(value) > self.max_chars:
            raise ConfigError(f"{key} is longer than {self.max_chars} characters")
        return value


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words; a wrong one is answered with the nearest."""

    words: tuple[str, ...]

    def read(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise ConfigError(f"{key} must be one of {', '.join(self.words)}, not {_type(value)}")
        if value not in self.words:
            hint = nearest(value, self.words) or f"; one of {', '.join(self.words)}"
            raise ConfigError(f"unknown {key} {quoted(value)}{hint}")
        return value


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number between `low` and `high`; from a query also as decimal digits."""

    low: int
    high: int
    digits: bool = False

    def read(self, key: str, value: object) -> int:
        if self.digits and isinstance(value, str):
            value = int(value) if re.fullmatch(r"[0-9]{1,18}", value) else quoted(value)
        if isinstance(value, bool) or not isinstance(value, int):
            got = value if isinstance(value, str) else _type(value)
            raise ConfigError(f"{key} must be a whole number, not {got}")
        if not self.low <= value <= self.high:
            raise ConfigError(f"{key} must be between {self.low} and {self.high}")
        return value


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false; from a query as 1, 0, true, false."""

    digits: bool = False

    def read(self, key: str, value: object) -> bool:
        if isinstance(value, bool):
            return value
        if self.digits and value in ("1", "true"):
            return True
        if self.digits and value in ("0", "false"):
            return False
        raise ConfigError(f"{key} must be true or false, not {_type(value)}")


@dataclass(frozen=True, slots=True)
class Instant:
    """RFC 3339 with an offset, as aware UTC."""

    def read(self, key: str, value: object) -> datetime:
        if not isinstance(value, str) or len(value) > 64:
            raise ConfigError(f"{key} must be a time like 2026-11-29T18:00:00Z")
        try:
            # A query turns the plus of an offset into a space.
            at = datetime.fromisoformat(re.sub(r" (\d\d:\d\d)$", r"+\1", value))
            if at.tzinfo is None:
                raise ConfigError(f"{key} lacks its offset from UTC: {quoted(value)}")
            return at.astimezone(UTC)
        except (ValueError, OverflowError) as bad:
            raise ConfigError(
                f"{key} must be a time like 2026-11-29T18:00:00Z: {quoted(value)}"
            ) from bad


@dataclass(frozen=True, slots=True)
class Many:
    """A list of up to `max_items` values of one form."""

    item: Field
    max_items: int

    def read(self, key: str, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ConfigError(f"{key} must be a list, not {_type(value)}")
        if len(value) > self.max_items:
            raise ConfigError(f"{key} holds more than {self.max_items} entries")
        return tuple(self.item.read(f"{key}[{i}]", entry) for i, entry in enumerate(value))


def read_object(
    body: object, fields: Mapping[str, Field], *, required: Sequence[str] = ()
) -> dict[str, Any]:
    """The given fields of a JSON object; `null` counts as not given.

    Raises:
        ConfigError: no object, an unknown key (the nearest is named), a missing one, a bad value.
    """
    if not isinstance(body, Mapping):
        raise ConfigError(f"the request must be a JSON object, not {_type(body)}")
    for key in body:
        if key not in fields:
            raise ConfigError(f"unknown key {quoted(str(key))}{nearest(str(key), fields)}")
    given = {k: fields[k].read(k, v) for k, v in body.items() if v is not None}
    for key in required:
        if key not in given:
            raise ConfigError(f"{key} is missing")
    return given


def _type(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    numbers = {int: "a number", float: "a number", type(None): "null"}
    return {**names, **numbers}.get(type(value), type(value).__name__)
