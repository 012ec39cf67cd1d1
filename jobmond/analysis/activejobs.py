"""`active_jobs.json`: what other programs write there, and the same text with our changes.

A file is a list of entries, or an object that holds that list under `jobs` or `active_jobs`. The
`owner` of such an object is that of its entries which name none. Changes are made in the text
itself, so that unknown keys, order and formatting stay as they were.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobmond.analysis.jsonspans import Member, Span, elements, members, whole
from jobmond.analysis.visible import visible

LISTS = ("jobs", "active_jobs")
_TYPES = ("slurm", "nel", "launcher", "local", "kubernetes", "iris")
_KEY_CHARS, _ID_CHARS, _WORD_CHARS, _PROSE_CHARS, _OWNER_CHARS = 200, 512, 256, 4096, 4096
_OWNER_DEPTH = 8


class MalformedRegistry(ValueError):
    """The whole text is no registry; one line says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as it stands in a file.

    `key` tells it from others of the file by what names its job (type, id, host, submit time),
    as written. `submitted` is naive where the file gives local time, and only ever a hint.
    `error` is why the entry cannot be used, in one line.
    """

    key: str
    type: str | None = None
    id: str = ""
    host: str | None = None
    user: str | None = None
    submitted: datetime | None = None
    description: str | None = None
    last_status: str | None = None
    owner: Mapping[str, Any] | None = None
    error: str | None = None


def parsed(text: str) -> tuple[Entry, ...]:
    """The entries of a file, in order.

    Raises:
        MalformedRegistry: it is no JSON, or JSON of another form.
    """
    owner, spans = _layout(text)
    return tuple(_entry(value, number, owner) for number, (_, value) in enumerate(spans, start=1))


def rewritten(text: str, changes: Mapping[str, str | None]) -> str:
    """`text` with every entry whose key is in `changes` given that `last_status`, or taken out
    where it is None. Everything else stays as it is, byte for byte.

    Raises:
        MalformedRegistry: as `parsed`.
    """
    _, spans = _layout(text)
    edits: list[tuple[Span, str]] = []
    gone = [_changed(value, changes, None) for _, value in spans]
    edits += _cuts([span for span, _ in spans], gone)
    for (span, value), is_gone in zip(spans, gone, strict=True):
        status = changes.get(_key(value)) if isinstance(value, dict) else None
        if not is_gone and status is not None:
            edits += _status_edits(text, span, value, status)
    for (start, end), new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _layout(text: str) -> tuple[Any, list[tuple[Span, Any]]]:
    """The owner of the whole file, and each entry with where it stands."""
    try:
        span, value = whole(text)
        if isinstance(value, list):
            return None, elements(text, span[0])
        if isinstance(value, dict):
            held = [m for m in members(text, span[0]) if m.name in LISTS]
            if held and isinstance(held[-1].value, list):
                return value.get("owner"), elements(text, held[-1].span[0])
    except RecursionError as error:
        raise MalformedRegistry("nested too deeply") from error
    except ValueError as error:
        raise MalformedRegistry(_said(error)) from error
    raise MalformedRegistry("neither a list of jobs nor an object with a list under `jobs`")


def _said(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: line {error.lineno}, column {error.colno}: {visible(error.msg)}"
    return "not JSON: a number that is too long"


def _entry(value: Any, number: int, owner: Any) -> Entry:
    if not isinstance(value, dict):
        return Entry(f"#{number}", error=f"entry {number} is no object")
    key = _key(value)
    try:
        native_id = _id(value.get("id"))
        return Entry(
            key,
            type=_type(value.get("type")),
            id=native_id,
            host=_word(value, "host"),
            user=_word(value, "user"),
            submitted=_instant(value.get("submitted")),
            description=_prose(value.get("description"), _PROSE_CHARS),
            last_status=_prose(value.get("last_status"), _WORD_CHARS),
            owner=_owner(value.get("owner", owner)),
        )
    except _Unusable as unusable:
        shown = visible(str(value.get("id", "")))[:80]
        return Entry(key, error=f"entry {number}{f' (id {shown})' if shown else ''}: {unusable}")


class _Unusable(ValueError):
    """What one entry lacks."""


def _key(value: Mapping[str, Any]) -> str:
    """Whatever the values are: an entry that cannot be used must not pass for another."""
    parts = [value.get(name) for name in ("type", "id", "host", "submitted")]
    words = [str(part).strip() if isinstance(part, str | int | float) else "" for part in parts]
    key = json.dumps(words)
    return key if len(key) <= _KEY_CHARS else hashlib.sha256(key.encode()).hexdigest()


def _id(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise _Unusable("it has no id")
    word = value.strip()
    if len(word) > _ID_CHARS or not word.isprintable():
        raise _Unusable("its id is no id")
    return word


def _type(value: Any) -> str | None:
    if value is None:
        return None
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in _TYPES:
        raise _Unusable(f"its type is none of {', '.join(_TYPES)}")
    return word


def _word(value: Mapping[str, Any], name: str) -> str | None:
    word = value.get(name)
    if word is None or word == "":
        return None
    if not isinstance(word, str) or len(word) > _WORD_CHARS or not word.isprintable():
        raise _Unusable(f"its {name} is no {name}")
    return word.strip() or None


def _instant(value: Any) -> datetime | None:
    """A hint: what cannot be read gives none."""
    if not isinstance(value, str) or len(value) > 64:
        return None
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        return None


def _prose(value: Any, longest: int) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return None
    return visible(value.strip(), keep="\n\t")[:longest]


def _owner(value: Any) -> Mapping[str, Any] | None:
    if not isinstance(value, dict) or len(json.dumps(value)) > _OWNER_CHARS:
        return None
    plain = _plain(value, _OWNER_DEPTH)
    return plain if isinstance(plain, dict) else None


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return visible(value)
    if depth and isinstance(value, dict):
        return {visible(name): _plain(part, depth - 1) for name, part in value.items()}
    if depth and isinstance(value, list):
        return [_plain(part, depth - 1) for part in value]
    return None if isinstance(value, dict | list) else value


def _changed(value: Any, changes: Mapping[str, str | None], wanted: str | None) -> bool:
    if not isinstance(value, dict):
        return False
    key = _key(value)
    return key in changes and changes[key] is wanted


def _cuts(spans: list[Span], gone: list[bool]) -> list[tuple[Span, str]]:
    """What to cut so that the others remain a list: each with the comma that joins it."""
    cuts: list[tuple[Span, str]] = []
    kept = [i for i, is_gone in enumerate(gone) if not is_gone]
    for i, is_gone in enumerate(gone):
        if not is_gone:
            continue
        if kept and i > kept[-1]:  # after the last that stays: with the comma before
            cuts.append(((spans[i - 1][1], spans[i][1]), ""))
        elif kept:
            cuts.append(((spans[i][0], spans[i + 1][0]), ""))
    if not kept and spans and any(gone):
        cuts.append(((spans[0][0], spans[-1][1]), ""))
    return cuts


def _status_edits(
    text: str, span: Span, value: Mapping[str, Any], status: str
) -> list[tuple[Span, str]]:
    if value.get("last_status") == status:
        return []
    new = json.dumps(status, ensure_ascii=False)
    held = members(text, span[0])
    for member in reversed(held):
        if member.name == "last_status":
            return [(member.span, new)]
    return [_added(text, span, held, new)]


def _added(text: str, span: Span, held: list[Member], new: str) -> tuple[Span, str]:
    """A member after the last, set off as the last one is."""
    if not held:
        return (span[0] + 1, span[0] + 1), f'"last_status": {new}'
    last = held[-1]
    before = last.name_at - 1
    while text[before] in " \t\r\n":
        before -= 1
    gap = text[before + 1 : last.name_at]
    if len(held) == 1 and "\n" not in gap:
        gap = " "
    colon = text[last.name_end : last.span[0]]
    return (last.span[1], last.span[1]), f',{gap}"last_status"{colon}{new}'
