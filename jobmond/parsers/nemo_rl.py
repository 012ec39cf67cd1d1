"""NeMo-RL: a block a step, `===== Step n/M =====` and lines of `• Name: value`.

Source: NeMo-RL, `nemo_rl/algorithms/grpo.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis.literals import number, translated
from jobmond.analysis.segments import spoken
from jobmond.model.metrics import Event, Finished, MaxStep, Memory, Record, Segment
from jobmond.model.state import Bucket

CANONICAL: Mapping[str, tuple[str, ...]] = {
    "reward": ("Avg Reward", "Avg Total Reward", "Avg Filtered Reward"),
    "loss": ("Loss",),
    "policy_loss": ("Loss",),
    "kl": ("Generation KL Error",),
}
_STEP = re.compile(r"={10,} Step (\d{1,12})/(\d{1,12}) ={10,}")
_FIELD = re.compile(r"^\s*• ([\w .()/-]{1,80}): (-?[\d.]+(?:e[+-]?\d+)?|-?nan|-?inf)")
_TIME = "Total step time"


@registry.parsers.plugin("nemo-rl")
class NemoRl:
    """A step's block is whole when its step time is said. Memory: `step`, `values` of the block
    being read. Entropy and gradient norm are not printed.
    """

    name: ClassVar = "nemo-rl"
    bucket: ClassVar = Bucket.RL
    own_steps: ClassVar = True
    derived: ClassVar = False
    needles: ClassVar = (
        b"==== Step ",
        "• ".encode(),
        b"stopping training early",
    )
    hints: ClassVar = (b"nemo_rl", b"Generation KL Error", b"Training policy...")
    proof: ClassVar[re.Pattern[bytes]] = re.compile(rb"={25} Step \d+/\d+ ={25}")
    kept: ClassVar[frozenset[str]] = frozenset()
    pace: ClassVar = (_TIME, 1.0)

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        _, text = spoken(segment.raw)
        return _read(text, segment.closed, memory)

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return translated(CANONICAL, metrics)


def _read(text: str, closed: bool, memory: Memory) -> Iterator[Event]:
    if step := _STEP.search(text):
        memory.update(step=int(step[1]), values={})
        yield MaxStep(int(step[2]))
    elif "Max number of steps has been reached" in text:
        yield Finished()
    elif "step" in memory and (field := _FIELD.match(text)):
        whole = closed or text[field.end() :].startswith("s")
        value = number(field[2])
        if not whole or value is None:
            return
        memory["values"][field[1]] = value
        if field[1] == _TIME:
            yield Record(memory.pop("step"), memory.pop("values"))
