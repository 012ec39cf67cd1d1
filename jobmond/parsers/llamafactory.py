"""LLaMA-Factory: a Hugging Face Trainer under its own launcher.

Source: LLaMA-Factory 0.9.5, `train/sft/`, `train/callbacks.py`; the OpenThoughts-Agent fork adds
`loss_rank_avg`, `loss_nan_ranks`, `valid_targets_min` and `valid_targets_mean`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis import hfdict
from jobmond.analysis.literals import translated
from jobmond.model.metrics import Event, Memory, Segment
from jobmond.model.state import Bucket


@registry.parsers.plugin("llamafactory")
class LlamaFactory:
    """Its web interface prints each record again, rounded and without the gradient's norm."""

    name: ClassVar = "llamafactory"
    bucket: ClassVar = Bucket.SFT
    own_steps: ClassVar = False
    derived: ClassVar = True
    needles: ClassVar = hfdict.NEEDLES
    hints: ClassVar = (
        *hfdict.HINTS,
        b" llamafactory.",
        b"llamafactory-cli",
        b"/llamafactory/",
        b"'loss_nan_ranks'",
    )
    proof: ClassVar[re.Pattern[bytes]] = hfdict.PROOF
    kept: ClassVar = hfdict.KEPT
    pace: ClassVar = None

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        return hfdict.read(segment, memory)

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return translated(hfdict.CANONICAL, metrics)
