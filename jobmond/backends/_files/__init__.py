"""Reads job logs, their ends and what is new in them: one script for all of a cluster.

A fetch that failed must never look like an idle job. The far side says how large the file is, and
a reading counts only when exactly as many bytes arrived as were asked for.
"""

import re
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from jobmond.analysis.visible import readable, visible
from jobmond.backends._files import examining
from jobmond.backends._files.following import Answered, Missing, raw_news, read_news
from jobmond.backends._files.looking import Limits, Marks, absolute, folder, look_script
from jobmond.errors import NeedsPersonError, TransientTransportError
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
from jobmond.ports import Offload, Transport, inline


@dataclass(frozen=True, slots=True)
class Short:
    """Fewer bytes than asked for, or none: tried once more, then unavailable."""

    why: str


class FileReader:
    """Reads logs through `transport`, for every source whose jobs write to files.

    `budget_bytes` bounds what one call brings home; files beyond it are `Unavailable("budget")`
    and come first in the next call. `scan_bytes` bounds what one call has the far side look
    through for news, `each_s` one look at one file. `log_dirs` are further absolute folders in
    which logs may be. `offload` runs what takes long: an answer can have all of the budget.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        budget_bytes: int = 32 * 2**20,
        scan_bytes: int = 2**30,
        each_s: int = 10,
        log_dirs: Sequence[str] = (),
        offload: Offload = inline,
    ) -> None:
        self._transport, self._offload = transport, offload
        usable = tuple(one for one in log_dirs if one.startswith("/") and not _unusable(one))
        self._limits = Limits(budget_bytes, scan_bytes, each_s, usable)
        self._postponed: Mapping[str, int] = {}  # calls in a row
        self._waiting: Mapping[str, int] = {}
        self._most: dict[str, int] = {}
        self._numbered = False

    async def read_tails(
        self, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[LogTail]]:
        """One reading for each ask; a log that came in part is asked for once more."""
        found: dict[str, Reading[LogTail]] = {
            ask.native_id: Unavailable(f"cannot be asked for: {wrong}")
            for ask in asks
            if (wrong := _unaskable(ask))
        }
        wanted = [self._paced(ask) for ask in asks if ask.native_id not in found]
        wanted.sort(key=self._turn)
        first = await self._look(wanted, now=now, timeout_s=timeout_s * 0.7)
        again = [_smaller(ask) for ask in wanted if isinstance(first[ask.native_id], Short)]
        second = await self._look(again, now=now, timeout_s=timeout_s * 0.3)
        self._most = _most_next(asks, wanted, again)
        for native_id, reading in {**first, **second}.items():
            if isinstance(reading, Short):
                found[native_id] = Unavailable(reading.why)
            elif isinstance(reading, Absent):
                found[native_id] = Absent((*reading.looked, *self._elsewhere(native_id)))
            else:
                found[native_id] = reading
        self._postponed = _once_more(
            self._postponed, (i for i, one in found.items() if one == Unavailable("budget"))
        )
        self._waiting = _once_more(self._waiting, (i for i, one in found.items() if _waits(one)))
        return found

    def _turn(self, ask: LogAsk) -> tuple[int, bool, int]:
        """What was not read at all last time first; then what is only read on, before what is far
        behind and may use up all there is. Whoever waited longest goes first.
        """
        behind = ask.follow is not None and not (ask.follow.place or {}).get("whole")
        native_id = ask.native_id
        return -self._postponed.get(native_id, 0), behind, -self._waiting.get(native_id, 0)

    def _paced(self, ask: LogAsk) -> LogAsk:
        """No more at once than came through before."""
        most = self._most.get(ask.native_id)
        if ask.follow is None or most is None:
            return ask
        return replace(ask, follow=replace(ask.follow, max_bytes=most))

    def _elsewhere(self, native_id: str) -> list[str]:
        return [visible(f"{one}/*_{native_id}.out") for one in self._limits.log_dirs]

    async def _look(
        self, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
    ) -> dict[str, Reading[LogTail] | Short]:
        if not asks:
            return {}
        marks = Marks(secrets.token_hex(16), secrets.token_hex(16))
        limits = replace(self._limits, numbered=self._numbered)
        script = look_script(marks, asks, limits, timeout_s=timeout_s)
        room = self._limits.budget_bytes + 65536 + 8192 * len(asks)
        try:
            answer = await self._transport.run(script, timeout_s=timeout_s, max_bytes=room)
        except (TransientTransportError, NeedsPersonError) as error:
            return {ask.native_id: Unavailable(str(error)) for ask in asks}
        found = await self._offload(lambda: readings(answer.stdout, marks, asks, now=now))
        # Whatever came in part may be another host's, whose grep cannot.
        whole = not any(isinstance(reading, Short) for reading in found.values())
        self._numbered = whole and (self._numbered or b" lines 0\n" in answer.stdout)
        return found


_LEAST_AT_ONCE = 2**20


def _smaller(ask: LogAsk) -> LogAsk:
    """The same with less to look through: a slow file system, or a slow line, gets on too."""
    if ask.follow is None:
        return ask
    most = min(ask.follow.max_bytes, max(_LEAST_AT_ONCE, ask.follow.max_bytes // 16))
    return replace(ask, follow=replace(ask.follow, max_bytes=most))


def _most_next(
    asks: Iterable[LogAsk], tried: Iterable[LogAsk], smaller: Iterable[LogAsk]
) -> dict[str, int]:
    """What may be looked through next time, for those of `asks` that get less than they ask for:
    what came short as little as at the second try, the others twice as much again.
    """
    given = {ask.native_id: 2 * ask.follow.max_bytes for ask in tried if ask.follow}
    given |= {ask.native_id: ask.follow.max_bytes for ask in smaller if ask.follow}
    return {
        ask.native_id: most
        for ask in asks
        if ask.follow and (most := given.get(ask.native_id)) and most < ask.follow.max_bytes
    }


def _once_more(known: Mapping[str, int], waiting: Iterable[str]) -> dict[str, int]:
    """How often in a row each of those that wait has waited."""
    return {native_id: known.get(native_id, 0) + 1 for native_id in waiting}


def _waits(reading: Reading[LogTail]) -> bool:
    """Whether nothing of what is new in a log was looked at."""
    news = reading.value.news if isinstance(reading, Read) else None
    return news is not None and news.behind_bytes > 0 and not news.moved_bytes


def _unaskable(ask: LogAsk) -> str | None:
    texts = (ask.native_id, ask.path or "", ask.workdir or "")
    return next((f"its path {wrong}" for text in texts if (wrong := _unusable(text))), None)


def _unusable(text: str) -> str | None:
    if "\0" in text:
        return "holds a NUL"
    return None if _encodable(text) else "is no text"


def _encodable(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


_HEAD = re.compile(
    rb"(why|denied|late|absent|budget|file|same|later|news) (\d{1,9})((?: -?\d{1,20}){5})?\n"
)


_HEAD_BYTES = 4096  # more than a file's beginning and the line after it

_EXAM = re.compile(rb"exam (\d{1,9}) \d{1,20}\n")


def readings(
    stdout: bytes, marks: Marks, asks: Sequence[LogAsk], *, now: datetime
) -> dict[str, Reading[LogTail] | Short]:
    """One reading for each ask from what the script printed; whatever is missing is `Short`."""
    found: dict[str, Reading[LogTail] | Short] = {
        ask.native_id: Short("nothing arrived") for ask in asks
    }
    for index, reading in _Looks(stdout, marks, asks, now):
        if index < len(asks):
            found[asks[index].native_id] = reading
    for ask in asks:
        reading = found[ask.native_id]
        if ask.follow is not None and isinstance(reading, Read) and reading.value.news is None:
            found[ask.native_id] = Short("nothing arrived of what is new in it")
        elif ask.examine is not None and isinstance(reading, Read) and not reading.value.examined:
            found[ask.native_id] = _unexamined(reading)
    return found


def _unexamined(reading: Read[LogTail]) -> Reading[LogTail] | Short:
    """An empty log has no parts; of any other they are missing."""
    return reading if not reading.value.size_bytes else Short("nothing arrived of its parts")


@dataclass(frozen=True, slots=True)
class _Looks:
    """What one script printed, taken apart in one pass."""

    stdout: bytes
    marks: Marks
    asks: Sequence[LogAsk]
    now: datetime

    def __iter__(self) -> Iterator[tuple[int, Reading[LogTail] | Short]]:
        lead, at = b"\n%b " % self.marks.mark.encode(), 0
        ends: Read[LogTail] | None = None
        while (at := self.stdout.find(lead, at)) >= 0:
            at += len(lead)
            exam = _EXAM.match(self.stdout, at)
            if exam is not None and ends is not None:
                at, reading = self._in_parts(ends, at - len(lead), int(exam[1]))
                yield int(exam[1]), reading
                continue
            head = _HEAD.match(self.stdout, at)
            if head is None:
                continue
            at, index = head.end(), int(head[2])
            if head[1] == b"file":
                at, reading = self._file(at, index, head[3] or b"")
                ends = reading if isinstance(reading, Read) else None
                yield index, reading
            elif index < len(self.asks) and head[1] not in (b"same", b"later", b"news"):
                yield index, self._word(head[1], at, index)
            elif index < len(self.asks) and ends is not None:
                at, reading = self._with_news(ends, head, at, index)
                ends = reading if isinstance(reading, Read) else None
                yield index, reading

    def _word(self, kind: bytes, at: int, index: int) -> Reading[LogTail] | Short:
        """A file that was not read, and why."""
        if kind == b"absent":
            return Absent(_looked(self.asks[index]))
        if kind not in (b"why", b"denied"):
            return Unavailable("budget")
        stop = self.stdout.find(self._line("end", index), at)
        if stop < 0:
            return Short("nothing arrived")
        said = self.stdout[at:stop]
        return Unavailable(_denied(said) if kind == b"denied" else _why(said))

    def _file(self, at: int, index: int, numbers: bytes) -> tuple[int, Reading[LogTail] | Short]:
        """The file whose header ends at `at`, and where its answer ends."""
        data, end = self._line("data", index), self._line("end", index)
        begin = self.stdout.find(data, at)
        if begin < 0 or not numbers:
            return at, Short("nothing arrived")
        size, mtime, inode, offset, asked = (int(number) for number in numbers.split())
        path, begin = readable(self.stdout[at:begin]), begin + len(data)
        # By length first: then nothing in the file can be taken for the end of it.
        stop = begin + asked
        if not self.stdout.startswith(end, stop):
            stop = self.stdout.find(end, begin)
            got = len(self.stdout) - begin if stop < 0 else stop - begin
            return begin, Short(f"{size} bytes are there, {asked} were asked for, {got} arrived")
        tail = LogTail(path, size, inode, self._instant(mtime), offset, self.stdout[begin:stop])
        return stop, Read(tail, self.now)

    def _with_news(
        self, ends: Read[LogTail], head: re.Match[bytes], at: int, index: int
    ) -> tuple[int, Reading[LogTail] | Short]:
        """The file whose end came before, with what is new in it."""
        follow, tail = self.asks[index].follow, ends.value
        if follow is None:
            return at, ends
        if head[1] == b"news":
            at, news = self._news(head, at, index, follow, tail)
        else:
            known = follow.place or {}
            behind = tail.size_bytes - int(known.get("offset", 0)) if head[1] == b"later" else 0
            news = LogNews(known, (), behind_bytes=max(0, behind))
        if isinstance(news, Missing):
            return at, Short(f"{tail.path}: {news.why}")
        return at, Read(replace(tail, news=news), ends.at)

    def _in_parts(
        self, ends: Read[LogTail], at: int, index: int
    ) -> tuple[int, Reading[LogTail] | Short]:
        """The file whose end came before, with its parts and those of the logs beside it."""
        lead = b"\n%b " % self.marks.mark.encode()
        stop, found = examining.Answer(self.stdout, lead, index).read(at)
        if found is None:
            return max(stop, at + len(lead)), Short(f"{ends.value.path}: not all of it arrived")
        return stop, Read(replace(ends.value, examined=found), ends.at)

    def _news(
        self, head: re.Match[bytes], at: int, index: int, follow: Follow, tail: LogTail
    ) -> tuple[int, LogNews | Missing]:
        for word in ("lines", "raw"):
            line = self._line(word, index)
            begin = self.stdout.find(line, at, at + _HEAD_BYTES)
            stop = self.stdout.find(self._line("end", index), begin + len(line))
            if begin < 0 or stop < 0:
                continue
            said = Answered(
                numbers=(head[3] or b"").strip(),
                head=self.stdout[at:begin],
                body=self.stdout[begin + len(line) : stop],
            )
            if word == "raw":
                return stop, raw_news(said, follow, tail)
            return stop, read_news(said, self.marks.close.encode(), follow, tail)
        return at, Missing("nothing arrived")

    def _line(self, word: str, index: int) -> bytes:
        return b"\n%b %b %d\n" % (self.marks.mark.encode(), word.encode(), index)

    def _instant(self, mtime: int) -> datetime:
        try:
            return datetime.fromtimestamp(mtime, UTC)
        except (OverflowError, OSError, ValueError):
            return self.now  # a clock beyond datetime's years


def _why(said: bytes) -> str:
    return visible(readable(said.strip()))


def _denied(said: bytes) -> str:
    """Who may not read what, and how its owner can let them, as the far side sees it."""
    lines = [visible(readable(line)) for line in said.split(b"\n", 3)]
    if len(lines) != len(("owner and mode", "user", "what", "path")):
        return f"{PERMISSION}denied"
    (owner, _, mode), user, what, path = lines[0].partition(" "), *lines[1:]
    verb, right = ("enter", "x") if what == "folder" else ("read", "r")
    text = f"{PERMISSION}{user} may not {verb} {path}"
    if not owner or owner == user:
        return text
    fix = shlex.join(["setfacl", "-m", f"u:{user}:{right}", path])
    return f"{text} ({mode} {owner}); {owner} can allow it: {fix}"


def _looked(ask: LogAsk) -> tuple[str, ...]:
    """Where the far side looked, for a person to read."""
    workdir = folder(ask)
    places = [absolute(ask)]
    if workdir:
        places += [f"{workdir}/*_{ask.native_id}.out", f"{workdir}/slurm-{ask.native_id}.out"]
    return tuple(visible(place) for place in places if place)
