"""LLaMA-Factory: a Hugging Face Trainer under its own launcher.

Source: LLaMA-Factory 0.9.5, `train/sft/`, `train/callbacks.py`; the OpenThoughts-Agent fork adds
`loss_rank_avg`, `loss_nan_ranks`, `valid_targets_min` and `valid_targets_mean`.
"""

from typing import ClassVar

from jobmond import registry
from jobmond.analysis.hfdict import HINTS, TrainerDialect


@registry.parsers.plugin("llamafactory")
class LlamaFactory(TrainerDialect):
    """Its web interface prints each record again, rounded and without the gradient's norm."""

    name: ClassVar = "llamafactory"
    hints: ClassVar = (
        *HINTS,
        b" llamafactory.",
        b"llamafactory-cli",
        b"/llamafactory/",
        b"'loss_nan_ranks'",
    )
