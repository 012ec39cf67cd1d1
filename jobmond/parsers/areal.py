"""AReaL: `Train step n/M done.`, then a table of four columns of names and values.

Source: AReaL, `areal/utils/stats_logger.py`, `areal/utils/printing.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis.literals import number, translated
from jobmond.analysis.segments import spoken
from jobmond.model.metrics import Event, MaxStep, Memory, Record, Segment
from jobmond.model.state import Bucket

CANONICAL: Mapping[str, tuple[str, ...]] = {
    "reward": ("ppo_actor/task_reward/avg",),
    "policy_loss": ("ppo_actor/update/actor_loss/avg",),
    "entropy": ("ppo_actor/update/entropy/avg",),
    "grad_norm": ("ppo_actor/update/grad_norm",),
    "clip_ratio": ("ppo_actor/update/clip_ratio/avg",),
    "importance_ratio": ("ppo_actor/update/importance_weight/avg",),
    "learning_rate": ("ppo_actor/update/lr",),
    "kl": ("ppo_actor/update/behave_approx_kl/avg",),
}
_STEP = re.compile(r"Train step (\d{1,12})/(\d{1,12}) done\.")


@registry.parsers.plugin("areal")
class Areal:
    """The table's lower edge makes the record whole. Memory: `step`, `values` of the table
    being read.
    """

    name: ClassVar = "areal"
    bucket: ClassVar = Bucket.RL
    own_steps: ClassVar = True
    derived: ClassVar = False
    needles: ClassVar = (b"Train step ", "│ ".encode(), "╘═".encode())
    hints: ClassVar = (b"(AReaL)", b"areal/", b"StatsLogger INFO")
    proof: ClassVar[re.Pattern[bytes]] = re.compile(rb"Train step \d+/\d+ done\.")
    kept: ClassVar[frozenset[str]] = frozenset()
    pace: ClassVar = ("timeperf/train_step", 1.0)

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        _, text = spoken(segment.raw)
        return _read(text, memory)

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return translated(CANONICAL, metrics)


def _read(text: str, memory: Memory) -> Iterator[Event]:
    if step := _STEP.search(text):
        memory.update(step=int(step[1]), values={})
        yield MaxStep(int(step[2]))
    elif "step" not in memory:
        return
    elif text.lstrip().startswith("│"):
        cells = [cell.strip() for cell in text.split("│")[1:-1]]
        for name, said in zip(cells[::2], cells[1::2], strict=False):
            value = number(said) if name else None
            if value is not None:
                memory["values"][name] = value
    elif text.lstrip().startswith("╘") and memory["values"]:
        yield Record(memory.pop("step"), memory.pop("values"))
