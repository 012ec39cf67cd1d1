"""Whether the line that is said to prove a cause stands where it is said to stand."""

from collections.abc import Iterable
from dataclasses import replace

from jobmond.analysis.loglines import clean
from jobmond.analysis.mask import mask
from jobmond.model.observation import LogPart
from jobmond.model.outcome import Diagnosis

_CHARS = 60  # of a line that must be found again
_LEAST = 4


def proved(found: Diagnosis, parts: Iterable[LogPart]) -> Diagnosis:
    """`found` as it is where its line and offset are read again in `parts` and hold what is quoted;
    else without them: a place that is wrong is worse than none.
    """
    if found.line is None or found.first_line is None or found.offset is None:
        return found
    for part in parts:
        if part.line is None or not part.offset <= found.offset < part.offset + len(part.data):
            continue
        at = found.offset - part.offset
        first = part.line + part.data.count(b"\n", 0, at)
        begins = at == 0 or part.data[at - 1 : at] == b"\n"
        if first == found.first_line and begins and _holds(found, part.data[at:]):
            return found
        break
    return replace(found, line=None, first_line=None, offset=None)


def _holds(found: Diagnosis, data: bytes) -> bool:
    """Whether the line that states the cause, counted from where its block begins, is quoted."""
    lines = data.split(b"\n", (found.line or 0) - (found.first_line or 0) + 1)
    nth = (found.line or 0) - (found.first_line or 0)
    if nth >= len(lines):
        return False
    text = _flat(mask(clean(lines[nth].replace(b"\r", b" "))))
    said = [_flat(one) for one in (found.summary, *found.excerpt)]
    return any(len(one) >= _LEAST and one[:_CHARS].rstrip("…") in text for one in said)


def _flat(text: str) -> str:
    return " ".join(text.split())
