"""How a log file is known again: the sum of its first bytes and of some that were once its last.

POSIX `cksum` makes the sum at the far side; here the same is made of the bytes that came anyway.
"""

from collections.abc import Mapping
from typing import Any

from jobmond.model.observation import LogTail

PRINT_BYTES = 1024  # of each of the two places

_POLYNOMIAL = 0x04C11DB7
_TOP, _ALL = 1 << 31, (1 << 32) - 1


def _row(byte: int) -> int:
    state = byte << 24
    for _ in range(8):
        state = (state << 1) ^ _POLYNOMIAL if state & _TOP else state << 1
    return state & _ALL


_TABLE = tuple(_row(byte) for byte in range(256))


def fed(state: int, data: bytes) -> int:
    """The sum after more `data`; it begins with 0."""
    for byte in data:
        state = (state << 8 & _ALL) ^ _TABLE[state >> 24 ^ byte]
    return state


def cksum(state: int, length: int) -> str:
    """What `cksum` prints of `length` bytes that brought the sum to `state`."""
    rest = length.to_bytes((length.bit_length() + 7) // 8, "little")
    return f"{fed(state, rest) ^ _ALL} {length}"


def arguments(place: Mapping[str, Any]) -> tuple[str, ...]:
    """Of a known file: its sum, the bytes from its beginning, where the others are, their number.

    The sum is empty where nothing is known.
    """
    numbers = (int(place.get(name, 0)) for name in ("head", "at", "near"))
    return (str(place.get("print", "")), *map(str, numbers))


def printed(
    known: Mapping[str, Any] | None, head: bytes, tail: LogTail
) -> Mapping[str, Any] | None:
    """By what the file is known from now on; None where its beginning should have come and did
    not. `known` is how it was known so far, `head` its first bytes where the far side sent them.
    """
    at, near = _near(tail)
    if head or tail.offset == 0:
        # A short file has nothing behind its last terminator that counts yet.
        first = (head or tail.tail[: at + len(near)])[:PRINT_BYTES]
        state, length = fed(0, first), len(first)
    elif known is not None and known.get("print"):
        state, length = int(known["state"]), int(known["head"])
    else:
        return None
    total = cksum(fed(state, near), length + len(near)) if length else ""
    return {"print": total, "state": state, "head": length, "at": at, "near": len(near)}


def _near(tail: LogTail) -> tuple[int, bytes]:
    """Bytes near the end, and where they begin. What no terminator ended yet may still be on its
    way to the disk of a file server, and reads as zeros till then.
    """
    text = tail.tail
    stop = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
    if not stop and tail.offset:
        stop = PRINT_BYTES
    begin = max(0, stop - PRINT_BYTES)
    return tail.offset + begin, text[begin:stop]
