"""Hugging Face Trainer, 4 and 5.

Source: transformers 4.57 and 5.24, `trainer_callback.py` (`ProgressCallback`), `trainer.py`.
"""

from typing import ClassVar

from jobmond import registry
from jobmond.analysis.hfdict import TrainerDialect


@registry.parsers.plugin("hf")
class HuggingFace(TrainerDialect):
    """Dictionaries of the Trainer where nothing more special wrote them."""

    name: ClassVar = "hf"
    derived: ClassVar = False
