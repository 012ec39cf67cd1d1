"""Some members of a JSON document of any size, at the speed of searching and in little memory.

A results file may hold tens of MB of token ids between the few numbers that matter. What is not
wanted is skipped by looking for its end; what is wanted comes out as a document of its own.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

# Which members of an object are wanted and, below each, which of its own; lists are looked
# through, `*` stands for every other name and an empty mapping for everything below.
Wanted: TypeAlias = Mapping[str, Any]
EVERYTHING: Wanted = {}

_REST_OF_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_TOKEN = re.compile(rb'[\[\]{}":,]|[^\[\]{}":,\s]+')
_NEXT_MEMBER = re.compile(rb'["\[\]{},]')
_BRACKET = re.compile(rb'["\[\]{}]')
_NAME_BYTES = 1000
_DEEPEST = 64


class _Frame:
    """A container that is kept, while it is open."""

    __slots__ = ("count", "is_object", "wanted", "wants_name")

    def __init__(self, is_object: bool, wanted: Wanted) -> None:
        self.is_object = is_object
        self.wanted = wanted
        self.wants_name = is_object
        self.count = 0


class Sifter:
    """Takes a document in pieces, cut anywhere. `closed` says that its last bracket was read."""

    def __init__(self, wanted: Wanted, *, most_bytes: int = 8 << 20) -> None:
        """`most_bytes` bounds what is kept; a document with more of it counts as unreadable."""
        self.closed = False
        self._wanted = wanted
        self._most_bytes = most_bytes
        self._broken = False
        self._out = bytearray()
        self._frames: list[_Frame] = []
        self._name = bytearray()
        self._sink: bytearray | None = None
        self._in_string = False
        self._escaped = False
        self._in_word = False
        self._skipped: int | None = None  # brackets open in a value that is not wanted
        self._below = wanted

    def feed(self, data: bytes) -> None:
        """The next piece. What follows the end of the document is ignored."""
        at = 0
        while at < len(data) and not self.closed and not self._broken:
            if self._in_string:
                at = self._string(data, at)
            elif self._skipped is not None:
                at = self._skip(data, at)
            else:
                at = self._token(data, at)
        self._broken = self._broken or len(self._out) > self._most_bytes

    def document(self) -> Any:
        """What was wanted; None where the document is not closed, or is none."""
        if self._broken or not self.closed:
            return None
        try:
            return json.loads(self._out)
        except (ValueError, RecursionError):
            return None

    def _string(self, data: bytes, at: int) -> int:
        start = at
        if self._escaped:
            self._escaped, at = False, at + 1
        found = _REST_OF_STRING.match(data, at)
        at = found.end() if found else at
        if at < len(data) and data[at : at + 1] == b"\\":  # its other half is in the next piece
            self._escaped, at = True, at + 1
        if self._sink is not None and len(self._sink) <= self._most_bytes:
            self._sink += data[start:at]
        if at < len(data):
            self._in_string, at = False, at + 1
            if self._sink is self._out:
                self._out += b'"'
        return at

    def _skip(self, data: bytes, at: int) -> int:
        found = (_BRACKET if self._skipped else _NEXT_MEMBER).search(data, at)
        if found is None:
            return len(data)
        char, depth = found[0], self._skipped or 0
        if char == b'"':
            self._in_string, self._sink = True, None
        elif char in b"[{":
            self._skipped = depth + 1
        elif depth and char in b"]}":
            self._skipped = depth - 1
        else:
            self._skipped = None
            return found.start()
        return found.end()

    def _token(self, data: bytes, at: int) -> int:
        found = _TOKEN.search(data, at)
        if found is None:
            self._in_word = False
            return len(data)
        char = found[0]
        continues = self._in_word and found.start() == at == 0
        self._in_word = False
        if char == b'"':
            self._quote()
        elif char in (b"[", b"{"):
            self._open(char)
        elif char in (b"]", b"}"):
            self._close(char)
        elif char == b":":
            self._member()
        elif char == b",":
            if self._frames and self._frames[-1].is_object:
                self._frames[-1].wants_name = True
        else:
            self._word(char, continues=continues)
            self._in_word = found.end() == len(data)
        return found.end()

    def _quote(self) -> None:
        self._in_string = True
        if self._frames and self._frames[-1].wants_name:
            self._name.clear()
            self._sink = self._name
            return
        self._begin_value()
        self._out += b'"'
        self._sink = self._out

    def _member(self) -> None:
        """A name was read: keep its value or skip it."""
        if not self._frames or not self._frames[-1].wants_name:
            self._broken = True
            return
        frame = self._frames[-1]
        frame.wants_name = False
        below = _below(frame.wanted, self._name)
        if below is None:
            self._skipped = 0
            return
        self._out += b"," if frame.count else b""
        self._out += b'"%b":' % bytes(self._name)
        frame.count += 1
        self._below = below

    def _begin_value(self) -> None:
        if not self._frames:
            self._broken = self._broken or bool(self._out)
            self._below = self._wanted
        elif not self._frames[-1].is_object:
            frame = self._frames[-1]
            self._out += b"," if frame.count else b""
            frame.count += 1
            self._below = frame.wanted

    def _open(self, char: bytes) -> None:
        self._begin_value()
        self._out += char
        self._frames.append(_Frame(char == b"{", self._below))
        self._broken = self._broken or len(self._frames) > _DEEPEST

    def _close(self, char: bytes) -> None:
        if not self._frames or self._frames.pop().is_object != (char == b"}"):
            self._broken = True
            return
        self._out += char
        self.closed = not self._frames

    def _word(self, word: bytes, *, continues: bool) -> None:
        if not self._frames:
            self._broken = True
            return
        if not continues:
            self._begin_value()
            self._out += b" "  # what stood apart must not become one word
        self._out += word


def _below(wanted: Wanted, name: bytearray) -> Wanted | None:
    """What is wanted below a member; None where it is not wanted itself."""
    if not wanted:
        return EVERYTHING
    if len(name) > _NAME_BYTES:
        return None
    found: Wanted | None = wanted.get(name.decode("utf-8", "replace"), wanted.get("*"))
    return found


def sifted(pieces: Iterable[bytes], wanted: Wanted, *, most_bytes: int = 8 << 20) -> Any:
    """What is wanted of one document; None where it is not whole, or is none."""
    sifter = Sifter(wanted, most_bytes=most_bytes)
    for piece in pieces:
        sifter.feed(piece)
        if sifter.closed:
            break
    return sifter.document()
