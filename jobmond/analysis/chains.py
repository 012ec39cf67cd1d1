"""Which job continues another one.

A chain is a row of jobs each of which waits for the one before (`--dependency=afterany:ID`).
The scheduler forgets the dependency the moment it is met, so what was seen earlier is remembered,
and a successor that was never seen waiting is recognised by work directory, script and name.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobmond.model.observation import Facts
from jobmond.model.state import TERMINAL, State

# afterany:12(unfulfilled), afterany:12_*:13+5, several separated by , or ?
_CLAUSE = re.compile(r"(after[a-z]*):([0-9][^,?]*)")
_ID = re.compile(r"\d+")
_CLOCK_SLACK = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that could continue another.

    `seen_before` says that an earlier sweep knew it, `continues` that it continues one already.
    """

    native_id: str
    state: State
    facts: Facts
    seen_before: bool
    continues: bool = False


def waits_for(dependency: str | None) -> frozenset[str]:
    """Native ids (array tasks by their master) named by an `afterany` dependency."""
    return frozenset(
        found
        for kind, ids in _CLAUSE.findall(dependency or "")
        if kind == "afterany"
        for part in ids.split(":")
        if (found := _leading_id(part)) is not None
    )


def dependencies(dependency: str | None) -> frozenset[str]:
    """Native ids (array tasks by their master) named by a dependency of any kind."""
    return frozenset(
        found
        for _, ids in _CLAUSE.findall(dependency or "")
        for part in ids.split(":")
        if (found := _leading_id(part)) is not None
    )


def _leading_id(part: str) -> str | None:
    match = _ID.match(part)
    return match.group() if match else None


class Successors:
    """The jobs that may continue one that ended; each continues at most one.

    A job that was cancelled before it started continues nothing. One that has ended in the
    meantime did continue it.
    """

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self._by_dependency: dict[str, list[Candidate]] = {}
        self._by_work: dict[tuple[str | None, ...], list[Candidate]] = {}
        self._taken: set[str] = set()
        for candidate in candidates:
            if candidate.continues:
                continue
            if candidate.state in TERMINAL and candidate.facts.started_at is None:
                continue
            for native_id in waits_for(candidate.facts.dependency):
                self._by_dependency.setdefault(native_id, []).append(candidate)
            if not candidate.seen_before:
                self._by_work.setdefault(_work(candidate.facts), []).append(candidate)

    def take(self, native_id: str, facts: Facts, ended_at: datetime | None) -> Candidate | None:
        """The job that continues `native_id`, the first submitted where there are several."""
        named = [c for c in self._by_dependency.get(native_id, ()) if self._free(c, native_id)]
        pool = named or [
            c
            for c in self._by_work.get(_work(facts), ())
            if self._free(c, native_id) and _follows(facts, ended_at, c.facts)
        ]
        chosen = min(pool, key=_order, default=None)
        if chosen is not None:
            self._taken.add(chosen.native_id)
        return chosen

    def _free(self, candidate: Candidate, native_id: str) -> bool:
        return candidate.native_id != native_id and candidate.native_id not in self._taken


def _order(candidate: Candidate) -> tuple[float, int, str]:
    at = candidate.facts.submitted_at
    number = _leading_id(candidate.native_id)
    return (at.timestamp() if at else 0.0, int(number or 0), candidate.native_id)


def _work(facts: Facts) -> tuple[str | None, ...]:
    return (facts.workdir, facts.command, facts.name, facts.user)


def _follows(facts: Facts, ended_at: datetime | None, later: Facts) -> bool:
    """Whether a copy that nobody saw waiting began when the other ended.

    Sibling jobs of a grid share directory, script and name too; they are told apart by having run
    beside the one that ended.
    """
    if not (facts.workdir and facts.command and facts.name):
        return False
    if facts.submitted_at and later.submitted_at and later.submitted_at < facts.submitted_at:
        return False
    if later.started_at is None or ended_at is None:
        return later.started_at is None and (later.reason or "").startswith("Dependency")
    return later.started_at >= ended_at - _CLOCK_SLACK
