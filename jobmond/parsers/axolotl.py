"""axolotl: a Hugging Face Trainer with memory and throughput beside the loss.

Source: axolotl, `core/trainers/base.py` (`log`).
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis import hfdict
from jobmond.analysis.literals import translated
from jobmond.model.metrics import Event, Memory, Segment
from jobmond.model.state import Bucket


@registry.parsers.plugin("axolotl")
class Axolotl:
    """Its keys may hold spaces and parentheses (`memory/max_active (GiB)`)."""

    name: ClassVar = "axolotl"
    bucket: ClassVar = Bucket.SFT
    own_steps: ClassVar = False
    derived: ClassVar = True
    needles: ClassVar = hfdict.NEEDLES
    hints: ClassVar = (
        *hfdict.HINTS,
        b"[axolotl.",
        b"/axolotl/",
        b"'tokens/train_per_sec_per_gpu'",
        b"'memory/max_active",
    )
    proof: ClassVar[re.Pattern[bytes]] = hfdict.PROOF
    kept: ClassVar = hfdict.KEPT
    pace: ClassVar = None

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        return hfdict.read(segment, memory)

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return translated(hfdict.CANONICAL, metrics)
