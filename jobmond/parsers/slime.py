"""slime: `step N: {…}` for training, `rollout N: {…}` for what was generated for it.

Source: slime, `backends/megatron_utils/model.py`, `observability/rollout_metrics.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis.literals import flat, translated
from jobmond.analysis.segments import spoken
from jobmond.model.metrics import Event, Memory, Record, Segment
from jobmond.model.state import Bucket

CANONICAL: Mapping[str, tuple[str, ...]] = {
    "reward": ("rollout/raw_reward",),
    "pass_at_n": ("passrate/pass@*",),
    "policy_loss": ("train/pg_loss",),
    "entropy": ("train/entropy_loss",),
    "grad_norm": ("train/grad_norm",),
    "clip_ratio": ("train/pg_clipfrac",),
    "importance_ratio": ("train/tis",),
    "kl": ("train/kl_loss", "train/ppo_kl"),
    "loss": ("train/loss",),
}
_SAID = re.compile(r"\b(step|rollout|eval|perf|passrate) (\d{1,12}): (?=\{')")


@registry.parsers.plugin("slime")
class Slime:
    """A rollout may be trained on in several steps, so its number is not a step: what it says
    goes with the step before it. Memory: `step` that step.
    """

    name: ClassVar = "slime"
    bucket: ClassVar = Bucket.RL
    own_steps: ClassVar = True
    derived: ClassVar = False
    needles: ClassVar = (b": {'",)
    hints: ClassVar = (b"slime/", b"MegatronTrainRayActor", b"slime.")
    proof: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"\b(?:step \d+: \{'train/|rollout \d+: \{'rollout/)"
    )
    kept: ClassVar[frozenset[str]] = frozenset()
    pace: ClassVar = ("perf/step_time", 1.0)

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        _, text = spoken(segment.raw)
        return _read(text, memory)

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return translated(CANONICAL, metrics)


def _read(text: str, memory: Memory) -> Iterator[Event]:
    for said in _SAID.finditer(text):
        found = flat(text, said.end())
        if found is None:
            continue
        if said[1] == "step":
            memory["step"] = int(said[2])
            yield Record(int(said[2]), found.numbers)
        else:
            yield Record(memory.get("step"), found.numbers, kind="eval")
