"""SkyRL in all its eras, and the MarinSkyRL fork.

A step's numbers come up to four ways: `WANDB_MIRROR` (one JSON line, the fork), a line of
rewards and a one-line status dictionary (full precision, no step), and the console logger's
`Step N:` block (four decimals). Source: SkyRL `train/trainer.py`, `train/utils/tracking.py`;
MarinSkyRL `skyrl_train/trainer.py` (`_log_metrics_stdout`).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis.bars import painted
from jobmond.analysis.literals import flat, number, translated
from jobmond.analysis.segments import spoken
from jobmond.model.metrics import (
    Bar,
    Checkpoint,
    Event,
    Failed,
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
    "reward": ("reward/avg_raw_reward", "loss/avg_final_rewards"),
    "pass_at_n": ("reward/avg_pass_at_*",),
    "policy_loss": ("policy/policy_loss", "policy_loss"),
    "entropy": ("policy/policy_entropy", "policy_entropy"),
    "grad_norm": ("policy/raw_grad_norm", "policy/grad_norm", "raw_grad_norm"),
    "clip_ratio": ("policy/ppo_clip_ratio", "policy/loss_metrics/clip_ratio"),
    "importance_ratio": (
        "policy/tis/imp_ratio_mean",
        "tis/imp_ratio_mean",
        "policy/loss_metrics/is_ratio_mean",
    ),
    "importance_capped_fraction": (
        "policy/tis/imp_ratio_capped_fraction",
        "tis/imp_ratio_capped_fraction",
        "policy/loss_metrics/tis_token_clip_high_ratio",
    ),
    "log_ratio_abs_mean": ("policy/log_ratio_abs_mean",),
    "log_ratio_abs_max": ("policy/log_ratio_abs_max",),
    "kl": ("policy/policy_kl",),
    "learning_rate": ("policy/policy_lr",),
    "epoch": ("trainer/epoch",),
}
_POSITIONS = tuple(f"policy/log_ratio_abs_pos{place:02d}" for place in range(0, 100, 10))

_MIRROR = re.compile(r"WANDB_MIRROR kind=(\w{1,20}) step=(\d{1,12}) metrics=(?=\{)")
_STEP = re.compile(r"(?:^|[\s|-])Step (\d{1,12}):\s*$")
_ITEM = re.compile(r"^[{ ]?'([^']{1,200})': (.*?)(,|\})\s*$")
_REWARDS = re.compile(r"([a-z]\w*/\w+): (-?[\d.]+(?:e[+-]?\d+)?|-?nan|-?inf)(?:,|\s|$)")
_TOTAL = re.compile(r"Total (?:training )?steps: (\d{1,12})")
_RESUMED = re.compile(r"Resuming from global_step: (\d{1,12})")
_SAVED = re.compile(r"Successfully saved checkpoint for global_step_(\d{1,12})\b")
_BARS = ("Training Batches Processed", "Training Step Progress")
_DECODER = json.JSONDecoder(parse_int=float)


@registry.parsers.plugin("skyrl")
class SkyRL:
    """Memory: `status` what was said about the step in the making, `block` the `Step N:` block
    being read (`who`, `step`, `values`, `coarse`), `blocks` whether this life prints them,
    `mirrored` the step and names that the mirror gave, `count` and `base` for a life that prints
    neither block nor mirror.
    """

    name: ClassVar = "skyrl"
    bucket: ClassVar = Bucket.RL
    own_steps: ClassVar = True
    derived: ClassVar = False
    needles: ClassVar = (
        b"WANDB_MIRROR ",
        b"': ",  # a line of a block or of a status dictionary
        b"Step ",
        b"Training ",
        b"steps: ",
        b"global_step",
        b"/avg_",
        b"Started: 'step'",
    )
    hints: ClassVar = (b"skyrl.train", b"skyrl_train", b"skyrl_entrypoint")
    proof: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"WANDB_MIRROR kind=\w+ step=\d|Training (?:Batches Processed|Step Progress):\s+\d+%"
        rb"|skyrl[._]train[^\n]{0,200}Step \d+:"
    )
    kept: ClassVar = frozenset(
        {
            "policy/tis/log_ratio_abs_mean",
            "policy/z_clip/triggered",
            "policy/n_tokens_dp_gt_50pct",
            "loss/avg_raw_advantages_abs",
            *_POSITIONS,
        }
    )
    pace: ClassVar = ("timing/step", 1.0)

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        who, text = spoken(segment.raw)
        if "': " in text and "WANDB_MIRROR" not in text:
            return _dictionary(who, text, memory)
        return _line(who, text, memory)

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return translated(CANONICAL, metrics)


def _line(who: str, text: str, memory: Memory) -> Iterator[Event]:
    if mirror := _MIRROR.search(text):
        yield from _mirror(mirror, text, memory)
        return
    if (bar := painted(text)) and bar.desc.endswith(_BARS):
        yield Bar(bar.n, bar.total, bar.elapsed_s, bar.fresh)
    if step := _STEP.search(text):
        memory["block"] = {"who": who, "step": int(step[1]), "values": {}, "coarse": []}
    elif "Started: 'step'" in text:
        yield from _unblocked(memory)
    elif "reward/avg_" in text:
        _said(text, memory)
    else:
        yield from _lifecycle(text, memory)


def _lifecycle(text: str, memory: Memory) -> Iterator[Event]:
    if total := _TOTAL.search(text):
        memory.clear()
        yield LifeStart()
        yield MaxStep(int(total[1]))
    elif resumed := _RESUMED.search(text):
        memory["base"] = int(resumed[1])
        yield Resumed(int(resumed[1]))
    elif saved := _SAVED.search(text):
        yield Checkpoint(int(saved[1]))
    elif "Training done!" in text or "run is already COMPLETE" in text:
        yield from _unblocked(memory)
        yield Finished()
    elif "Training failed at step" in text:
        yield Failed()


def _mirror(mirror: re.Match[str], text: str, memory: Memory) -> Iterator[Event]:
    kind, step = mirror[1], int(mirror[2])
    if kind not in ("train", "eval"):
        return
    try:
        said, _ = _DECODER.raw_decode(text, mirror.end())
    except (ValueError, RecursionError):
        return
    values = {name: value for name, value in said.items() if type(value) is float}
    if len(values) < len(said):
        values.update(_others(said))
    if kind == "train":
        memory["mirrored"] = [step, list(values)]
    yield Record(step, values, kind=kind)


def _others(said: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    """Truth values, and numbers that were logged as text."""
    for name, value in said.items():
        if isinstance(value, bool):
            yield name, float(value)
        elif isinstance(value, str) and name != "_serialize_error":
            parsed = number(value)
            if parsed is not None:
                yield name, parsed


def _said(text: str, memory: Memory) -> None:
    """`name: value, name: value` in full precision, about the step in the making."""
    status = memory.setdefault("status", {})
    for name, value in _REWARDS.findall(text):
        status[name] = float(value)


def _dictionary(who: str, text: str, memory: Memory) -> Iterator[Event]:
    block = memory.get("block")
    item = _ITEM.match(text)
    if block is not None and item is not None and who == (block["who"] or who):
        block["who"] = who  # a bar at the head of the first line may have hidden it
        _item(item, block)
        if item[3] == "}":
            memory.pop("block")
            memory["blocks"] = True
            yield _merged(block, memory)
    elif (start := text.find("{'final_loss': ")) >= 0 or (start := _status(text)) >= 0:
        found = flat(text, start)
        if found is not None:
            status = memory.setdefault("status", {})
            status.update({f"policy/{name}": value for name, value in found.numbers.items()})
    if (bar := painted(text)) and bar.desc.endswith(_BARS):
        yield Bar(bar.n, bar.total, bar.elapsed_s, bar.fresh)


def _status(text: str) -> int:
    start = text.find(" - {'")
    return start + 3 if start >= 0 and "'policy_loss': " in text else -1


def _item(item: re.Match[str], block: Memory) -> None:
    name, said = item[1], item[2]
    value = number(said)
    if value is None:
        return
    block["values"][name] = value
    if value == 0 and said.startswith("'"):
        block["coarse"].append(name)


def _merged(block: Memory, memory: Memory) -> Record:
    """The block's record; what was said in full precision before wins."""
    values, coarse = block["values"], set(block["coarse"])
    mirrored = memory.get("mirrored")
    exact = set(mirrored[1]) if mirrored and mirrored[0] == block["step"] else set()
    values = {name: value for name, value in values.items() if name not in exact}
    for name, value in memory.pop("status", {}).items():
        bare = name.removeprefix("policy/")
        known = bare if bare in values and name not in values else name
        if known not in exact:
            values[known] = value
            coarse.discard(known)
    return Record(block["step"], values, coarse=tuple(sorted(coarse - exact)))


def _unblocked(memory: Memory) -> Iterator[Event]:
    """The next step begins and no block came: this life logs to a service, and its status lines
    are all there is.
    """
    status = memory.get("status")
    mirrored = memory.get("mirrored")
    if not status or memory.get("blocks") or "policy/policy_loss" not in status:
        return
    memory.pop("status")
    if mirrored:
        return
    memory["count"] = memory.get("count", 0) + 1
    yield Record(memory.get("base", 0) + memory["count"], status)
