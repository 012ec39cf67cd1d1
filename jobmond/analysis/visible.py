"""Text from jobs made safe to show."""

import unicodedata

# Categories that move a cursor, hide or reorder text: controls, format characters (bidi overrides
# among them), surrogates, private use, unassigned, separators that look like a space or a line.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_JOINERS = "\u200d\ufe0f"  # needed inside emoji


def visible(text: str, *, keep: str = "") -> str:
    """`text` with every character that a terminal could act on written as an escape.

    Characters in `keep` (for instance a newline) stay.
    """
    if text.isprintable():
        return text
    return "".join(
        c
        if c == " " or c in keep or c in _JOINERS or unicodedata.category(c) not in _HIDDEN
        else c.encode("unicode_escape", "surrogatepass").decode("ascii")
        for c in text
    )


def readable(raw: bytes) -> str:
    r"""Bytes of unknown encoding as text: UTF-8, anything else as `\xff`."""
    return raw.decode("utf-8", "backslashreplace")
