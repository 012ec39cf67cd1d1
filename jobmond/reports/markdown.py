"""Text of jobs inside Markdown and front matter, which it can neither leave nor break."""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from jobmond.analysis.mask import mask
from jobmond.analysis.visible import visible


def yaml_value(value: object) -> str:
    """A JSON value that is a YAML value as well: no character is left that YAML would refuse."""
    if isinstance(value, str):
        value = visible(mask(value))
    return json.dumps(value, ensure_ascii=False)


def time(at: datetime | None) -> str | None:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else None


def span(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}"


def code(text: str) -> str:
    """`text` in a code span that it cannot leave, on one line."""
    shown = visible(mask(text)).strip() or "(empty)"
    ticks = "`" * (_longest_ticks((shown,)) + 1)
    pad = " " if "`" in shown else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fence(lines: Sequence[str]) -> list[str]:
    """`lines` in a code block that they cannot leave."""
    shown = mask("\n".join(visible(line, keep="\t") for line in lines)).split("\n")
    ticks = "`" * max(3, _longest_ticks(shown) + 1)
    return [ticks + "text", *shown, ticks]


def _longest_ticks(lines: Iterable[str]) -> int:
    return max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
