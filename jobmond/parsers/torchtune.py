"""torchtune: bars whose description holds step and loss, and the disk logger's lines.

Source: torchtune, `training/metric_logging.py`, `recipes/full_finetune_distributed.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis.bars import painted
from jobmond.analysis.literals import number, translated
from jobmond.analysis.segments import spoken
from jobmond.model.metrics import Event, Memory, Record, Segment
from jobmond.model.state import Bucket

CANONICAL: Mapping[str, tuple[str, ...]] = {
    "loss": ("loss",),
    "grad_norm": ("grad_norm",),
    "learning_rate": ("lr",),
}
_DESC = re.compile(r"(?:^|\s)(\d{1,6})\|(\d{1,12})\|Loss: (\S{1,40})$")
_LINE = re.compile(r"^Step (\d{1,12}) \| (\w[\w/]*:\S.*)$")


@registry.parsers.plugin("torchtune")
class Torchtune:
    """A bar counts the steps of an epoch, its description those of the run, so that the last
    step is not in the text.
    """

    name: ClassVar = "torchtune"
    bucket: ClassVar = Bucket.SFT
    own_steps: ClassVar = True
    derived: ClassVar = False
    needles: ClassVar = (b"|Loss: ", b"Step ")
    hints: ClassVar = (b"torchtune",)
    proof: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"\d\|\d+\|Loss: [-\dni]|^Step \d+ \| loss:[-\dni]"
    )
    kept: ClassVar[frozenset[str]] = frozenset()
    pace: ClassVar = None

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        _, text = spoken(segment.raw)
        return _read(text, segment.closed)

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return translated(CANONICAL, metrics)


def _read(text: str, closed: bool) -> Iterator[Event]:
    if (bar := painted(text)) and (desc := _DESC.search(bar.desc)):
        loss = number(desc[3])
        if loss is not None:
            yield Record(int(desc[2]), {"loss": loss})
    elif closed and (line := _LINE.match(text)):
        pairs = [part.partition(":") for part in line[2].split()]
        values = {n: v for n, _, said in pairs if (v := number(said)) is not None}
        if values:
            yield Record(int(line[1]), values)
