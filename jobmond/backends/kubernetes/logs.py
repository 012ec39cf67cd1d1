"""Logs of containers through the API server: the end of one, and what is new in it.

The server knows no sizes and sends no more than the newest file of a log that was rotated. What
tells a quiet job from a failed fetch is the status of the answer, its length and the times of its
lines; what it says in place of a log is never taken for one.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import quote

from jobmond.backends.kubernetes.listing import Refusal, refusal
from jobmond.backends.kubernetes.logtext import (
    Piece,
    Place,
    instant,
    no_log,
    pieces,
    place,
    step,
)
from jobmond.errors import TransientTransportError, TransportError
from jobmond.model.observation import (
    PERMISSION,
    Absent,
    Follow,
    LogAsk,
    LogNews,
    LogTail,
    Read,
    Reading,
    Unavailable,
)
from jobmond.ports import Clock, KubeApi, Offload, inline

_PATH = re.compile(
    r"(?P<pod>[a-z0-9][-a-z0-9.]{0,252})"
    r"(?:/(?P<container>[a-z0-9][-a-z0-9]{0,62})(?:@(?P<n>\d{1,9}))?)?"
)
_FEWEST_LINES, _MOST_LINES = 128, 4096
_LINE_BYTES = 32  # few lines are shorter, with the time that is sent before each
_TAIL_FACTOR = 16  # how much may travel for a tail, by its size
_LEAST_BYTES = 65536
_NOT_YET = ("is waiting to start", "previous terminated container")


@dataclass(frozen=True, slots=True)
class _Where:
    """One attempt of one container."""

    namespace: str
    pod: str
    container: str | None
    attempt: int

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{quote(self.namespace)}/pods/{quote(self.pod)}/log"

    @property
    def name(self) -> str:
        attempt = f"@{self.attempt}" if self.attempt else ""
        return f"{self.pod}/{self.container}{attempt}" if self.container else self.pod

    @property
    def earlier(self) -> str:
        """The attempt before this one."""
        return replace(self, attempt=self.attempt - 1).name


def _where(ask: LogAsk) -> _Where | None:
    found = _PATH.fullmatch(ask.path or "")
    namespace = ask.native_id.partition("/")[0]
    if found is None:
        return None
    return _Where(namespace, found["pod"], found["container"], int(found["n"] or 0))


class KubeLogs:
    """Reads `POD/CONTAINER@N`, N counting the restarts of the container; see `LogSource`.

    One request after another: one a job, and another where somebody follows its log and it has
    grown.
    """

    def __init__(
        self,
        api: KubeApi,
        *,
        clock: Clock,
        request_timeout_s: float = 30,
        max_bytes: int = 64 << 20,
        offload: Offload = inline,
    ) -> None:
        self._api, self._clock, self._offload = api, clock, offload
        self._request_timeout_s, self._max_bytes = request_timeout_s, max_bytes

    async def read_tails(
        self, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[LogTail]]:
        """See `jobmond.ports.LogSource`."""
        deadline = self._clock.monotonic() + timeout_s
        readings: dict[str, Reading[LogTail]] = {}
        for ask in asks:
            look = _Look(self, ask, deadline)
            try:
                readings[ask.native_id] = await look.reading(now)
            except TransportError as error:
                # The next would wait as long for as little.
                silent = Unavailable(str(error))
                return {one.native_id: readings.get(one.native_id, silent) for one in asks}
            except Refusal as no:
                readings[ask.native_id] = _refused(no, ask)
        return readings

    async def fetch(self, where: _Where, query: Mapping[str, str], deadline: float) -> bytes:
        """The log as it was sent, with a time before each line.

        Raises:
            TransportError: no answer.
            Refusal: no log.
        """
        left_s = deadline - self._clock.monotonic()
        if left_s <= 0:
            raise TransientTransportError("budget")
        asked = {"timestamps": "true", **query}
        if where.container:
            asked["container"] = where.container
        answer = await self._api.get(
            where.path,
            asked,
            timeout_s=min(left_s, self._request_timeout_s),
            max_bytes=self._max_bytes,
        )
        if answer.status != 200:
            raise refusal(answer)
        said = no_log(answer.body)
        if said is not None:
            raise Refusal(200, said)
        return answer.body

    async def offloaded(self, body: bytes) -> list[Piece]:
        return await self._offload(lambda: list(pieces(body)))

    @property
    def max_bytes(self) -> int:
        return self._max_bytes


def _refused(no: Refusal, ask: LogAsk) -> Reading[LogTail]:
    said = str(no)
    if no.status == 403:
        return Unavailable(f"{PERMISSION}{said}")
    if no.missing or (no.status == 400 and any(words in said for words in _NOT_YET)):
        return Absent((ask.path,) if ask.path else ())
    return Unavailable(said)


class _Look:
    """One job's log in one sweep."""

    def __init__(self, source: KubeLogs, ask: LogAsk, deadline: float) -> None:
        self._source, self._ask, self._deadline = source, ask, deadline

    async def reading(self, now: datetime) -> Reading[LogTail]:
        where = _where(self._ask)
        if where is None:
            return Absent((self._ask.path,) if self._ask.path else ())
        known = place(self._ask.follow.place) if self._ask.follow else None
        lines, more = await self._tail(where)
        if not lines and known is not None and known.path == where.name and known.offset:
            return Unavailable("the log came empty, and it was not empty before")
        news = None
        if self._ask.follow is not None:
            news = await self._news(where, self._ask.follow, known, lines)
        return Read(_tail_of(self._ask, where, lines, news, more=more, now=now), now)

    async def _tail(self, where: _Where) -> tuple[list[Piece], bool]:
        """The last lines, and whether there may be more before them.

        The server takes them from their beginning on and stops at its limit, so one that was
        reached means that the end is missing: fewer lines then. An empty log is asked for twice.
        """
        count = min(max(self._ask.tail_bytes // _LINE_BYTES, _FEWEST_LINES), _MOST_LINES)
        cap = max(self._ask.tail_bytes * _TAIL_FACTOR, _LEAST_BYTES)
        body = await self._lines(where, count, cap)
        if not body:
            body = await self._lines(where, count, cap)
        while len(body) == cap and count > 1:
            count = max(1, count // _TAIL_FACTOR)
            body = await self._lines(where, count, cap)
        lines = await self._source.offloaded(body)
        return lines, len(lines) >= count

    async def _lines(self, where: _Where, count: int, cap: int) -> bytes:
        query = {"tailLines": str(count), "limitBytes": str(cap)}
        try:
            body = await self._fetch(where, query)
        except Refusal as no:
            if not (where.attempt and no.status == 400 and _NOT_YET[0] in str(no)):
                raise
            body = b""
        if body or not where.attempt:
            return body
        # It was started again a moment ago: what there is to know is how it went before.
        return await self._fetch(where, {**query, "previous": "true"})

    async def _fetch(self, where: _Where, query: Mapping[str, str]) -> bytes:
        return await self._source.fetch(where, query, self._deadline)

    async def _news(
        self, where: _Where, follow: Follow, known: Place | None, lines: Sequence[Piece]
    ) -> LogNews | None:
        """What is new; None where it could not be had, though the end of the log could."""
        try:
            if known is not None and known.path == where.earlier and not known.over:
                ended = await self._ended(where, follow, known)
                if ended is not None:
                    return ended
            here = known if known is not None and known.path == where.name else None
            return await self._grown(where, follow, here, restarted=here is not known)
        except Refusal:
            return None

    async def _ended(self, where: _Where, follow: Follow, known: Place) -> LogNews | None:
        """The rest of an attempt that has ended since; None where it is not kept."""
        try:
            body = await self._fetch(where, {**_since(known), "previous": "true"})
        except Refusal as no:
            if no.missing or no.status == 400:
                return None
            raise
        rest = step(known, body, follow.needles, over=True)
        if rest.lost:
            return None
        return LogNews(
            replace(rest.place, over=True).values(),
            rest.segments,
            behind_bytes=1,
            moved_bytes=len(body),
        )

    async def _grown(
        self, where: _Where, follow: Follow, known: Place | None, *, restarted: bool
    ) -> LogNews | None:
        before = known or Place(where.name)
        moved = 0
        for cap in (2 * max(follow.max_bytes, _LEAST_BYTES), self._source.max_bytes - 1):
            query = {**_since(before), "limitBytes": str(cap)}
            body = await self._fetch(where, query)
            moved += len(body)
            if not body and before.offset:
                return None  # the line that was read last should have come again
            cut = len(body) == cap
            whole = body[: body.rfind(b"\n") + 1] if cut else body
            got = step(before, whole, follow.needles)
            if got.lost:
                before, restarted = Place(where.name), True
                continue
            if cut and got.place == before:
                continue  # all of it was known: the server only knows whole seconds
            return LogNews(
                got.place.values(),
                got.segments,
                restarted=restarted,
                behind_bytes=1 if cut else 0,
                moved_bytes=moved,
            )
        return None


def _since(known: Place) -> dict[str, str]:
    """The server cuts times to the second, so that is what it is asked for."""
    if not known.stamp:
        return {}
    return {"sinceTime": re.sub(r"\.\d+", "", known.stamp)}


def _tail_of(
    ask: LogAsk,
    where: _Where,
    lines: Sequence[Piece],
    news: LogNews | None,
    *,
    more: bool,
    now: datetime,
) -> LogTail:
    content = b"".join(line.text for line in lines)
    tail = content[-ask.tail_bytes :] if ask.tail_bytes > 0 else b""
    # The server never says how long a log is: what is known of it is the least that it can be.
    size = len(content) + (1 if more else 0)
    if news is not None and news.place.get("path") == where.name:
        size = max(size, int(news.place["offset"]))
    stamp = next((line.stamp for line in reversed(lines) if line.stamp), b"")
    return LogTail(
        path=where.name,
        size_bytes=size,
        inode=zlib.crc32(f"{where.namespace}/{where.name}".encode()),
        mtime_at=instant(stamp) or now,
        offset=size - len(tail),
        tail=tail,
        news=news,
    )
