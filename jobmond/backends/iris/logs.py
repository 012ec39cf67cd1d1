"""Job logs from the log service beside the controller.

There is no file: lines of all tasks and attempts come in the order in which the service took them,
each with a number that only grows (`seq`). What a log was submitted under before stays there, so
every question says since when.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from jobmond.analysis.segments import Cutter
from jobmond.backends.iris.records import wrong_id
from jobmond.backends.iris.rpc import Controller, Object, Time, TooLong
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.model.metrics import Segment
from jobmond.model.observation import (
    Follow,
    LogAsk,
    LogNews,
    LogTail,
    Read,
    Reading,
    Unavailable,
)
from jobmond.ports import Clock, HttpApi, Offload, inline

_PLACE = re.compile(r"iris:/(?P<job>.+)@(?P<ms>[0-9]{1,15})")
_LINE_BYTES = 80  # what a line has on average: how many to ask for
_PAGE_LINES = 2000
_LEAST_LINES = 50
_MOST_LINES = 5000
_REMEMBERED = 4096
_SHORT = "the log service shows nothing any more of what it showed before"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log. `own` is false for a line of a job that this one submitted."""

    seq: int
    data: bytes
    at_ms: int
    own: bool


@dataclass(frozen=True, slots=True)
class _Asked:
    """A log to read: whose, since when (milliseconds), and what it is called."""

    job_id: str
    since_ms: int
    name: str

    @property
    def source(self) -> str:
        return f"/{self.job_id}/"


@dataclass(frozen=True, slots=True)
class _Known:
    """Where a log ended when it was read last: line, byte, and since when it was asked for."""

    since_ms: int
    seq: int
    end: int


class IrisLogs:
    """Reads logs of iris jobs; see `jobmond.ports.LogSource`.

    A log has no size at the far side: bytes are counted as they come, from the beginning where it
    was seen and from a guess where it was not.
    """

    def __init__(
        self,
        http: HttpApi,
        clock: Clock,
        *,
        url: str,
        max_bytes: int = 64 * 2**20,
        each_s: float = 20.0,
        offload: Offload = inline,
    ) -> None:
        self._controller = Controller(http, url.rstrip("/"), offload, max_bytes, each_s=each_s)
        self._clock = clock
        self._known: dict[str, _Known] = {}

    async def read_tails(
        self, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[LogTail]]:
        """One call a log, and more where it is followed; none after one that had no answer."""
        time = Time.of(self._clock, timeout_s)
        found: dict[str, Reading[LogTail]] = {}
        why: str | None = None
        for ask in asks:
            if why is None and time.left_s <= 0:
                why = "budget"
            if why is not None:
                found[ask.native_id] = Unavailable(why)
                continue
            try:
                found[ask.native_id] = await self._read(ask, now, time)
            except (NeedsPersonError, TransientTransportError) as error:
                found[ask.native_id] = Unavailable(str(error))
                # An answer about this log, even a bad one, says nothing of the next.
                why = str(error) if type(error) in _NO_ANSWER else None
        return found

    async def _read(self, ask: LogAsk, now: datetime, time: Time) -> Reading[LogTail]:
        wrong = wrong_id(ask.native_id)
        if wrong is not None:
            return Unavailable(wrong)
        asked = _asked(ask)
        lines, whole = await self._tail(asked, ask.tail_bytes, time)
        known = self._known.get(ask.native_id)
        known = known if known and known.since_ms == asked.since_ms else None
        if not lines and (_shown_before(ask.follow, asked) or (known and known.seq)):
            return Unavailable(_SHORT)
        news = await self._news(asked, ask.follow, lines, time) if ask.follow else None
        tail = _joined(line for line in lines if line.own)
        shown = tail[-ask.tail_bytes :]
        end = _end(lines, whole, known)
        if news is not None:
            read = int(news.place["bytes"]) + news.behind_bytes
            end = max(end, read) if news.behind_bytes else read
        self._remember(ask.native_id, _Known(asked.since_ms, _last(lines), end))
        at = max((line.at_ms for line in lines if line.own), default=asked.since_ms)
        offset = end - len(shown)
        return Read(LogTail(asked.name, end, 0, _instant(at, now), offset, shown, news), now)

    async def _tail(
        self, asked: _Asked, tail_bytes: int, time: Time
    ) -> tuple[Sequence[Line], bool]:
        """The last lines, and whether they are all there are.

        A job whose own jobs print much more than it does is asked for by the exact names of its
        tasks, which costs the service more.
        """
        wanted = min(_MOST_LINES, max(_LEAST_LINES, tail_bytes // _LINE_BYTES))
        try:
            lines = await self._fetch(asked, time, tail=True, maxLines=wanted)
        except TooLong:
            wanted = _LEAST_LINES
            lines = await self._fetch(asked, time, tail=True, maxLines=wanted)
        if len(lines) < wanted:
            return lines, True
        if sum(line.own for line in lines) >= wanted / 2:
            return lines, False
        pattern = f"^/{re.escape(asked.job_id)}/[0-9]+:[0-9]+$"
        exact = {"source": pattern, "matchScope": "MATCH_SCOPE_REGEX"}
        lines = await self._fetch(asked, time, tail=True, maxLines=wanted, **exact)
        return lines, len(lines) < wanted

    async def _news(
        self, asked: _Asked, follow: Follow, tail: Sequence[Line], time: Time
    ) -> LogNews:
        """What came since the place of last time, at most `max_bytes` of it."""
        last = _last(tail)
        seq, start, restarted = _place(follow.place, asked, last)
        cutter, segments, moved, full = Cutter(start), [], 0, False
        while seq < last and time.left_s > 0 and not full:
            page = await self._page(asked, seq, time, first=not moved)
            if not page:
                break
            for line in page:
                if line.own:
                    segments += _wanted(cutter.feed(line.data + b"\n"), follow.needles)
                moved, seq = moved + len(line.data) + 1, line.seq
                full = moved >= follow.max_bytes
                if full:
                    break
        behind = sum(len(line.data) + 1 for line in tail if line.own and line.seq > seq)
        place = {
            "since_ms": asked.since_ms,
            "seq": seq,
            "bytes": cutter.offset,
            "whole": seq >= last,  # whether everything that is there was looked at
        }
        return LogNews(place, tuple(segments), restarted, behind if seq < last else 0, moved)

    async def _page(self, asked: _Asked, seq: int, time: Time, *, first: bool) -> Sequence[Line]:
        """The lines after `seq`. Once some have come, a failure only means that others have not."""
        try:
            return await self._fetch(asked, time, cursor=str(seq), maxLines=_PAGE_LINES)
        except TooLong:
            return await self._fetch(asked, time, cursor=str(seq), maxLines=_LEAST_LINES)
        except TransientTransportError:
            if first:
                raise
            return ()

    async def _fetch(self, asked: _Asked, time: Time, **more: Any) -> Sequence[Line]:
        question = {
            "source": asked.source,
            "matchScope": "MATCH_SCOPE_PREFIX",
            "sinceMs": str(max(0, asked.since_ms - 1)),  # what came after it
            **more,
        }
        return _lines(await self._controller.logs(question, time), asked)

    def _remember(self, native: str, known: _Known) -> None:
        self._known.pop(native, None)
        self._known[native] = known
        while len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]


_NO_ANSWER = (NeedsPersonError, TransientTransportError)


def _asked(ask: LogAsk) -> _Asked:
    """Whose log, since when: as the place that the backend names says, where it is this job's."""
    found = _PLACE.fullmatch(ask.path or "")
    if found is None or found["job"] != ask.native_id:
        return _Asked(ask.native_id, 0, f"iris:/{ask.native_id}")
    return _Asked(ask.native_id, int(found["ms"]), ask.path or "")


def _lines(answer: Object, asked: _Asked) -> Sequence[Line]:
    """The lines of an answer, in the service's order.

    Raises:
        TransientTransportError: one of them is none. A log with holes is no log.
    """
    entries = answer.get("entries", [])
    if not isinstance(entries, list):
        raise TransientTransportError("FetchLogs: the answer lists no lines")
    own = re.compile(rf"/{re.escape(asked.job_id)}/[0-9]+:[0-9]+")
    lines = [_line(entry, own) for entry in entries]
    return sorted(lines, key=lambda line: line.seq)


def _line(entry: object, own: re.Pattern[str]) -> Line:
    if isinstance(entry, dict):
        seq, key, data = entry.get("seq"), entry.get("key"), entry.get("data", "")
        stamp = entry.get("timestamp")
        at = stamp.get("epochMs", 0) if isinstance(stamp, dict) else 0
        if (
            isinstance(data, str)
            and isinstance(key, str)
            and re.fullmatch(r"[0-9]{1,18}", str(seq))
            and re.fullmatch(r"[0-9]{1,15}", str(at))
        ):
            raw = data.encode("utf-8", "backslashreplace")
            return Line(int(str(seq)), raw, int(str(at)), own.fullmatch(key) is not None)
    raise TransientTransportError("FetchLogs: a line of the answer cannot be read")


def _last(lines: Sequence[Line]) -> int:
    return lines[-1].seq if lines else 0


def _joined(lines: Iterable[Line]) -> bytes:
    return b"".join(line.data + b"\n" for line in lines)


def _end(lines: Sequence[Line], whole: bool, known: _Known | None) -> int:
    """The byte at which the log ends, counted on from the last look."""
    size = len(_joined(line for line in lines if line.own))
    if whole:
        return size
    if known is not None and known.seq <= _last(lines):
        return known.end + len(_joined(n for n in lines if n.own and n.seq > known.seq))
    # More came before: at least a byte a line. The service numbers the lines of all jobs.
    return size + max(1, lines[0].seq - 1)


def _shown_before(follow: Follow | None, asked: _Asked) -> bool:
    """Whether an earlier look found lines of this very log: then an empty answer is no silence."""
    place = follow.place if follow else None
    return place is not None and place.get("since_ms") == asked.since_ms and bool(place.get("seq"))


def _place(place: Mapping[str, Any] | None, asked: _Asked, last: int) -> tuple[int, int, bool]:
    """Where to go on: after which line, at which byte; and whether that is another log."""
    if place is None:
        return 0, 0, False
    seq, start = place.get("seq"), place.get("bytes")
    if not isinstance(seq, int) or not isinstance(start, int):
        return 0, 0, True
    if place.get("since_ms") != asked.since_ms or seq > last:
        return 0, 0, True
    return seq, start, False


def _wanted(segments: Iterable[Segment], needles: Sequence[bytes]) -> list[Segment]:
    return [s for s in segments if not needles or any(n in s.raw for n in needles)]


def _instant(ms: int, now: datetime) -> datetime:
    try:
        return min(now, datetime.fromtimestamp(ms / 1000, UTC)) if ms else now
    except (OverflowError, OSError, ValueError):
        return now  # a clock beyond a calendar's years
