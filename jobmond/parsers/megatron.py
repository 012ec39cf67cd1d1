"""Megatron-LM and what keeps its training log (Megatron-DeepSpeed, NeMo's Megatron).

Source: Megatron-LM, `megatron/training/training.py` (`training_log`), `checkpointing.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis.literals import number, translated
from jobmond.analysis.segments import spoken
from jobmond.model.metrics import (
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
    "loss": ("lm loss",),
    "eval_loss": ("validation lm loss",),
    "grad_norm": ("grad norm",),
    "learning_rate": ("learning rate",),
}
_ITERATION = re.compile(r"iteration\s+(\d{1,12})/\s*(\d{1,12}) \|")
_VALIDATION = re.compile(r"validation loss at iteration (\d{1,12})[^|]{0,200}\|")
_SAVED = re.compile(r"successfully saved checkpoint (?:from|at) iteration\s+(\d{1,12})")
_LOADED = re.compile(r"successfully loaded checkpoint from .{1,1000} at iteration (\d{1,12})")
_LAST = "number of nan iterations"


@registry.parsers.plugin("megatron")
class Megatron:
    """Memory: `last` the last field of the line before, which says where a line is whole."""

    name: ClassVar = "megatron"
    bucket: ClassVar = Bucket.SFT
    own_steps: ClassVar = True
    derived: ClassVar = False
    needles: ClassVar = (
        b"iteration ",
        b"[after megatron is initialized]",
        b"[after training is done]",
        b"successfully saved checkpoint",
        b"successfully loaded checkpoint",
        b"validation loss at ",
    )
    hints: ClassVar = (
        b"megatron is initialized",
        b"> building train, validation",
        b"using world size: ",
        b"initialized tensor model parallel",
    )
    proof: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"iteration\s+\d+/\s*\d+ \| (?:consumed samples|elapsed time)"
    )
    kept: ClassVar = frozenset({"number of skipped iterations", "number of nan iterations"})
    pace: ClassVar = ("elapsed time per iteration (ms)", 1e-3)

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        _, text = spoken(segment.raw)
        if iteration := _ITERATION.search(text):
            return _record(iteration, text, segment.closed, memory)
        return _line(text, memory)

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return translated(CANONICAL, metrics)


def _record(iteration: re.Match[str], text: str, closed: bool, memory: Memory) -> Iterator[Event]:
    *parts, rest = text[iteration.end() :].split("|")
    values = _fields(parts)
    last = next(reversed(values), None)
    whole = last in (_LAST, memory.get("last")) or closed
    if last is None or not whole or (rest.strip() and not closed):
        return
    memory["last"] = last
    yield MaxStep(int(iteration[2]))
    yield Record(int(iteration[1]), values)


def _fields(parts: Iterable[str]) -> dict[str, float]:
    values: dict[str, float] = {}
    for part in parts:
        name, colon, said = part.rpartition(":")
        value = number(said) if colon else None
        if value is not None:
            values[name.strip()] = value
    return values


def _line(text: str, memory: Memory) -> Iterator[Event]:
    if "[after megatron is initialized]" in text:
        memory.clear()
        yield LifeStart()
    elif "[after training is done]" in text:
        yield Finished()
    elif saved := _SAVED.search(text):
        yield Checkpoint(int(saved[1]))
    elif loaded := _LOADED.search(text):
        yield Resumed(int(loaded[1]))
    elif validation := _VALIDATION.search(text):
        values = _fields(text[validation.end() :].split("|"))
        if "lm loss value" in values:
            metrics = {"validation lm loss": values["lm loss value"]}
            yield Record(int(validation[1]), metrics, kind="eval")
