"""verl: one line a step, `step:N - key:value - key:value`.

Source: verl 0.9, `utils/logger/aggregate_logger.py` (`concat_dict_to_str`),
`trainer/ppo/ray_trainer.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis.bars import painted
from jobmond.analysis.literals import number, translated
from jobmond.analysis.segments import spoken
from jobmond.model.metrics import (
    Bar,
    Checkpoint,
    Event,
    Finished,
    LifeStart,
    MaxStep,
    Memory,
    Record,
    Resumed,
    Segment,
)
from jobmond.model.state import Bucket

CANONICAL: Mapping[str, tuple[str, ...]] = {
    "reward": ("critic/rewards/mean",),
    "policy_loss": ("actor/pg_loss",),
    "entropy": ("actor/entropy", "actor/entropy_loss"),
    "grad_norm": ("actor/grad_norm", "train/grad_norm"),
    "clip_ratio": ("actor/pg_clipfrac",),
    "importance_ratio": ("rollout_corr/rollout_is_mean", "mismatch/rollout_is_mean"),
    "kl": ("actor/kl_loss", "actor/ppo_kl"),
    "learning_rate": ("actor/lr", "train/lr"),
    "loss": ("train/loss",),
    "eval_loss": ("val/loss",),
    "epoch": ("training/epoch",),
}
_STEP = re.compile(r"(?:^|[\s\]])step:(\d{1,12}) - ")
_BEST = re.compile(r"val-core/.{1,200}/best@(\d{1,6})/mean$")
_TOTAL = re.compile(r"Total training steps: (\d{1,12})")
_RESUMED = re.compile(r"Setting global step to (\d{1,12})")
_SAVED = re.compile(
    r"local_global_step_folder: \S*global_step_(\d{1,12})|"
    r"Saved (?:model|hf_model|optim|extra_state)\b.{0,20} to \S*/global_step_(\d{1,12})/"
)


@registry.parsers.plugin("verl")
class Verl:
    """Memory: `keys` the last key of the step line before (a line that has reached it is whole
    without its newline).
    """

    name: ClassVar = "verl"
    bucket: ClassVar = Bucket.RL
    own_steps: ClassVar = True
    derived: ClassVar = False
    needles: ClassVar = (
        b"step:",
        b"Training Progress",
        b"Total training steps: ",
        b"Setting global step to ",
        b"local_global_step_folder",
        b"/global_step_",
        b"Final validation metrics",
    )
    hints: ClassVar = (
        b"(TaskRunner pid=",
        b"(main_task pid=",
        b"verl.trainer",
        b"verl/trainer",
        b"local_global_step_folder",
    )
    proof: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"(?:^|[\s\]])step:\d+ - (?:[\w./@%-]+(?:\([^()]*\))?:[-\w.()]+(?: - |$))"
    )
    kept: ClassVar[frozenset[str]] = frozenset()
    pace: ClassVar = ("timing_s/step", 1.0)

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        _, text = spoken(segment.raw)
        if step := _STEP.search(text):
            return _record(step, text, segment.closed, memory)
        return _line(text, memory)

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        found = translated(CANONICAL, metrics)
        best = [(int(m[1]), name) for name in metrics if (m := _BEST.match(name))]
        if best:
            found["pass_at_n"] = metrics[max(best)[1]]
        return found


def _record(step: re.Match[str], text: str, closed: bool, memory: Memory) -> Iterator[Event]:
    values: dict[str, float] = {}
    coarse: list[str] = []
    last = None
    for part in text[step.end() :].split(" - "):
        name, colon, said = part.rpartition(":")
        value = number(said) if colon else None
        if value is None:
            continue
        last = name.strip()
        values[last] = value
        if said.strip() in ("0.000", "-0.000"):
            coarse.append(last)
    if not values or not (closed or last == memory.get("last")):
        return
    number_of = int(step[1])
    if number_of == 0 or all(name.startswith("val") for name in values):
        yield Record(number_of, values, kind="eval")
        return
    memory["last"] = last
    yield Record(number_of, values, coarse=tuple(coarse))


def _line(text: str, memory: Memory) -> Iterator[Event]:
    if (bar := painted(text)) and bar.desc.endswith("Training Progress"):
        yield Bar(bar.n, bar.total, bar.elapsed_s, bar.fresh)
    elif total := _TOTAL.search(text):
        memory.clear()
        yield LifeStart()
        yield MaxStep(int(total[1]))
    elif resumed := _RESUMED.search(text):
        yield Resumed(int(resumed[1]))
    elif saved := _SAVED.search(text):
        yield Checkpoint(int(saved[1] or saved[2]))
    elif "Final validation metrics" in text:
        yield Finished()
