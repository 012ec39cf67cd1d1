"""What a log has said about failures so far, in bounded memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from jobmond.analysis.faults.fault import Fault, Role

_FIRST = 24  # events of one entry of the catalogue that are kept from the beginning …
_LAST = 24  # … and from the end
_KINDS = 24  # of expected lines that are told apart
_NAMES = 4_096  # processes that are told apart


@dataclass(frozen=True, slots=True)
class Event:
    """One line or block that the catalogue knows.

    `place` orders events; `offset` is where the line of `first_line` begins. `marks` counts the
    steps that had advanced before it, `section` the files joined in this log. `thread` says that
    it ended only a thread, `caught` that its writer went on.
    """

    fault: Fault
    text: str
    line: int | None
    first_line: int | None
    offset: int
    place: int
    end: int
    excerpt: tuple[str, ...]
    source: str = ""
    frame: str | None = None
    marks: int = 0
    section: int = 0
    exception: bool = False
    thread: bool = False
    caught: bool = False
    engine: bool = False
    logged: bool = False  # a record of a log, not raw output
    key: str | None = None  # the metric that is not a number


@dataclass(slots=True)
class Expected:
    """Lines of one kind that look bad and are no failure: the first of them, and how many."""

    text: str
    line: int | None
    count: int = 0


@dataclass(slots=True)
class _Kept:
    first: list[Event] = field(default_factory=list)
    last: list[Event] = field(default_factory=list)
    count: int = 0

    def add(self, event: Event) -> None:
        self.count += 1
        if len(self.first) < _FIRST:
            self.first.append(event)
            return
        self.last.append(event)
        if len(self.last) > _LAST:
            self.last.pop(0)


class Ledger:
    """Events by entry, and the processes that were stopped because of a peer."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, bool], _Kept] = {}
        self.benign = 0
        self.expected: dict[str, Expected] = {}
        self.stopped: set[str] = set()
        self.listed: set[str] = set()
        self.roots: dict[str, None] = {}  # processes that failed first, one a node
        self.killed: set[str] = set()

    def add(self, event: Event) -> None:
        """Notes one event. What is benign is only counted."""
        if event.fault.role is Role.BENIGN:
            self.rule_out(event.fault.id, event.text, event.line)
            return
        self._kept.setdefault((event.fault.id, event.caught), _Kept()).add(event)

    def rule_out(self, kind: str, text: str, line: int | None) -> None:
        """Counts a line that is expected."""
        self.benign += 1
        if kind in self.expected or len(self.expected) < _KINDS:
            self.expected.setdefault(kind, Expected(text, line)).count += 1

    def events(self) -> list[Event]:
        """Those that were kept, in the order of the log."""
        return sorted(self._walk(), key=lambda event: (event.place, event.fault.id))

    def forget(self, fault_id: str) -> None:
        """Drops what was kept of one entry."""
        self._kept.pop((fault_id, False), None)

    def note(self, names: set[str], name: str) -> None:
        """Adds a process to a set, as long as there is room."""
        if len(names) < _NAMES:
            names.add(name)

    def _walk(self) -> Iterator[Event]:
        for kept in self._kept.values():
            yield from kept.first
            yield from kept.last
