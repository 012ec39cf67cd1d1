r"""Bytes of a log as lines of text that are fit to be matched and shown."""

import re
from dataclasses import dataclass

from jobmond.analysis.mask import mask
from jobmond.analysis.visible import readable, visible

_ANSI = re.compile(
    r"\x1b\[[0-?]*+[ -/]*+[@-~]"  # colours and cursor movements
    r"|\x1b\][^\x07\x1b]*+(?:\x07|\x1b\\)?"  # window titles and links
    r"|\x1b[()*+][0-9A-Za-z]|\x1b[0-9=>@-Z\\^_a-z]"
)
_BAR = re.compile(rb"%\||it/s|s/it")
_SPEAKS = re.compile(rb"Traceback|Error|Exception|Killed|error:")


@dataclass(frozen=True, slots=True)
class Line:
    """One line. `number` counts LF from 1, `offset` is the byte at which that line begins.

    A carriage return ends no line: what a progress bar painted over is dropped, what it was
    painted over of other text is a `Line` of its own with the same number.
    `text` has no escape sequences, no control characters and no secrets.
    """

    number: int
    offset: int
    text: str


def lines(window: bytes, *, torn: bool = False) -> tuple[Line, ...]:
    """The lines of `window`, blank ones included. Any bytes are accepted; time is linear.

    With `torn` the window begins inside a line: what is left of that line is shortened to begin
    at a blank, because half a secret is not recognised as one.
    """
    found: list[tuple[int, int, str]] = []
    offset = 0
    for number, raw in enumerate(window.split(b"\n"), 1):
        kept = _after_blank(raw) if torn and number == 1 else raw
        found.extend((number, offset, clean(part)) for part in _unpainted(kept))
        offset += len(raw) + 1
    if window.endswith(b"\n") or not window:
        found.pop()
    if not found:
        return ()
    texts = mask("\n".join(text for _, _, text in found)).split("\n")
    return tuple(Line(number, at, text) for (number, at, _), text in zip(found, texts, strict=True))


def clean(raw: bytes) -> str:
    r"""One line without escape sequences; other control characters become visible (`\x07`).

    NUL bytes are dropped: network file systems leave runs of them where a block was lost.
    """
    return visible(_ANSI.sub("", readable(raw.replace(b"\0", b""))), keep="\t").rstrip()


def clipped(text: str, limit: int) -> str:
    """`text` with at most `limit` characters of it, and a word on how many are missing."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"


def _unpainted(raw: bytes) -> list[bytes]:
    parts = [part for part in raw.split(b"\r") if part.strip()]
    if len(parts) < 2:
        return parts or [b""]
    return [part for part in parts[:-1] if not _BAR.search(part) or _SPEAKS.search(part)] + [
        parts[-1]
    ]


def _after_blank(raw: bytes) -> bytes:
    blank = min((at for at in map(raw.find, (b" ", b"\t", b"\r")) if at >= 0), default=len(raw))
    return raw[blank:]
