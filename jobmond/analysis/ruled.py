"""What looks like a cause in a log and is none, and why."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobmond.analysis.diagnoser import Evidence
from jobmond.analysis.faults.fault import Role
from jobmond.analysis.ledger import Event
from jobmond.analysis.loglines import clipped
from jobmond.analysis.mask import mask
from jobmond.model.outcome import Diagnosis

_SHOWN = 12
_CHARS = 200


@dataclass(frozen=True, slots=True)
class RuledOut:
    """Lines of one kind: the text of the first, its line (None where it has no number), how many
    there are at least, and why none of them is the cause. `text` is masked.
    """

    text: str
    line: int | None
    count: int
    why: str


def ruled_out(evidence: Evidence, diagnosis: Diagnosis) -> Sequence[RuledOut]:
    """The most frequent first, of each reason."""
    found = [
        RuledOut(_shown(each.text), each.line, each.count, "expected in a run")
        for each in evidence.expected
    ]
    events = [event for event in evidence.events if not _is(event, diagnosis)]
    follow = [e for e in events if e.fault.role is Role.CONSEQUENCE and not e.caught]
    found += _by_kind(follow, "follows from another failure")
    found += _by_kind([e for e in events if e.caught], "the program went on after it")
    return sorted(found, key=lambda each: (each.why, -each.count, each.text))[:_SHOWN]


def _by_kind(events: Iterable[Event], why: str) -> list[RuledOut]:
    kinds: dict[str, list[Event]] = {}
    for event in events:
        kinds.setdefault(event.fault.id, []).append(event)
    return [RuledOut(_shown(held[0].text), held[0].line, len(held), why) for held in kinds.values()]


def _shown(text: str) -> str:
    """Masked before it is cut: half a secret is not recognised as one."""
    return clipped(mask(text.strip()), _CHARS)


def _is(event: Event, diagnosis: Diagnosis) -> bool:
    return event.line is not None and event.line == diagnosis.line
