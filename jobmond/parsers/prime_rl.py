"""prime-rl: `Step N | … | Name value | …`, by the trainer and by the orchestrator.

Source: prime-rl, `trainer/rl/train.py`, `orchestrator/orchestrator.py`, `utils/logger.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis.literals import number, translated
from jobmond.analysis.segments import spoken
from jobmond.model.metrics import Event, Memory, Record, Segment
from jobmond.model.state import Bucket

CANONICAL: Mapping[str, tuple[str, ...]] = {
    "reward": ("Reward",),
    "loss": ("Loss",),
    "policy_loss": ("Loss",),
    "entropy": ("Entropy",),
    "grad_norm": ("Grad. Norm",),
    "kl": ("Mismatch KL",),
    "learning_rate": ("LR",),
}
_STEP = re.compile(r"(?:^|\s)Step (\d{1,12}) \|")
_FIELD = re.compile(
    r"^(?P<name>[A-Z][\w. -]{0,60}?)\s+(?P<value>-?[\d.]+(?:e[+-]?\d+)?|-?nan|-?inf)"
)
_LASTS = re.compile(r"^([\d.]+)s$")
_LAST = ("Peak Mem.", "Truncation")


@registry.parsers.plugin("prime-rl")
class PrimeRl:
    """Trainer and orchestrator each say half of a step; together they are one record where both
    write to one log. Memory: `last` the last field of the line before.
    """

    name: ClassVar = "prime-rl"
    bucket: ClassVar = Bucket.RL
    own_steps: ClassVar = True
    derived: ClassVar = False
    needles: ClassVar = (b"Step ",)
    hints: ClassVar = (b"prime_rl", b"prime-rl", b"Mismatch KL")
    proof: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"Step \d+ \|[^\n]*\| (?:Reward [-\dn]|Loss [-\dni][^\n]*\| Grad\. Norm )"
    )
    kept: ClassVar[frozenset[str]] = frozenset()
    pace: ClassVar = ("Step time", 1.0)

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        _, text = spoken(segment.raw)
        said = _STEP.search(text)
        return _read(said, text, segment.closed, memory) if said else ()

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return translated(CANONICAL, metrics)


def _read(said: re.Match[str], text: str, closed: bool, memory: Memory) -> Iterator[Event]:
    values: dict[str, float] = {}
    last = None
    for part in text[said.end() :].split("|"):
        field = _FIELD.match(part.strip())
        lasts = _LASTS.match(part.strip())
        if field is not None:
            last = field["name"]
            values[last] = number(field["value"]) or 0.0
        elif lasts is not None and (seconds := number(lasts[1])) is not None:
            values["Step time"] = seconds
    if last is None or not (closed or last in memory.get("lasts", _LAST)):
        return
    memory["lasts"] = sorted({last, *memory.get("lasts", ())})[:8]
    yield Record(int(said[1]), values)
