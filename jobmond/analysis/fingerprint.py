"""A failure's signature: the same for the same fault on another day, node, rank and path."""

import hashlib
import re

_BLURS = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d[\d.,]*(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"(?:[a-z][a-z0-9+]{1,15}://)[^\s'\")]{1,400}"), "<url>"),
    (re.compile(r"(?<![\w.])~?/[^\s'\",:;()\[\]]{1,400}"), "<path>"),
    (re.compile(r"\b[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,}){0,5}\b"), "<hex>"),
    (
        re.compile(
            r"\b(?:rank|RANK|Rank|local_rank|worker|pid|PID|node|host|GPU|gpu)[ _:=-]?\d+\b"
        ),
        "<who>",
    ),
    (
        re.compile(
            r"\b(?=[a-z0-9-]{0,40}\d)[a-z]{1,12}-?\d{1,6}(?:-\d{1,6}){0,4}(?:\.[\w.-]{1,60})?\b"
        ),
        "<who>",
    ),
    (re.compile(r"\d[\d,.]* ?(?:[KMGTP]i?B|[kKMG]?bytes|ms|s|seconds|milliseconds)\b"), "<size>"),
    (re.compile(r"[-+]?\d[\d,.]*(?:[eE][-+]?\d+)?"), "<n>"),
    (re.compile(r"\s+"), " "),
)
_CHARS = 300  # of a message that count
_TYPE = re.compile(r"(?:[\w.]+\.)?(\w{1,80})(?:\(\w{1,80}\))?(?=:|$)")


def fingerprint(fault_id: str, text: str, frame: str | None) -> str:
    """`<fault>:<exception or ->:<frame or ->:<8 hex of what is said>`.

    `frame` is `file:function` of the project's innermost frame.
    """
    blurred = blur(text)
    kind = _TYPE.match(text.strip())
    digest = hashlib.sha256(blurred.encode("utf-8", "replace")).hexdigest()[:8]
    name = (
        kind[1] if kind and kind[1].endswith(("Error", "Exception", "Exit", "Interrupt")) else "-"
    )
    return ":".join((fault_id, name, (frame or "-").replace(":", "/")[:120], digest))


def blur(text: str) -> str:
    """`text` without what differs between two runs."""
    text = text[: 4 * _CHARS].strip()
    for shape, word in _BLURS:
        text = shape.sub(word, text)
    return text[:_CHARS].strip()
