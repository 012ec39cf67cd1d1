"""Jobs that know little themselves and have jobs in SLURM that are them: nel, the launcher.

A source's own word and what SLURM says of the links are joined into one sighting. SLURM's word is
the truth; without it nothing moves, except where the source's own word proves something.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from jobmond.analysis.chains import dependencies
from jobmond.model.job import Job
from jobmond.model.observation import (
    Ask,
    Facts,
    Gone,
    Link,
    Part,
    Seen,
    Sighting,
    TaskCounts,
    Unreachable,
)
from jobmond.model.state import TERMINAL, WORST_FIRST, Kind, State

LINKED = frozenset({Kind.NEL, Kind.LAUNCHER})
# A chain goes on after these, and only after these.
RESUMED = frozenset({State.TIMEOUT, State.PREEMPTED, State.NODE_FAIL})
_OPEN = frozenset({State.LOST, State.UNKNOWN})
_NEVER = "DependencyNeverSatisfied"
_FAILED_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Others:
    """Jobs of the cluster's users that nobody asked about, by what they may go on from: the ids
    that their dependency names, and the folder of their script."""

    by_dependency: Mapping[str, Sequence[str]] = field(default_factory=dict)
    by_folder: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Iterable[tuple[str, Seen]]) -> "Others":
        """Native ids with what SLURM said of them."""
        by_dependency: dict[str, list[str]] = {}
        by_folder: dict[str, list[str]] = {}
        for native_id, seen in found:
            for named in dependencies(seen.facts.dependency):
                by_dependency.setdefault(named, []).append(native_id)
            folder = (seen.facts.command or "").rpartition("/")[0]
            if folder:
                by_folder.setdefault(folder, []).append(native_id)
        return cls(by_dependency, by_folder)

    def after(self, part: Part) -> list[str]:
        """Those that may go on from a part, the first submitted first."""
        found = {one for link in part.links for one in self.by_dependency.get(link.native_id, ())}
        return sorted(found.union(self.by_folder.get(part.folder or "", ())), key=_number)


NOBODY = Others()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one part came to. `state` None: not known, and `why` says so.

    `link` is the one that decided. `successor` is the SLURM id that goes on, `left` one that
    waits for ever.
    """

    part: Part
    state: State | None
    why: str = ""
    link: Link | None = None
    successor: str | None = None
    left: str | None = None


def merged(known: Sequence[Part], told: Sequence[Part], now: datetime) -> tuple[Part, ...]:
    """The parts as their source tells them now, with what SLURM has said of their links.

    A source that tells of none leaves those that are known. A link that it no longer names stays.
    """
    before = {part.name: part for part in known}
    fresh = [_part(before.get(part.name), part, now) for part in told]
    names = {part.name for part in fresh}
    return (*fresh, *(part for part in known if part.name not in names))


def _part(known: Part | None, told: Part, now: datetime) -> Part:
    old = {link.native_id: link for link in known.links} if known else {}
    links = [
        replace(old.get(link.native_id, replace(link, added_at=now)), waits=link.waits)
        for link in told.links
    ]
    named = {link.native_id for link in links}
    ran = [link for link in old.values() if link.native_id not in named and not link.waits]
    waiting = [link for link in old.values() if link.native_id not in named and link.waits]
    return replace(told, links=(*ran, *links, *waiting), folder=told.folder or _folder(known))


def _folder(part: Part | None) -> str | None:
    return part.folder if part else None


def link_asks(parts: Iterable[Part], now: datetime) -> Iterator[Ask]:
    """What SLURM has to be asked: of a chain its last job, and what waits for it."""
    for part in parts:
        ran = [link for link in part.links if not link.waits]
        waiting = [link for link in part.links if link.waits]
        for link in (*(ran[-1:] if part.chained else ran), *waiting):
            if link.state not in TERMINAL - _OPEN:
                yield Ask(
                    native_id=link.native_id,
                    birth=link.birth,
                    added_at=link.added_at or now,
                    submitted_at=link.facts.submitted_at,
                    state=link.state,
                    facts=link.facts,
                )


def linked(parts: Iterable[Part]) -> frozenset[str]:
    """The SLURM ids that belong to these parts."""
    return frozenset(link.native_id for part in parts for link in part.links)


def joined(
    own: Sighting,
    known: Sequence[Part],
    answers: Mapping[str, Sighting],
    *,
    before: Seen | None = None,
    others: Others = NOBODY,
    now: datetime,
) -> Sighting:
    """What `own`, the source's word, and `answers`, SLURM's about the links, say together.

    `known` are the parts as the last sweep left them, `before` what stands where the source is
    silent (None: never seen). Among `others` may be what goes on from a link; what SLURM said of
    them is in `answers` too.
    """
    told = own.parts if isinstance(own, Seen) else ()
    parts = tuple(_grown(part, others, now) for part in merged(known, told, now))
    if not any(part.links for part in parts) and not told:
        return own
    parts = tuple(replace(p, links=tuple(_answered(k, answers) for k in p.links)) for p in parts)
    verdicts = [_verdict(part, answers) for part in parts]
    undecided = [verdict for verdict in verdicts if verdict.state is None]
    base = own if isinstance(own, Seen) else before
    if undecided or base is None:
        return Unreachable(_why(own, undecided))
    seen = _whole(replace(base, parts=parts, successor=_successor(verdicts)), verdicts)
    if seen.state in _OPEN:
        return Gone(seen.native or "record-gone", complete=seen.state is State.LOST)
    return seen


def _grown(part: Part, others: Others, now: datetime) -> Part:
    """With what is queued to go on from its links: it names one, or runs their script again."""
    if not part.chained or not part.links:
        return part
    ids = {link.native_id for link in part.links}
    last = max((_number(native_id) for native_id in ids), default=0)
    fresh = [
        Link(native_id, waits=True, added_at=now)
        for native_id in others.after(part)
        if native_id not in ids and _number(native_id) > last
    ]
    return replace(part, links=(*part.links, *fresh)) if fresh else part


def _number(native_id: str) -> int:
    return int(native_id) if native_id.isdecimal() else 0


def _answered(link: Link, answers: Mapping[str, Sighting]) -> Link:
    said = answers.get(link.native_id)
    if isinstance(said, Seen) and _same_life(link, said):
        return replace(
            link, birth=said.birth, state=said.state, native=said.native, facts=said.facts
        )
    if isinstance(said, Gone):
        state = State.LOST if said.complete else State.UNKNOWN
        return replace(link, state=state, native=said.reason)
    return link


def _same_life(link: Link, said: Seen) -> bool:
    """A requeue goes on under the same id; anything else under it is another job."""
    births = {said.birth, *(life.birth for life in said.previous)}
    return link.birth is None or link.birth in births


def _verdict(part: Part, answers: Mapping[str, Sighting]) -> Verdict:
    ran = [link for link in part.links if not link.waits]
    if not ran:
        why = f"{part.name} is called {part.native}, which proves nothing"
        return Verdict(part, part.state, why)
    last = ran[-1]
    proved = part.state in (State.COMPLETED, State.CANCELLED)
    if proved and (last.state in _OPEN or not _known(last, answers)):
        return Verdict(part, part.state)
    if not _known(last, answers):
        said = f"{part.name} is called {part.native}; " if part.native else ""
        return Verdict(part, None, f"{said}SLURM has not answered for {last.native_id}")
    waiting = [link for link in part.links if link.waits]
    if last.state in RESUMED and part.chained:
        return _resumed(part, last, waiting, answers)
    never = [k for k in waiting if k.state is State.PENDING] if last.state in TERMINAL else []
    return Verdict(part, last.state, link=last, left=never[-1].native_id if never else None)


def _resumed(
    part: Part, last: Link, waiting: Sequence[Link], answers: Mapping[str, Sighting]
) -> Verdict:
    """A chain whose last job was cut off: it goes on where something waits to."""
    for link in reversed(waiting):
        if not _known(link, answers):
            return Verdict(part, None, f"SLURM has not answered for {link.native_id}")
        if link.state is State.RUNNING:
            return Verdict(part, State.RUNNING, link=link, successor=link.native_id)
        if link.state is State.PENDING and not _never(link):
            return Verdict(part, State.PENDING, link=link, successor=link.native_id)
    return Verdict(part, last.state, link=last)


def _known(link: Link, answers: Mapping[str, Sighting]) -> bool:
    """Whether its state is what SLURM says now, or said when it ended."""
    if link.state in TERMINAL - _OPEN:
        return True
    said = answers.get(link.native_id)
    return link.state is not None and isinstance(said, Seen | Gone)


def _never(link: Link) -> bool:
    return (link.facts.reason or "").startswith(_NEVER)


def _why(own: Sighting, verdicts: Sequence[Verdict]) -> str:
    said = f"{own.error}; " if isinstance(own, Unreachable) else ""
    return said + "; ".join(verdict.why for verdict in verdicts[:3])


def last_seen(job: Job) -> Seen | None:
    """What its source said of `job` before; None where that was never."""
    if job.first_seen_at is None:
        return None
    return Seen(job.state, job.native, job.birth or job.native_id, job.facts, proof="sacct")


def _whole(base: Seen, verdicts: Sequence[Verdict]) -> Seen:
    deciding = _deciding(verdicts)
    state = deciding.state or State.UNKNOWN
    links = [verdict.link for verdict in verdicts if verdict.link is not None]
    link = deciding.link
    facts = _facts(base.facts, link, links, state)
    facts = replace(
        facts,
        tasks=_counts(verdicts) if len(verdicts) > 1 else None,
        restarts=max((_chain(verdict) for verdict in verdicts), default=0) or None,
        reason=_goes_on(deciding) or facts.reason,
        message=_left(deciding, verdicts),
        workdir=deciding.part.folder or facts.workdir,
    )
    native = link.native if link is not None and link.native else deciding.part.native
    proof = "squeue and sacct" if link is not None else base.proof
    return replace(base, state=state, native=native or base.native, facts=facts, proof=proof)


def _deciding(verdicts: Sequence[Verdict]) -> Verdict:
    """The part whose state the whole has: one that runs, waits, else the worst."""
    live = [v for v in verdicts if v.state in (State.RUNNING, State.PENDING)]
    over = [v for v in verdicts if v.state in TERMINAL]
    blocked = [v for v in live if v.link is not None and _never(v.link)]
    for state in (State.RUNNING, State.PENDING):
        for verdict in live:
            if verdict.state is state and verdict not in blocked:
                return verdict
    for state in (*WORST_FIRST, State.UNKNOWN, State.COMPLETED):
        for verdict in over if blocked else verdicts:
            if verdict.state is state and not (blocked and state is State.COMPLETED):
                return verdict
    return live[0] if live else verdicts[0]


def _facts(base: Facts, link: Link | None, links: Sequence[Link], state: State) -> Facts:
    if link is None:
        return base
    told = link.facts
    starts = [one.facts.started_at for one in links if one.facts.started_at is not None]
    ends = [one.facts.ended_at for one in links if one.facts.ended_at is not None]
    return replace(
        base,
        user=base.user or told.user,
        partition=told.partition,
        account=told.account,
        reason=told.reason,
        exit_code=told.exit_code,
        signal=told.signal,
        submitted_at=base.submitted_at or told.submitted_at,
        started_at=min(starts, default=None),
        ended_at=max(ends, default=None) if state in TERMINAL else None,
        start_estimate_at=told.start_estimate_at,
        elapsed_s=told.elapsed_s if len(links) == 1 else None,
        time_limit_s=told.time_limit_s,
        nodes=told.nodes,
        dependency=told.dependency,
        held=told.held,
        suspended=told.suspended,
    )


def _chain(verdict: Verdict) -> int:
    """How often this part was begun again."""
    return sum(not link.waits for link in verdict.part.links) - 1 if verdict.part.chained else 0


def _goes_on(deciding: Verdict) -> str | None:
    if deciding.successor is None:
        return None
    return f"job {_chain(deciding) + 2} of its chain is {deciding.successor}"


def _left(deciding: Verdict, verdicts: Sequence[Verdict]) -> str | None:
    """What stays in the queue for ever; to remove it is for its owner."""
    left = next((verdict.left for verdict in verdicts if verdict.left is not None), None)
    if left is None or deciding.state not in TERMINAL:
        return None
    return f"{left} is left waiting for what never comes: scancel {left} removes it"


def _counts(verdicts: Sequence[Verdict]) -> TaskCounts:
    states = [verdict.state for verdict in verdicts if verdict.state is not None]
    bad = [v.part.name for v in verdicts if v.state in WORST_FIRST]
    return TaskCounts(
        total=len(verdicts),
        by_state={state: states.count(state) for state in dict.fromkeys(states)},
        failed=tuple(bad[:_FAILED_SHOWN]),
    )


def _successor(verdicts: Sequence[Verdict]) -> str | None:
    return next((v.successor for v in verdicts if v.successor is not None), None)
