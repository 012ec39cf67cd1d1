"""Banked steps: which checkpoints of a run are complete, from what lies in its folders.

A folder of a checkpoint that is being written looks like any other; what its trainer writes last
decides. Sources: SkyRL `trainer.py` (`latest_ckpt_global_step.txt` last), verl
`ray_trainer.py` (`latest_checkpointed_iteration.txt`, not with async saves), NeMo-RL (renames
`tmp_step_N`), prime-rl (`STABLE`), transformers `trainer.py` (`trainer_state.json`), Megatron-LM
`checkpointing.py`, AReaL `saver.py` (counts from 0), OpenRLHF.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jobmond.model.state import Bucket
from jobmond.model.trials import Place

LATEST = ("latest_ckpt_global_step.txt", "latest_checkpointed_iteration.txt")
# Folders in which steps are no proof: what they hold is written for others, or comes and goes.
NOT_BANKED = frozenset(
    {"exports", "broadcasts", "rollouts", "dumped_evals", "dumped_data", "logs", "trace_jobs"}
)


@dataclass(frozen=True, slots=True)
class _Layout:
    """How one family of trainers names a checkpoint and what shows that it is complete."""

    name: re.Pattern[str]
    marks: tuple[str, ...] = ()
    shift: int = 0  # added to the number in the name: some count from 0


_LAYOUTS = (
    _Layout(re.compile(r"global_step_(\d{1,12})"), ("trainer_state.pt", "data.pt")),
    _Layout(re.compile(r"checkpoint-(\d{1,12})"), ("trainer_state.json",)),
    _Layout(re.compile(r"iter_(\d{1,12})")),
    _Layout(re.compile(r"step_(\d{1,12})"), ("STABLE", "training_info.json")),
    _Layout(re.compile(r"epoch\d+epochstep\d+globalstep(\d{1,12})"), ("config.json",), shift=1),
    _Layout(re.compile(r"(?:best_)?global_step(\d{1,12})")),
)


@dataclass(frozen=True, slots=True)
class Banked:
    """Steps with a complete checkpoint and steps whose checkpoint is not (or not provably)
    complete, ascending. `paths` are where the complete ones are.
    """

    complete: tuple[int, ...] = ()
    unfinished: tuple[int, ...] = ()
    dialect: str = "unknown"
    bucket: Bucket = Bucket.OTHER
    paths: Mapping[int, str] = field(default_factory=dict)

    @property
    def step(self) -> int | None:
        """The highest complete one."""
        return self.complete[-1] if self.complete else None


def is_step(name: str) -> bool:
    """Whether a folder is called like a checkpoint."""
    return any(layout.name.fullmatch(name) for layout in _LAYOUTS)


def banked(places: Iterable[Place]) -> Banked:
    """What is banked in all the places a launcher may have written to."""
    complete: dict[int, str] = {}
    seen: set[int] = set()
    dialect, bucket = "unknown", Bucket.OTHER
    for place in places:
        if NOT_BANKED & set(place.path.split("/")):
            continue
        found = [pair for layout in _LAYOUTS for pair in _of(layout, place)]
        if found and dialect == "unknown":
            dialect, bucket = _family(place)
        for step, name, whole in found:
            seen.add(step)
            if whole:
                complete[step] = "/".join(filter(None, (place.path, name)))
    return Banked(
        tuple(sorted(complete)), tuple(sorted(seen - complete.keys())), dialect, bucket, complete
    )


def _of(layout: _Layout, place: Place) -> list[tuple[int, str, bool]]:
    """Step, folder and whether it is complete, of one layout in one place."""
    numbered = {
        name: int(found[1]) for name in place.steps if (found := layout.name.fullmatch(name))
    }
    if not numbered:
        return []
    marks = [mark for mark in layout.marks if any(mark in place.steps[name] for name in numbered)]
    if marks[:1] == ["STABLE"]:
        marks = ["STABLE"]
    newest = max(numbered.values())
    return [
        (number + layout.shift, name, _whole(place, name, number, marks, newest))
        for name, number in numbered.items()
    ]


def _whole(place: Place, name: str, number: int, marks: Sequence[str], newest: int) -> bool:
    """Its tracker file and its marks say so; without either only an older one counts, because
    the newest may be being written.
    """
    if place.latest is not None and number > place.latest:
        return False
    if marks:
        return all(mark in place.steps[name] for mark in marks)
    return bool(place.steps[name]) and (place.latest is not None or number < newest)


# The trainer by what its folders are called or hold, the most telling first.
_FAMILIES = (
    (re.compile(r"latest_ckpt_global_step\.txt|trainer_state\.pt"), "skyrl", Bucket.RL),
    (re.compile(r"epochstep\d"), "areal", Bucket.RL),
    (re.compile(r"checkpoint-\d"), "hf", Bucket.SFT),
    (re.compile(r"\biter_\d"), "megatron", Bucket.SFT),
    (re.compile(r"global_step_\d"), "verl", Bucket.RL),
    (re.compile(r"global_step\d"), "openrlhf", Bucket.RL),
    (re.compile(r"\bSTABLE\b|\btrainer\b"), "prime-rl", Bucket.RL),
    (re.compile(r"training_info\.json"), "nemo-rl", Bucket.RL),
)


def _family(place: Place) -> tuple[str, Bucket]:
    names = " ".join(sorted({*place.names, *place.steps}.union(*place.steps.values())))
    for shape, dialect, bucket in _FAMILIES:
        if shape.search(names):
            return dialect, bucket
    return "torchtune", Bucket.SFT


def tracked_step(text: str) -> int | None:
    """What a tracker file says; `release` and torn text are no step."""
    found = re.match(r"\s*(\d{1,12})\s*$", text)
    return int(found[1]) if found else None
