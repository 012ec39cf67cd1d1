"""Progress bars as tqdm paints them."""

import re
from typing import NamedTuple

_BAR = re.compile(
    r"(?P<percent>\d{1,3})%\|[^|]{0,400}\|\s*(?P<n>\d{1,12})/(?P<total>\d{1,12})\s*\["
    r"(?:(?P<elapsed>(?:\d{1,5} days?, )?[\d:]{1,12})<(?P<eta>[^,\]]{0,40})"
    r"(?:,\s*(?P<rate>[^\],]{0,40}))?)?"
)
_STEPS = re.compile(r"\s*[\d.?einf]*\s*(?:it/s|s/it|it|s/i|i|s)?$")


class Painted(NamedTuple):
    """One frame: its description, `n` of `total`, and seconds since the bar began.

    `steps` says that its unit is tqdm's own (`it/s`, `s/it`), not examples or bytes, `fresh` that
    nothing was done yet since the bar began. `end` is where in the text the frame is over as far
    as it was read.
    """

    desc: str
    n: int
    total: int
    elapsed_s: float | None
    steps: bool
    fresh: bool
    end: int


def painted(text: str) -> Painted | None:
    """The last bar in a segment; None without one. A frame cut inside its numbers is none."""
    if "%|" not in text:
        return None
    frames = list(_BAR.finditer(text))
    if not frames:
        return None
    last = frames[-1]
    desc = text[: last.start()].strip().removesuffix(":").strip()
    return Painted(
        desc=desc,
        n=int(last["n"]),
        total=int(last["total"]),
        elapsed_s=_seconds(last["elapsed"]),
        steps=_STEPS.match(last["rate"] or "") is not None,
        fresh=last["eta"] == "?",
        end=last.end(),
    )


def _seconds(text: str | None) -> float | None:
    if not text:
        return None
    days, _, clock = text.rpartition(" ")
    seconds = 0.0
    for part in clock.split(":"):
        if not part:
            return None
        seconds = seconds * 60 + int(part)
    return seconds + (86400.0 * int(days.split()[0]) if days else 0.0)
