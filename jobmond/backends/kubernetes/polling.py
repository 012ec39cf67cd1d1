"""One sweep's question to a cluster: look at each namespace, then say of every job what is so."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from jobmond.backends.kubernetes.bare import pod_seen, workload_seen
from jobmond.backends.kubernetes.listing import Asking, Refusal
from jobmond.backends.kubernetes.looking import World, gone, happenings, in_doubt, look
from jobmond.backends.kubernetes.records import IRIS, Happening, Unreadable
from jobmond.backends.kubernetes.verdict import RECORD_GONE, orphaned, seen
from jobmond.errors import NeedsPersonError, TransportError
from jobmond.model.observation import Ask, EndedLife, Gone, Poll, Seen, Sighting, Unreachable
from jobmond.model.state import TERMINAL, State

_BETWEEN_LOOKS = timedelta(minutes=5)
_NOT_CONFIRMED = "no list names it any more, and asked for by name it was there"


@dataclass(frozen=True, slots=True)
class Terms:
    """What is decided elsewhere; see `KubernetesBackend`."""

    namespaces: tuple[str, ...]
    selector: str | None
    max_misses: int
    grace: timedelta
    max_events: int
    since: datetime
    now: datetime

    @property
    def patience(self) -> timedelta:
        """How long a job must have been without pods at least, however often it was looked at."""
        return min(self.grace, (self.max_misses - 1) * _BETWEEN_LOOKS)


@dataclass(slots=True)
class Sweep:
    """Collects the answers. `asks` maps namespace to name to the question."""

    asking: Asking
    asks: Mapping[str, Mapping[str, Ask]]
    terms: Terms
    sightings: dict[str, Sighting] = field(default_factory=dict)
    found: list[tuple[str, Seen]] = field(default_factory=list)
    trouble: Exception | None = None
    unsure: list[str] = field(default_factory=list)  # namespaces that gave no answer, and why
    looked: int = 0

    async def poll(self) -> Poll:
        """The whole answer. A server that does not answer is not asked further."""
        try:
            for namespace in await self._namespaces():
                await self._namespace(namespace)
        except TransportError as error:
            self.trouble = error
        for names in self.asks.values():
            for ask in names.values():
                why = self.trouble or "its namespace was not looked at"
                self.sightings.setdefault(ask.native_id, Unreachable(str(why)))
        return self._answer()

    async def _namespaces(self) -> list[str]:
        given = self.terms.namespaces
        if not given:
            given = (await self.asking.default_namespace(),)
        return list(dict.fromkeys((*self.asks, *given)))

    async def _namespace(self, namespace: str) -> None:
        asks = self.asks.get(namespace, {})
        self.looked += 1
        try:
            names = [name for name, ask in asks.items() if ask.state is not State.LOST]
            world = await look(self.asking, namespace, names, selector=self.terms.selector)
            if world.exists is False:
                self._no_answer(f"namespace {namespace} does not exist", asks)
                return
            told = await self._happenings(world, asks)
        except Refusal as no:
            self._no_answer(f"namespace {namespace}: {no}", asks)
            return
        for name, ask in asks.items():
            self.sightings[ask.native_id] = await self._sighting(world, name, ask, told)
        self.found += await self.asking.offload(lambda: list(self._others(world, told)))

    def _no_answer(self, why: str, asks: Mapping[str, Ask]) -> None:
        self.unsure.append(why)
        for ask in asks.values():
            self.sightings[ask.native_id] = Unreachable(why)

    async def _happenings(self, world: World, asks: Mapping[str, Ask]) -> tuple[Happening, ...]:
        pictures = [
            world.picture(job, self.terms.max_misses, self.terms.patience)
            for name, job in world.jobs.items()
            if name in asks
        ]
        bare = [pod for name, pod in world.bare.items() if name in asks]
        try:
            uids = in_doubt(pictures, bare, limit=self.terms.max_events)
        except Unreadable:
            return ()  # said again, with its job, when the job is judged
        return await happenings(self.asking, world.namespace, uids)

    async def _sighting(
        self, world: World, name: str, ask: Ask, told: tuple[Happening, ...]
    ) -> Sighting:
        if name in world.unreadable:
            return Unreachable(f"its record cannot be read: {world.unreadable[name]}")
        try:
            found = self._seen(world, name, ask, told)
        except Unreadable as odd:
            self.asking.complaints.append(f"{ask.native_id}: {odd}")
            return Unreachable(str(odd))
        if found is None:
            return await self._missing(world, name, ask)
        if ask.birth in (None, found.birth):
            return found
        if ask.state is State.LOST:
            return self._gone(ask)  # and what has its name now is another job
        ended = EndedLife(
            str(ask.birth), State.LOST, RECORD_GONE, replace(ask.facts, reason=RECORD_GONE)
        )
        return replace(found, previous=(ended,))

    def _seen(
        self, world: World, name: str, ask: Ask | None, told: tuple[Happening, ...]
    ) -> Seen | None:
        """The record of that name; where two kinds share it, the one that was meant before."""
        job, pod, queue = world.jobs.get(name), world.bare.get(name), world.named_workload(name)
        birth = ask.birth if ask else None
        if pod is not None and (job is None or pod.meta.uid == birth):
            return pod_seen(pod, told, now=self.terms.now)
        if job is not None:
            picture = world.picture(job, self.terms.max_misses, self.terms.patience)
            return seen(replace(picture, happenings=told), ask, now=self.terms.now)
        return workload_seen(queue) if queue is not None else None

    async def _missing(self, world: World, name: str, ask: Ask) -> Sighting:
        if world.exists is None:
            return Unreachable(world.why_unsure or "nobody says whether its namespace exists")
        left = orphaned(ask, world.pods.get(ask.birth or "", ()))
        if left is not None:
            return left
        why = await self._not_sure(world, name, ask)
        return Unreachable(why) if why else self._gone(ask)

    async def _not_sure(self, world: World, name: str, ask: Ask) -> str | None:
        """Why a record that no list names may be there all the same; None where it is not."""
        if ask.state is State.LOST:
            return None  # it was asked for by name when it was given up
        born = max(filter(None, (ask.submitted_at, ask.added_at)))
        if ask.birth is None and self.terms.now - born < self.terms.grace:
            return "nothing of that name is there yet, and it is too young to miss"
        try:
            there = not await gone(self.asking, world.namespace, name)
        except Refusal as no:
            return f"no list names it, and asked for by name: {no}"
        return _NOT_CONFIRMED if there else None

    def _gone(self, ask: Ask) -> Gone:
        if ask.state in TERMINAL or ask.state is None:
            return Gone(RECORD_GONE, message=ask.facts.message)
        last = f"last seen {ask.state}" + (f" ({ask.facts.reason})" if ask.facts.reason else "")
        return Gone(RECORD_GONE, message="; ".join(filter(None, (last, ask.facts.message))))

    def _others(self, world: World, told: tuple[Happening, ...]) -> Iterator[tuple[str, Seen]]:
        """What nobody asked about. What cannot be read is left for those who track it."""
        asked = self.asks.get(world.namespace, {})
        for name in (*world.jobs, *world.bare):
            if name in asked:
                continue
            try:
                found = self._seen(world, name, None, told)
            except Unreadable as odd:
                self.asking.complaints.append(f"{world.namespace}/{name}: {odd}")
                continue
            if found is not None and self._wanted(world, name, found):
                yield f"{world.namespace}/{name}", found

    def _wanted(self, world: World, name: str, found: Seen) -> bool:
        if world.chosen is not None and found.birth not in world.chosen:
            return False
        pod = world.bare.get(name)
        if pod is not None and IRIS in pod.meta.labels:
            return False  # iris says itself what becomes of its pods
        ended_at = found.facts.ended_at
        return found.state not in TERMINAL or (ended_at or self.terms.since) > self.terms.since

    def _answer(self) -> Poll:
        error = self.trouble
        trouble = str(error) if error else None
        complaints = tuple(dict.fromkeys((*self.asking.complaints, *self.unsure)))
        if error is None and self.unsure and len(self.unsure) == self.looked:
            trouble = "; ".join(self.unsure)
        return Poll(
            self.sightings,
            found=tuple(self.found),
            trouble=trouble,
            needs_login=isinstance(error, NeedsPersonError),
            remedy=error.remedy if isinstance(error, NeedsPersonError) else None,
            calls=self.asking.calls,
            complaints=complaints,
        )


def by_namespace(asks: Sequence[tuple[str, str, Ask]]) -> dict[str, dict[str, Ask]]:
    """Questions by namespace and name; of two about one id the one that is not over counts."""
    found: dict[str, dict[str, Ask]] = {}
    for namespace, name, ask in sorted(
        asks, key=lambda one: (one[2].state not in TERMINAL, one[2].added_at)
    ):
        found.setdefault(namespace, {})[name] = ask
    return found
