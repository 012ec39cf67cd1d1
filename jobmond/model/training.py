"""What a job's log says about its training, and where the reading of it stands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jobmond.model.state import Bucket


@dataclass(frozen=True, slots=True)
class Training:
    """A log's training as the last look found it.

    `dialect` is None where no trainer's log was recognised (the numbers are then empty). `phase`
    is one of `bring-up training finishing done failed`. `metrics` holds the last values under the
    trainer's names and the canonical ones. `log_life` counts the starts that the run's logs show.
    `checkpoints` are the last steps that the text proves saved, ascending. `values` are the last
    ones of what leads (the reward, or the loss), the newest last, `grad_norms` likewise;
    `first_step` is the first one logged in this life, `before_step` the step at the look before
    (None in a new life). `stepped_at` is when
    a sweep first saw `step`, `began_at` when one first saw this life of the log; `behind_bytes`
    of the log were not read yet.
    """

    dialect: str | None = None
    bucket: Bucket = Bucket.OTHER
    phase: str = "bring-up"
    step: int | None = None
    max_step: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    rate_s_per_step: float | None = None
    eta_s: float | None = None
    log_life: int = 1
    resumed_from: int | None = None
    records: int = 0
    checkpoints: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    grad_norms: tuple[float, ...] = ()
    first_step: int | None = None
    before_step: int | None = None
    stepped_at: datetime | None = None
    began_at: datetime | None = None
    behind_bytes: int = 0
    trend: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where the reading of one log stands.

    `path` is the log, `place` what its source goes on from (None: its beginning), `needles` what
    a segment must hold to matter to the reading.
    """

    path: str
    place: Mapping[str, Any] | None
    needles: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A reading that was put down, as `analysis.bookmark.packed` makes it."""

    at: Place
    reading: bytes
