"""What the files that a job leaves beside its log prove: trials, engine, traces, completion."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial with a readable result.

    `reward` is None where there is none; `scored` says whether the mean of its harness counts it.
    `exception` is a type's name: an exception and a reward together are normal. `turns` counts as
    `turns_source` says. `duration_s` is taken inside the one file, whose clock may be any.
    """

    name: str
    reward: float | None = None
    scored: bool = True
    exception: str | None = None
    turns: int | None = None
    turns_source: str | None = None
    output_tokens: int | None = None
    duration_s: float | None = None

    def instant(self, within_s: float) -> bool:
        """Over at once and without a token: the agent never reached its engine."""
        quick = self.duration_s is not None and self.duration_s <= within_s
        return quick and not self.output_tokens


@dataclass(frozen=True, slots=True)
class Trials:
    """A tree of trials as one look found it.

    `done` are trials with a readable result, `passed` those of them with a reward above 0,
    `exceptions` maps types to numbers of trials. `mean_reward_basis` says over what:
    `all-trials` (no reward counts as 0), `scored-trials`, or `harness` (its own metric).
    `turns_source` is `episodes`, `agent-steps` or `episode-folders`. `finished` is true where
    every job of the tree says that it ended. `last_result_at` is when the newest result was
    written, None before the first. `recent` are the last hundred trials, newest last. `whole` is
    false where results are there that were not read yet: counts are then lower bounds. `model`
    and `benchmark` are those of its one evaluation, None where it has several.
    """

    done: int
    total: int | None = None
    running: int = 0
    passed: int = 0
    errored: int = 0
    exceptions: Mapping[str, int] = field(default_factory=dict)
    mean_reward: float | None = None
    mean_reward_basis: str | None = None
    avg_turns: float | None = None
    turns_source: str | None = None
    turns_of: int = 0
    chunks_done: int | None = None
    chunks_total: int | None = None
    jobs_running: int = 0
    finished: bool = False
    last_result_at: datetime | None = None
    recent: tuple[Trial, ...] = ()
    whole: bool = True
    model: str | None = None
    benchmark: str | None = None

    @property
    def pass_rate(self) -> float | None:
        """Reward above 0, of those done."""
        return self.passed / self.done if self.done else None

    @property
    def exception_fraction(self) -> float | None:
        """With an exception, of those done."""
        return self.errored / self.done if self.done else None

    @property
    def top_exception(self) -> str | None:
        """The most frequent type; of several the first by name."""
        return min(self.exceptions, key=lambda n: (-self.exceptions[n], n), default=None)

    @property
    def all_done(self) -> bool:
        """Every trial that was asked for has a result."""
        return self.total is not None and 0 < self.total <= self.done


@dataclass(frozen=True, slots=True)
class Engine:
    """What a current window of the engine's log says.

    `idle_s` is how long it has reported no running request, up to its newest line (0 where it
    has some); None without such a line. `answered` and `refused` count POSTs in the window by
    whether the answer was 200.
    """

    idle_s: float | None = None
    answered: int = 0
    refused: int = 0
    answered_after_idle: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """What a trainer's own record says of a run that ended (`trainer_state.json` or
    `trainer_log.jsonl`).
    """

    last_step: int | None
    total: int | None
    nan_ranks: int = 0


@dataclass(frozen=True, slots=True)
class TreeAsk:
    """One tree of trials to look at: an absolute folder at the far side that is a job of trials,
    or holds some up to three levels below. Of `others` the first that is there is looked at where
    `path` is not. `memory` is what the last look left (`TreeNews`), None for the first.
    """

    native_id: str
    path: str
    others: tuple[str, ...] = ()
    memory: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TreeNews:
    """What a look found at `path`. `memory` is to be kept for the next one: plain JSON values."""

    path: str
    trials: Trials
    memory: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OutputAsk:
    """Folders at the far side to look for `want` in: `b`anked steps, a trainer's own record of its
    `c`ompletion, `s`cores. `named` are those that are surely the job's.
    """

    native_id: str
    want: str
    paths: tuple[str, ...]
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that may hold checkpoints. `path` may be relative to the run's.

    `steps` maps names of folders to what lies in them, `latest` is what its tracker file says.
    """

    path: str
    steps: Mapping[str, frozenset[str]]
    latest: int | None = None
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a look at folders gave. `scores` in per cent, by benchmark."""

    places: tuple[Place, ...] = ()
    completion: Completion | None = None
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bank:
    """Steps with a complete checkpoint on disk, ascending, and those that are not (provably)
    complete. `folder` holds the highest one, `folders` are surely the job's. `error` says why the
    newest look failed.
    """

    step: int | None = None
    steps: tuple[int, ...] = ()
    unfinished: tuple[int, ...] = ()
    folder: str | None = None
    folders: tuple[str, ...] = ()
    read_at: datetime | None = None
    error: str | None = None

    @property
    def newest(self) -> int | None:
        """The highest step that was seen, complete or not."""
        return max((*self.steps, *self.unfinished), default=None)


@dataclass(frozen=True, slots=True)
class Work:
    """What a job of trials has done, as the last look that succeeded found it.

    `tree` is where its trials are; `trials` without its recent ones, of which `recent_done` and
    `recent_passed` are kept. `exported` are rows of traces that its log says were uploaded.
    `bank` is what lies in its checkpoint folders, `scores` what its results say (per cent).
    `infra` maps checks (`tunnel api_base engine trials`) to whether they hold, None where that
    cannot be told. `error` says why the newest look failed.
    """

    tree: str | None = None
    trials: Trials | None = None
    recent_done: int = 0
    recent_passed: int = 0
    engine: Engine | None = None
    exported: int | None = None
    infra: Mapping[str, bool | None] = field(default_factory=dict)
    trend: str | None = None
    read_at: datetime | None = None
    error: str | None = None
    bank: Bank | None = None
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Remains:
    """Whether a folder is there, and the file system that it is (or would be) on: free inodes and
    where it is mounted, None where that was not told.
    """

    there: bool
    inodes_free: int | None = None
    mount: str | None = None
