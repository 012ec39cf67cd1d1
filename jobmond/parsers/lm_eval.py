"""lm-evaluation-harness: an evaluation, whose bars must not be taken for training.

Source: lm_eval 0.4, `__main__.py`, `evaluator.py`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.model.metrics import Event, Memory, Segment
from jobmond.model.state import Bucket


@registry.parsers.plugin("lm-eval")
class LmEval:
    """Its log has no steps; results are in its results file."""

    name: ClassVar = "lm-eval"
    bucket: ClassVar = Bucket.EVAL
    own_steps: ClassVar = True
    derived: ClassVar = False
    needles: ClassVar = (b"lm_eval", b"lm-eval", b"INFO     [")
    hints: ClassVar = (b"lm_eval", b"lm-eval", b"Building contexts for ", b"loglikelihood requests")
    proof: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"INFO +\[(?:_cli\.run|evaluator|evaluator_utils|api\.task|models\.\w+|__main__)"
        rb"(?:\.py)?:\d+\]|lm_eval/\w+\.py|lm_eval\.(?:evaluator|__main__|config)"
    )
    kept: ClassVar[frozenset[str]] = frozenset()
    pace: ClassVar = None

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        return ()

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return {}
