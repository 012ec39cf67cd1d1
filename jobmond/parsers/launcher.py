"""The output file of the experiment launcher: NeMo-Run, and ModelOpt's `launch.py` on top of it.

Source: nemo_run 0.11, `run/experiment.py`, `run/torchx_backend/launcher.py`; torchx 0.7; ModelOpt's
`tools/launcher`. Runs of them in every state are stored with the tests.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis.launcher import launched
from jobmond.analysis.launcher_lines import NEEDLES, take
from jobmond.model.metrics import Event, Failed, Finished, Memory, Segment
from jobmond.model.state import Bucket


@registry.parsers.plugin("launcher")
class Launcher:
    """Calibration is no training: such a file has no steps, and events of its own.

    Memory: see `jobmond.analysis.launcher_lines`.
    """

    name: ClassVar = "launcher"
    bucket: ClassVar = Bucket.OTHER
    own_steps: ClassVar = True
    derived: ClassVar = False
    needles: ClassVar = NEEDLES
    hints: ClassVar = (
        b"Configuring global options",
        b"Launching launch...",
        b"/nemo_run/",
        b"/experiments/cicd/cicd_",
        b"SlurmConfig(",
        b"Version Report",
    )
    proof: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"Entering Experiment \S{1,80} with id: \S|^\s*slurm(?:_tunnel)?://nemo_run/\d"
        rb"|^Experiment Status for \S|^job \S{1,200} task \d+ slurm_config: "
        rb"|^Dry run for task __main__:launch"
    )
    kept: ClassVar[frozenset[str]] = frozenset()
    pace: ClassVar = None

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        before = launched(memory).phase
        take(segment, memory)
        after = launched(memory).phase
        if after != before and after == "done":
            yield Finished()
        elif after != before and after == "failed":
            yield Failed()

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        return {}
