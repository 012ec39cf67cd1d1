"""The text of a container's log as the API server sends it: lines with the time of each. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from jobmond.analysis.segments import Cutter
from jobmond.model.metrics import Segment

_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) ")
# What a kubelet sends instead of a log, with the status of a success.
_NO_LOG = re.compile(
    rb"(?:unable to retrieve container logs for |failed to get container status |"
    rb"failed to try resolving symlinks in path |rpc error: code = |"
    rb"Failed to (?:read|watch|follow|open) )"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A line as it was written, with its newline where it has one, and its time as it was sent."""

    stamp: bytes
    text: bytes


def pieces(body: bytes) -> Iterator[Piece]:
    """The lines of `body`. One without a time has that of the line before it."""
    stamp, at = b"", 0
    while at < len(body):
        end = body.find(b"\n", at) + 1 or len(body)
        found = _STAMP.match(body, at, min(end, at + 48))
        if found is not None:
            stamp = found[0][:-1]
            at = found.end()
        yield Piece(stamp, body[at:end])
        at = end


def no_log(body: bytes) -> str | None:
    """What a kubelet says that cannot read the log; None where `body` is one."""
    found = _STAMP.match(body)
    text = body[found.end() :] if found else body
    if not _NO_LOG.match(text) or text.strip().count(b"\n") > 1:
        return None
    return text[:300].decode("utf-8", "replace").strip()


def instant(stamp: bytes) -> datetime | None:
    """A line's time; None where it has none."""
    try:
        # Nine digits of a second are three more than an instant holds.
        return datetime.fromisoformat(re.sub(rb"(\.\d{6})\d+", rb"\1", stamp).decode()).astimezone(
            UTC
        )
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Place:
    """How far the log of one attempt of a container was read.

    `stamp` is the time of the line that the reading stands in or behind, `skip` how many bytes
    of the lines with that very time were read, `offset` how many bytes in all. `over` says that
    the attempt has ended and was read to its end.
    """

    path: str
    stamp: str = ""
    skip: int = 0
    offset: int = 0
    over: bool = False

    def values(self) -> Mapping[str, Any]:
        """As plain JSON values."""
        return {
            "path": self.path,
            "stamp": self.stamp,
            "skip": self.skip,
            "offset": self.offset,
            "over": self.over,
        }


def place(values: Mapping[str, Any] | None) -> Place | None:
    """What `Place.values` gave; None where it was something else."""
    if values is None:
        return None
    kinds = {"path": str, "stamp": str, "skip": int, "offset": int, "over": bool}
    if not all(isinstance(values.get(name), kind) for name, kind in kinds.items()):
        return None
    return Place(**{name: values[name] for name in kinds})


@dataclass(frozen=True, slots=True)
class Step:
    """New segments, and where the reading stands now. Only the last segment may be open.

    `lost`: the log is shorter than what was read of it, and nothing in it tells where.
    """

    place: Place
    segments: tuple[Segment, ...]
    lost: bool = False


def step(before: Place, body: bytes, needles: tuple[bytes, ...], *, over: bool = False) -> Step:
    """What `body` (the lines since `before.stamp`, as they were sent) adds to what was read.

    Any bytes are accepted, cut anywhere. `over`: nothing will follow, so the last line is whole.
    """
    lines = list(_since(before, body))
    anchor = before.stamp.encode()
    # Lines with the time of the anchor are those that were read before, or a part of them.
    known = before.offset > 0 and any(line.stamp == anchor for line in lines)
    skip = before.skip if known else 0
    if known and skip > sum(len(line.text) for line in lines if line.stamp == anchor):
        return Step(Place(before.path), (), lost=True)
    cutter, at = Cutter(before.offset), before.offset - skip
    groups = [(before.stamp, at)] if known or not lines else []
    kept: list[Segment] = []
    for line in lines:
        stamp = line.stamp.decode()
        if not groups or groups[-1][0] != stamp:
            groups.append((stamp, at))
        at += len(line.text)
        text = line.text[skip:]
        skip = max(0, skip - len(line.text))
        kept += cutter.feed(text)
    if over and cutter.open().raw:
        kept += cutter.feed(b"\n")
    last = cutter.open()
    stamp, begun = next((g for g in reversed(groups) if g[1] <= last.offset), (before.stamp, 0))
    place = Place(before.path, stamp, max(0, last.offset - begun), last.offset, over)
    held = [one for one in kept if not needles or any(n in one.raw for n in needles)]
    return Step(place, (*held, last) if last.raw else tuple(held))


def _since(before: Place, body: bytes) -> Iterator[Piece]:
    """The lines from the anchor on; where it is not there, those that are not older."""
    lines = list(pieces(body))
    anchor = before.stamp.encode()
    if not anchor:
        return iter(lines)
    first = next((i for i, line in enumerate(lines) if line.stamp == anchor), None)
    if first is not None:
        return iter(lines[first:])
    return (line for line in lines if _order(line.stamp) >= _order(anchor))


def _order(stamp: bytes) -> tuple[float, bytes]:
    at = instant(stamp)
    fraction = re.search(rb"\.(\d+)", stamp)
    digits = fraction[1] if fraction else b""
    return (at.replace(microsecond=0).timestamp() if at else 0.0, digits.ljust(9, b"0"))
