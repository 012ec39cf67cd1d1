"""News as they leave this host: plain JSON in ASCII, secrets masked, cut to a size."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from jobmond.analysis.mask import mask

CUT = "… (cut)"
# What is looked up by others: masking could only break it.
_VERBATIM = frozenset({"key", "ref", "at", "agent_log", "successor", "cluster"})


def outgoing(body: Mapping[str, Any], *, key: str) -> dict[str, Any]:
    """The news object with its key, numbers that JSON lacks as their words."""
    plain: dict[str, Any] = _plain({"key": key} | dict(body))
    return plain


def encoded(news: Mapping[str, Any]) -> bytes:
    """One line without its end.

    Raises:
        TypeError, ValueError: a value is none of JSON.
    """
    text = json.dumps(news, allow_nan=False, separators=(", ", ": "))
    return text.replace("\x7f", "\\u007f").encode("ascii")


def fitted(news: Mapping[str, Any], max_bytes: int) -> bytes:
    """`encoded`, in at most `max_bytes` where that can be: `body` is cut, and where that is not
    enough the excerpt of the diagnosis loses its last lines. Nothing else ever is.

    Raises:
        TypeError, ValueError: a value is none of JSON.
    """
    whole = encoded(news)
    if len(whole) <= max_bytes:
        return whole
    shortened = _cut_excerpt(_cut_body(news, max_bytes), max_bytes)
    return min(whole, encoded(shortened), key=len)  # the mark of a cut takes place too


def _cut_body(news: Mapping[str, Any], max_bytes: int) -> Mapping[str, Any]:
    body = news.get("body")
    if not isinstance(body, str) or len(body) <= len(CUT):
        return news
    return _longest(len(body), max_bytes, lambda n: {**news, "body": body[:n] + CUT})


def _cut_excerpt(news: Mapping[str, Any], max_bytes: int) -> Mapping[str, Any]:
    diagnosis = news.get("diagnosis")
    excerpt = diagnosis.get("excerpt") if isinstance(diagnosis, Mapping) else None
    if not excerpt or len(encoded(news)) <= max_bytes:
        return news

    def kept(n: int) -> Mapping[str, Any]:
        return {**news, "diagnosis": {**news["diagnosis"], "excerpt": [*excerpt[:n], CUT]}}

    return _longest(len(excerpt), max_bytes, kept)


def _longest(
    length: int, max_bytes: int, kept: Callable[[int], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """What `kept` gives for the greatest number below `length` that fits, else for 0."""
    low, high = 0, length - 1
    while low < high:
        middle = (low + high + 1) // 2
        if len(encoded(kept(middle))) <= max_bytes:
            low = middle
        else:
            high = middle - 1
    return kept(low)


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, name) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, str) and name not in _VERBATIM:
        return mask(value)
    return value
