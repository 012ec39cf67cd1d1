"""Signs of life in a log's bytes: steps that advance, losses and gradients that do not end."""

import re
from array import array
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass

_MARK = re.compile(
    rb"(?:[Ss]tep|[Ii]ter(?:ation)?|[Ee]poch|[Ee]pisode)[ :=/]{1,5}(\d{1,9})"
    rb"|(\d{1,9})/\d{1,9} "
    rb"(?:\[\d|trials|traces|samples|examples|requests|prompts|questions|problems)"
    rb"|(\d{1,3})% \(\d"
)
_GRAD = re.compile(rb"norm['\"]?[:=]? ?'?(\d{1,12}(?:\.\d{0,12})?(?:[eE][+-]?\d{1,3})?)")
_GRAD_NAME = re.compile(rb"(?<!max_)(?<!clip_)(?<!critic/)(?:grad_|grad |gradient_|raw_grad_|g)$")
_NAN_RAW = re.compile(rb"(?i:nan)(?![a-z])(?! iter)")
_NAN = re.compile(
    r"(?<![\w/])(?P<key>(?:\w{1,30}/){0,3}"
    r"(?:train_)?(?:policy_|pg_|lm |actor_|value_|kl_|vf_|ppo_|total_|ce_)?"
    r"(?:[Ll]oss|LOSS|raw_grad_norm|grad_norm|gradient_norm|[Gg]rad\.? [Nn]orm|gnorm))"
    r"['\"]?\s?[:=|]?\s{0,4}'?(?:np\.float\d{1,3}\(|tensor\()?(?:nan|NaN|NAN|-nan)\b"
)
_HELD_OUT = ("val", "eval", "validation", "valid", "test", "dev")  # not what is trained on
_FINITE = rb"['\"]? ?[:=|]? {0,4}'?(?:np\.float\d+\(|tensor\()?[-+]?\d"

SURVIVED = 3  # steps that advance after an event
_LARGE = 100.0
_FACTOR = 5.0
_WINDOW = 10
_LEAST = 5
_ADVANCES = 65_536  # places that are kept before every second is dropped


class Marks:
    """Counts advancing steps; only where somebody waits for them."""

    def __init__(self) -> None:
        self.count = 0
        self._last: dict[int, int] = {}
        self._lost = False

    def lose(self) -> None:
        """Bytes were left out: a number that is seen next proves no advance by itself."""
        self._last.clear()
        self._lost = True

    def scan(self, body: bytes, start: int, end: int, *, until: int) -> None:
        """Counts in `body[start:end]` until `count` is `until`."""
        for found in _MARK.finditer(body, start, end):
            if self.count >= until:
                return
            kind = found.lastindex or 0
            number = int(found[kind])
            if number != self._last.get(kind):
                before = self._last.get(kind)
                if (number > before) if before is not None else not self._lost:
                    self.count += 1
                self._last[kind] = number


class Advances:
    """The bytes at which steps advanced, in bounded memory: then only every n-th is kept."""

    def __init__(self) -> None:
        self._at = array("q")
        self._each = 1
        self._left = 1

    def add(self, offset: int) -> None:
        """A step advanced at `offset`; offsets only grow."""
        self._left -= 1
        if self._left:
            return
        self._at.append(offset)
        if len(self._at) >= _ADVANCES:
            self._at = self._at[1::2]
            self._each *= 2
        self._left = self._each

    def between(self, start: int, end: int) -> int:
        """How many advanced at `start` or later and before `end`."""
        return (bisect_left(self._at, end) - bisect_left(self._at, start)) * self._each


@dataclass(frozen=True, slots=True)
class Spike:
    """A gradient norm far above what it was: its byte, and the value."""

    offset: int
    value: float
    usual: float


class Gradients:
    """Follows printed gradient norms for one that explodes and stays large."""

    def __init__(self) -> None:
        self._window: deque[float] = deque(maxlen=_WINDOW)
        self.spike: Spike | None = None

    def scan(self, body: bytes, base: int) -> None:
        """Reads all norms printed in `body`, which begins at byte `base`."""
        for found in _GRAD.finditer(body):
            if not _GRAD_NAME.search(body, max(0, found.start() - 20), found.start()):
                continue
            value = float(found[1])
            window = self._window
            if self.spike is None and value > _LARGE and len(window) >= _LEAST:
                usual = sum(window) / len(window)
                if value > _FACTOR * usual:
                    self.spike = Spike(base + found.start(), value, usual)
            window.append(value)

    def lasting(self) -> Spike | None:
        """The spike, where norms are large to the end."""
        if self.spike is None or not self._window:
            return None
        mean = sum(self._window) / len(self._window)
        return self.spike if mean > _FACTOR * max(self.spike.usual, 1e-9) else None


def may_be_nan(raw: bytes) -> bool:
    """Whether a piece prints something that is not a number; cheap, and sometimes wrong."""
    return _NAN_RAW.search(raw) is not None


def nan_key(text: str) -> str | None:
    """The metric that `text` prints as not a number; None if it prints none."""
    for found in _NAN.finditer(text):
        before = text[max(0, found.start() - 12) : found.start()].lower().rstrip()
        if not before.endswith(_HELD_OUT) and not found["key"].startswith(_HELD_OUT):
            return found["key"]
    return None


def finite(key: str) -> re.Pattern[bytes]:
    """What finds a number printed under `key`."""
    return re.compile(rb"(?<![\w/])" + re.escape(key.encode()) + _FINITE)
