"""Which lines are noise on one cluster, in the words of those who work there."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_LINE_CHARS = 2_000  # of a line that are searched


@dataclass(frozen=True, slots=True)
class Benign:
    """Regular expressions, searched in each line. What one of them matches is never a cause."""

    expressions: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, expressions: Iterable[str]) -> "Benign":
        """Of expressions that compile."""
        return cls(tuple(re.compile(one) for one in expressions))

    def line(self, *readings: str) -> bool:
        """Whether a line is noise, read with or without what was put before it."""
        return any(one.search(text[:_LINE_CHARS]) for one in self.expressions for text in readings)


NOTHING = Benign()
"""Where nobody has said that anything is."""
