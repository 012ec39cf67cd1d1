"""Frozen values of the vocabulary to plain JSON and back, led by their type annotations.

A field added to the vocabulary with a default needs no change here and no migration: rows written
before give the default, and names that are no field any more are passed over.
"""

import dataclasses
import types
from collections.abc import Callable, Hashable, Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Coder:
    """How values of one type are written to JSON and read back."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def dump(value: Any) -> dict[str, Any]:
    """JSON object of a dataclass value; None is left out where it is the default."""
    encoded: dict[str, Any] = coder(type(value)).encode(value)
    return encoded


def load(shape: type[T], raw: Mapping[str, Any]) -> T:
    """The value of dataclass `shape` that `dump` wrote as `raw`.

    Raises:
        ValueError, TypeError: `raw` was not written by `dump`.
    """
    value: T = coder(shape).decode(raw)
    return value


def same(value: Any) -> Any:
    return value


def coder(shape: Any) -> Coder:
    """The coder for a type annotation.

    Raises:
        TypeError: an annotation the vocabulary did not use so far.
    """
    return _coder(shape)


@cache
def _coder(shape: Hashable) -> Coder:
    if shape is Any or shape in (str, int, bool):
        return Coder(same, same)
    if shape is float:
        return Coder(same, float)  # the columns keep NaN and infinities as words
    if shape is datetime:
        return Coder(_instant_text, datetime.fromisoformat)
    if isinstance(shape, type) and issubclass(shape, Enum):
        return Coder(lambda value: value.value, shape)
    if dataclasses.is_dataclass(shape):
        return _record(shape)
    return _container(shape)


def _container(shape: Any) -> Coder:
    origin, arguments = get_origin(shape), get_args(shape)
    if origin in (Union, types.UnionType) and len(arguments) == 2 and arguments[1] is type(None):
        return _optional(coder(arguments[0]))
    if origin is tuple and arguments[1:] == (Ellipsis,):
        part = coder(arguments[0])
        return Coder(
            lambda held: [part.encode(one) for one in held],
            lambda raw: tuple(part.decode(one) for one in raw),
        )
    if origin is frozenset:
        part = coder(arguments[0])
        return Coder(
            lambda held: sorted(part.encode(one) for one in held),
            lambda raw: frozenset(part.decode(one) for one in raw),
        )
    if origin is Mapping:
        return _mapping(coder(arguments[0]), coder(arguments[1]))
    raise TypeError(f"no JSON form for {shape}")


def _optional(part: Coder) -> Coder:
    return Coder(
        lambda value: None if value is None else part.encode(value),
        lambda raw: None if raw is None else part.decode(raw),
    )


def _mapping(key: Coder, held: Coder) -> Coder:
    return Coder(
        lambda value: {key.encode(name): held.encode(one) for name, one in value.items()},
        lambda raw: {key.decode(name): held.decode(one) for name, one in raw.items()},
    )


def _record(shape: Any) -> Coder:
    hints = get_type_hints(shape)
    fields = [(one.name, coder(hints[one.name]), one.default) for one in dataclasses.fields(shape)]

    def encode(value: Any) -> dict[str, Any]:
        raw = {}
        for name, part, default in fields:
            held = getattr(value, name)
            if held is not None or default is not None:
                raw[name] = part.encode(held)
        return raw

    def decode(raw: Mapping[str, Any]) -> Any:
        return shape(**{name: part.decode(raw[name]) for name, part, _ in fields if name in raw})

    return Coder(encode, decode)


def _instant_text(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError(f"an instant without time zone: {value}")
    return value.astimezone(UTC).isoformat()
