"""The log of a Hugging Face Trainer and of everything built on it: bars without a description,
dictionaries without a step.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from jobmond.analysis.bars import Painted, painted
from jobmond.analysis.literals import Flat, flat, translated
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

NEEDLES = (
    b"': ",
    b"%|",
    b"}",
    b"***** Running training *****",
    b"Total optimization steps = ",
    b" global step ",
    b"Saving model checkpoint to ",
    b"Training completed. Do not forget",
)
HINTS = (
    b"[transformers]",
    b"/transformers/",
    b"Loading weights: ",
    b"Loading checkpoint shards: ",
    b"***** Running training *****",
)
PROOF = re.compile(rb"\{'(?:loss|eval_loss|train_runtime)': ")
CANONICAL: Mapping[str, tuple[str, ...]] = {
    "loss": ("loss",),
    "eval_loss": ("eval_loss",),
    "grad_norm": ("grad_norm",),
    "learning_rate": ("learning_rate",),
    "epoch": ("epoch",),
}
KEPT = frozenset({"loss_nan_ranks", "reward_std", "frac_reward_zero_std"})

_MARKS = ("'loss'", "'eval_", "'train_runtime'", "'reward")
_TOTAL = re.compile(r"Total optimization steps = ([\d,]{1,16})")
_RESUMED = re.compile(r"(?:Continuing|Resuming) training from .{0,80}?global step (\d{1,12})")
_SAVED = re.compile(r"Saving model checkpoint to \S*?checkpoint-(\d{1,12})(?!\S*checkpoint-)")
_GOES_ON = re.compile(r"^\s*\d{1,3}%\||\{'(?:loss|train_runtime)': |Training completed\. Do not")
# What a shell says on the line of the bar.
_KILLED = re.compile(
    r"\](?:Terminated|Killed|Aborted|Segmentation fault|Bus error)(?: \(core dumped\))?\s*$"
)
_HEAD_CHARS = 65_536


def read(segment: Segment, memory: Memory) -> Iterator[Event]:
    """The events of one segment.

    Memory: `total` the training bar's last step, `sure` whether a banner said so, `full` whether
    that bar was seen at its end, `records` how many since it began, `head` a dictionary whose
    rest comes later because standard output is written in blocks.
    """
    _, text = spoken(segment.raw)
    if "saving" in memory and _GOES_ON.search(text):
        yield Checkpoint(memory.pop("saving"))
    yield from _banner(text, segment.closed, memory)
    bar = painted(text)
    if bar is not None:
        yield from _bar(bar, memory)
        if _KILLED.match(text, bar.end):
            yield Failed()
    yield from _dicts(text, segment.closed, memory)


def _banner(text: str, closed: bool, memory: Memory) -> Iterator[Event]:
    if "***** Running training *****" in text:
        memory.clear()
        yield LifeStart()
    elif (total := _TOTAL.search(text)) and (steps := total[1].replace(",", "")):
        memory.update(total=int(steps), sure=True)
        yield MaxStep(int(steps))
    elif resumed := _RESUMED.search(text):
        yield Resumed(int(resumed[1]))
    elif closed and (saved := _SAVED.search(text)):
        memory["saving"] = int(saved[1])
    elif "Training completed. Do not forget" in text:
        yield Finished()


def _bar(bar: Painted, memory: Memory) -> Iterator[Event]:
    """Bars of evaluation look the same but for their total; the training bar comes first."""
    if bar.desc or not bar.steps or not bar.total:
        return
    total = memory.get("total")
    alone = not memory.get("sure") and memory.get("full") and not memory.get("records")
    if total is None or (total != bar.total and alone and bar.n == 0):
        total = memory["total"] = bar.total
    if bar.total != total:
        return
    if bar.n == 0:
        memory.update(records=0, full=False)
    memory["full"] = bar.n == bar.total
    yield Bar(bar.n, bar.total, bar.elapsed_s, bar.fresh)


def _dicts(text: str, closed: bool, memory: Memory) -> Iterator[Event]:
    """Every record in a segment; the head of one that is torn is kept until its rest comes."""
    at, torn = 0, memory.get("head")
    while (start := text.find("{'", at)) >= 0:
        found = flat(text, start)
        if found is None:
            break
        on_bar = "%|" in text[:start]
        yield from _record(found, text[start : found.end], memory, on_bar=on_bar)
        torn, at = None, found.end
    if not closed:
        return
    if start >= 0 and any(mark in text[start : start + 200] for mark in _MARKS):
        memory["head"] = text[start : start + _HEAD_CHARS]
    elif torn is None:
        memory.pop("head", None)
    elif start < 0 and "}" in text and "%|" not in text:
        memory.pop("head", None)
        whole = flat(torn + text, 0)
        if whole is not None:
            yield from _record(whole, torn + text, memory)


def _record(found: Flat, said: str, memory: Memory, *, on_bar: bool = False) -> Iterator[Event]:
    if not any(mark in said for mark in _MARKS):
        return
    numbers = found.numbers
    if "train_runtime" in numbers:
        yield Record(None, numbers, kind="end")
        yield Finished()
    elif "loss" in numbers:
        memory["records"] = memory.get("records", 0) + 1
        yield Record(None, numbers, on_bar=on_bar)
    elif any(name.startswith("eval_") for name in numbers):
        yield Record(None, numbers, kind="eval")


class TrainerDialect:
    """A log of Hugging Face's Trainer; dialects built on it add hints and canonical names."""

    name: ClassVar[str]
    bucket: ClassVar = Bucket.SFT
    own_steps: ClassVar = False
    derived: ClassVar[bool] = True
    needles: ClassVar = NEEDLES
    hints: ClassVar[tuple[bytes, ...]] = HINTS
    proof: ClassVar[re.Pattern[bytes]] = PROOF
    kept: ClassVar = KEPT
    pace: ClassVar = None

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        """See `MetricParser`."""
        return read(segment, memory)

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        """See `MetricParser`."""
        return translated(CANONICAL, metrics)
