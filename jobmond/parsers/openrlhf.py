"""OpenRLHF: `Global step N: {…}`, a dictionary a line.

Source: OpenRLHF, `trainer/ppo_trainer.py`, `trainer/ppo_trainer_async.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis.literals import flat, translated
from jobmond.analysis.segments import spoken
from jobmond.model.metrics import Checkpoint, Event, Memory, Record, Segment
from jobmond.model.state import Bucket

CANONICAL: Mapping[str, tuple[str, ...]] = {
    "reward": ("reward",),
    "policy_loss": ("policy_loss",),
    "entropy": ("entropy_loss",),
    "grad_norm": ("actor_grad_norm",),
    "clip_ratio": ("ppo_clip_ratio",),
    "kl": ("kl",),
    "learning_rate": ("actor_lr",),
}
_STEP = re.compile(r"Global step (\d{1,12}): (?=\{)")
_EVAL = re.compile(r"Evaluation completed in .{1,40}, global_step (\d{1,12}), eval_metrics: (?=\{)")
_SAVED = re.compile(r"global_step(\d{1,12})\b.{0,200}(?:is ready|saved)")


@registry.parsers.plugin("openrlhf")
class OpenRlhf:
    """Its bars count batches of an episode, so the last step is not in the text."""

    name: ClassVar = "openrlhf"
    bucket: ClassVar = Bucket.RL
    own_steps: ClassVar = True
    derived: ClassVar = False
    needles: ClassVar = (b"Global step ", b"Evaluation completed in ", b"global_step")
    hints: ClassVar = (
        b"openrlhf",
        b"ppo_trainer.py:",
        b"ppo_trainer_async.py:",
        b"(PPOTrainer pid=",
    )
    proof: ClassVar[re.Pattern[bytes]] = re.compile(rb"Global step \d+: \{")
    kept: ClassVar[frozenset[str]] = frozenset()
    pace: ClassVar = ("timing/step_total", 1.0)

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        _, text = spoken(segment.raw)
        return _read(text)

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return translated(CANONICAL, metrics)


def _read(text: str) -> Iterator[Event]:
    for kind, pattern in (("train", _STEP), ("eval", _EVAL)):
        for said in pattern.finditer(text):
            found = flat(text, said.end())
            if found is not None:
                yield Record(int(said[1]), found.numbers, kind=kind)
    if saved := _SAVED.search(text):
        yield Checkpoint(int(saved[1]))
