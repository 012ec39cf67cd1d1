"""axolotl: a Hugging Face Trainer with memory and throughput beside the loss.

Source: axolotl, `core/trainers/base.py` (`log`).
"""

from typing import ClassVar

from jobmond import registry
from jobmond.analysis.hfdict import HINTS, TrainerDialect


@registry.parsers.plugin("axolotl")
class Axolotl(TrainerDialect):
    """Its keys may hold spaces and parentheses (`memory/max_active (GiB)`)."""

    name: ClassVar = "axolotl"
    hints: ClassVar = (
        *HINTS,
        b"[axolotl.",
        b"/axolotl/",
        b"'tokens/train_per_sec_per_gpu'",
        b"'memory/max_active",
    )
