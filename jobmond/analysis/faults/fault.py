"""What one entry of the fault catalogue is."""

import re
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a line says about a failure.

    `verdict`: somebody outside the program names the reason (scheduler, kernel); it wins over
    everything the program printed. `root`: the program names it. `symptom`: the face of a fault
    whose reason may stand elsewhere; a cause only where no root does. `consequence`: said because
    somebody else failed; never a cause. `confirmation`: proves that something failed, not what.
    `benign`: expected, in any number.
    """

    VERDICT = "verdict"
    ROOT = "root"
    SYMPTOM = "symptom"
    CONSEQUENCE = "consequence"
    CONFIRMATION = "confirmation"
    BENIGN = "benign"


class Scope(StrEnum):
    """Where an entry may match: the exception of a traceback, any other line, or both."""

    EXCEPTION = "exception"
    LINE = "line"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which logs speak of a fault.

    `needles` are fixed strings, one of which stands in the text; `pattern` is searched only
    then. `weight` orders symptoms, the lowest first. `any_level` lets it match a line that its
    writer logged as a warning or less. `needs` names entries one of which has to fire as well.
    `yes` and `no` are texts that it has to match and has to leave alone.
    """

    id: str
    cause: str
    role: Role
    needles: tuple[str, ...]
    advice: str
    source: str
    yes: tuple[str, ...]
    no: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    scope: Scope = Scope.ANY
    weight: int = 50
    any_level: bool = False
    needs: tuple[str, ...] = ()

    def matches(self, text: str, *, exception: bool) -> bool:
        """Whether `text` (without prefixes) speaks of it."""
        if self.scope is (Scope.LINE if exception else Scope.EXCEPTION):
            return False
        if not any(needle in text for needle in self.needles):
            return False
        return self.pattern is None or self.pattern.search(text) is not None
