"""Numbers and flat dictionaries as Python and its loggers print them."""

import re
from collections.abc import Mapping
from typing import NamedTuple

_WRAPPED = re.compile(r"(?:np|numpy|torch|jnp)?\.?\w+\(\s*([^(),]*)(?:,[^()]*)?\)$")
_KEY = re.compile(r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\s*:\s*")
_FLAT = re.compile(
    r"(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|((?:[^,{}()\[\]'\"]|\([^(){}]*\))+))\s*(?=[,}])"
)
_BREAKS = re.compile(r"[{}()\[\]'\"]")
_OPENING = {"{": "}", "(": ")", "[": "]"}


class Flat(NamedTuple):
    """A dictionary that was read whole: its numbers, and where it ended."""

    numbers: dict[str, float]
    texts: dict[str, str]
    end: int


def number(text: str) -> float | None:
    """A printed number: quoted, wrapped (`np.float64(0.3)`, `tensor(…)`), with thousands commas,
    `nan` and `inf` in any spelling. None for anything else.
    """
    try:
        return float(text)
    except ValueError:
        pass
    text = text.strip().strip("'\"").strip()
    if len(text) > 200:
        return None
    wrapped = _WRAPPED.match(text)
    if wrapped:
        text = wrapped[1].strip()
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return {"True": 1.0, "False": 0.0}.get(text)


def flat(text: str, start: int) -> Flat | None:
    """The dictionary whose brace is at `start`; None where its closing brace is not there.

    Values that are no numbers are kept as text, nested ones are passed over. Linear time.
    """
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    at = start + 1
    while True:
        key = _KEY.match(text, at)
        if key is None:
            at = _blank(text, at)
            return Flat(numbers, texts, at + 1) if text[at : at + 1] == "}" else None
        name = key[1] if key[1] is not None else key[2]
        value = _FLAT.match(text, key.end())
        if value is not None:
            said = value[1] if value[1] is not None else value[2] or value[3] or ""
            _keep(name, said, numbers, texts)
            at = value.end()
        else:
            past = _past(text, key.end())
            if past is None:
                return None
            at = _blank(text, past)
        if text[at : at + 1] == "}":
            return Flat(numbers, texts, at + 1)
        if text[at : at + 1] != ",":
            return None
        at += 1


def _keep(name: str, said: str, numbers: dict[str, float], texts: dict[str, str]) -> None:
    value = number(said)
    if value is None:
        texts[name] = said
    else:
        numbers[name] = value


def _blank(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


def _past(text: str, at: int) -> int | None:
    """Where the nested value that begins at `at` is over; None if it is not."""
    awaited: list[str] = []
    for mark in _BREAKS.finditer(text, at):
        sign = mark[0]
        if awaited and awaited[-1] in "'\"":
            if sign == awaited[-1]:
                awaited.pop()
        elif sign in _OPENING:
            awaited.append(_OPENING[sign])
        elif sign in "'\"":
            awaited.append(sign)
        elif not awaited or awaited.pop() != sign:
            return None
        if not awaited and sign not in _OPENING:
            return mark.end()
    return None


def translated(
    table: Mapping[str, tuple[str, ...]], metrics: Mapping[str, float]
) -> dict[str, float]:
    """Canonical values by a dialect's table: the first native name that is there.

    A native name that ends in `*` stands for the one with the greatest number in its place.
    """
    found: dict[str, float] = {}
    for canonical, natives in table.items():
        for native in natives:
            name = _numbered(native, metrics) if "*" in native else native
            if name in metrics:
                found[canonical] = metrics[name]
                break
    return found


def _numbered(pattern: str, metrics: Mapping[str, float]) -> str:
    head, _, tail = pattern.partition("*")
    best, found = -1, ""
    for name in metrics:
        if name.startswith(head) and name.endswith(tail):
            digits = name[len(head) : len(name) - len(tail)]
            if digits.isascii() and digits.isdigit() and best < int(digits[:9]):
                best, found = int(digits[:9]), name
    return found
