"""A far side that searches a log and sends windows on it."""

from jobmond.analysis.choosing import choose
from jobmond.analysis.diagnoser import Evidence
from jobmond.analysis.faults.catalogue import FAR_NEEDLES
from jobmond.analysis.scout import NEAR_NEEDLES, Scout
from jobmond.analysis.windows import Limits, spans, window, windowed
from jobmond.model.outcome import Diagnosis

# So narrow that a log of some kilobytes has a head, a middle and a tail.
NARROW = Limits(
    whole_bytes=0, head_bytes=2_000, tail_bytes=12_000, around_bytes=6_000, middle_bytes=120_000
)


def scouted(log: bytes, *, near: bool = True) -> Scout:
    """With `near` as a program on the same machine does it, else as a far side does."""
    scout = Scout()
    if near:
        scout.meet(log[:2_000])
    births = (scout.birth,) if scout.birth else ()
    needles = (*FAR_NEEDLES, *births, *(NEAR_NEEDLES if near else ()))
    offset = 0
    for number, line in enumerate(log.split(b"\n"), 1):
        if any(needle in line for needle in needles) or (
            near and (b"step" in line or b"it]" in line)  # as the needles of dialects do
        ):
            scout.take(line, offset, number)
        offset += len(line) + 1
    return scout


def evidence(log: bytes, limits: Limits = NARROW, *, near: bool = True) -> Evidence:
    scout = scouted(log, near=near)
    parts = [
        window(
            span,
            log[span.start : span.end],
            lines=log.count(b"\n"),
            line_offset=log.rfind(b"\n", 0, span.start) + 1,
        )
        for span in spans(scout, len(log), limits)
    ]
    return windowed(parts, scout)


def diagnosis(log: bytes, limits: Limits = NARROW, *, near: bool = True) -> Diagnosis | None:
    return choose(evidence(log, limits, near=near))
