"""What a run is tried with: the part of it that may be new."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Setting:
    """How a run was launched; None or absent where nobody says.

    `submit` is its submit line without what differs from launch to launch, `script` the batch
    script or command line. `nodes` and `gpus` are totals. `named` holds what labels name (`model`,
    `image`, `config`, `commit`), `smoke` the run that is a smoke test, which is always new.
    """

    submit: str | None = None
    script: str | None = None
    nodes: int | None = None
    gpus: int | None = None
    named: Mapping[str, str] = field(default_factory=dict)
    smoke: str | None = None
