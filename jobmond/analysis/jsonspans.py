"""JSON with the places of its parts, for changes that leave the rest of a text as it is."""

import json
import re
from dataclasses import dataclass
from typing import Any

Span = tuple[int, int]

_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object; `span` is that of its value."""

    name: str
    name_at: int
    name_end: int
    span: Span
    value: Any


def whole(text: str) -> tuple[Span, Any]:
    """The one value of a text and where it stands; a byte order mark before it counts for blank.

    Raises:
        ValueError: the text is no JSON.
        RecursionError: it is nested too deeply.
    """
    start = _skip(text, 1 if text.startswith(_BOM) else 0)
    value, end = _DECODER.raw_decode(text, start)
    if _skip(text, end) != len(text):
        raise json.JSONDecodeError("Extra data", text, _skip(text, end))
    return (start, end), value


def elements(text: str, start: int) -> list[tuple[Span, Any]]:
    """The elements of the list that begins at `start` in a text that `whole` took."""
    found: list[tuple[Span, Any]] = []
    at = _skip(text, start + 1)
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        found.append(((at, end), value))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def members(text: str, start: int) -> list[Member]:
    """The members of the object that begins at `start` in a text that `whole` took."""
    found: list[Member] = []
    at = _skip(text, start + 1)
    while text[at] != "}":
        name, name_end = _DECODER.raw_decode(text, at)
        value_at = _skip(text, _skip(text, name_end) + 1)
        value, end = _DECODER.raw_decode(text, value_at)
        found.append(Member(name, at, name_end, (value_at, end), value))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
