"""Hugging Face Trainer, 4 and 5.

Source: transformers 4.57 and 5.24, `trainer_callback.py` (`ProgressCallback`), `trainer.py`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis import hfdict
from jobmond.analysis.literals import translated
from jobmond.model.metrics import Event, Memory, Segment
from jobmond.model.state import Bucket


@registry.parsers.plugin("hf")
class HuggingFace:
    """Dictionaries of the Trainer where nothing more special wrote them."""

    name: ClassVar = "hf"
    bucket: ClassVar = Bucket.SFT
    own_steps: ClassVar = False
    derived: ClassVar = False
    needles: ClassVar = hfdict.NEEDLES
    hints: ClassVar = hfdict.HINTS
    proof: ClassVar[re.Pattern[bytes]] = hfdict.PROOF
    kept: ClassVar = hfdict.KEPT
    pace: ClassVar = None

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        return hfdict.read(segment, memory)

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return translated(hfdict.CANONICAL, metrics)
