"""Following logs through sweeps: where each reading stood, what came, where it stands now."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from jobmond.analysis.followed import Followed, Kept, Tools, followed, needles_at_first
from jobmond.analysis.settle import Move
from jobmond.model.job import Job
from jobmond.model.observation import Follow, LogTail, Read, Reading
from jobmond.model.training import Bookmark, Place

Call = Callable[..., Awaitable[Any]]

_AT_ONCE = 16  # readings in memory at a time; one can be some megabytes


class Shelf(Protocol):
    """Where readings are kept."""

    def places(self, ids: Sequence[int]) -> Mapping[int, Place]: ...
    def readings(self, ids: Sequence[int]) -> Mapping[int, bytes]: ...


@dataclass(frozen=True, slots=True)
class Followers:
    """The logs that one sweep follows.

    `places` are by incarnation, those of a successor's predecessor among them. `max_bytes` is how
    much of one log a sweep looks through. `at_first` is what a line must hold to matter where
    nothing was read yet.
    """

    places: Mapping[int, Place]
    tools: Tools
    max_bytes: int
    jobs: Mapping[str, Job] = field(default_factory=dict)  # by native id
    at_first: tuple[bytes, ...] = ()

    def ask(self, job: Job) -> Follow | None:
        """What to ask of `job`'s log. None where its predecessor's reading goes through the same
        log in this sweep: the next one goes on from there.
        """
        if not self.tools.parsers:
            return None
        known = self._stands(job)
        if known is None:
            return Follow(None, self.at_first, self.max_bytes)
        number, place = known
        if number != job.id and self._read_too(number):
            path = job.choices.log_path or job.facts.log_path
            return None if path == place.path else Follow(None, place.needles, self.max_bytes)
        return Follow(place.place, place.needles, self.max_bytes)

    def _stands(self, job: Job) -> tuple[int, Place] | None:
        """Whose reading `job`'s goes on from, and where that stood."""
        for number in (job.id, job.predecessor):
            if number and number in self.places:
                return number, self.places[number]
        return None

    def _read_too(self, number: int) -> bool:
        return any(job.id == number for job in self.jobs.values())

    async def folded(
        self,
        readings: Mapping[str, Reading[LogTail]],
        shelf: Shelf,
        call: Call,
        *,
        now: datetime,
    ) -> dict[str, Followed]:
        """By native id, for each log in which something is new. Predecessors come first."""
        found: dict[str, Followed] = {}
        fresh: dict[int, Bookmark] = {}
        grown = [job for native_id, job in self.jobs.items() if _grown(readings.get(native_id))]
        ids = {job.id for job in grown}
        grown.sort(key=lambda job: job.predecessor in ids)
        for some in (grown[i : i + _AT_ONCE] for i in range(0, len(grown), _AT_ONCE)):
            numbers = {known[0] for job in some if (known := self._stands(job))}
            held = await call(shelf.readings, sorted(numbers - fresh.keys()))
            kept = {job.native_id: self._kept(job, held, fresh) for job in some}
            part = await asyncio.to_thread(self._fold, some, readings, kept, now)
            found |= part
            fresh |= {job.id: part[job.native_id].bookmark for job in some if job.id}
        return found

    def _kept(
        self, job: Job, held: Mapping[int, bytes], fresh: Mapping[int, Bookmark]
    ) -> Kept | None:
        known = self._stands(job)
        if known is None:
            return None
        number, place = known
        if number in fresh:
            mark = fresh[number]
            return Kept(mark.at, mark.reading, own=False)
        return Kept(place, held[number], own=number == job.id) if number in held else None

    def _fold(
        self,
        jobs: Iterable[Job],
        readings: Mapping[str, Reading[LogTail]],
        kept: Mapping[str, Kept | None],
        now: datetime,
    ) -> dict[str, Followed]:
        found = {}
        for job in jobs:
            reading = readings[job.native_id]
            if isinstance(reading, Read) and reading.value.news is not None:
                tail, news = reading.value, reading.value.news
                was = kept[job.native_id]
                found[job.native_id] = followed(job, tail, news, was, self.tools, now=now)
        return found


def _grown(reading: Reading[LogTail] | None) -> bool:
    """Whether a log says anything that its reading has not seen."""
    news = reading.value.news if isinstance(reading, Read) else None
    return news is not None and (bool(news.segments) or news.restarted or bool(news.moved_bytes))


async def followers(
    moves: Mapping[str, Move], shelf: Shelf, call: Call, *, tools: Tools, max_bytes: int
) -> Followers:
    """Who is followed in a sweep that reads the logs of `moves` (by native id)."""
    jobs = {native_id: move.job for native_id, move in moves.items()}
    numbers = {n for job in jobs.values() for n in (job.id, job.predecessor) if n}
    places = await call(shelf.places, sorted(numbers)) if numbers else {}
    return Followers(places, tools, max_bytes, jobs, needles_at_first(tools.parsers))
