"""The refusals a person can tell apart, and the words that help them on."""

import difflib
from collections.abc import Iterable

from jobmond.analysis.visible import visible
from jobmond.errors import Refused

_SHOWN = 5
_QUOTED_CHARS = 120


class UnknownJob(Refused):
    """No job, or more than one, answers to the word."""


class AmbiguousJob(UnknownJob):
    """More than one job answers to the word."""


class NotYours(Refused):
    """The peer may not do this: another user's socket, another user's job."""


def quoted(word: str) -> str:
    """A person's word as one short, safe piece of a message."""
    short = word if len(word) <= _QUOTED_CHARS else word[:_QUOTED_CHARS] + "…"
    return "'" + visible(short) + "'"


def nearest(word: str, known: Iterable[str]) -> str:
    """`; nearest: 'x'` where something known is near `word`, else nothing."""
    close = difflib.get_close_matches(word[:_QUOTED_CHARS], list(known), n=1, cutoff=0.6)
    return f"; nearest: {quoted(close[0])}" if close else ""


def listed(words: Iterable[str]) -> str:
    """The first few words, and how many more there are."""
    every = [visible(word) for word in words]
    rest = len(every) - _SHOWN
    return ", ".join(every[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
