"""What a folder says by itself, as the interface's JSON object and as a few lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobmond.analysis.banked import Banked
from jobmond.analysis.scores import Score
from jobmond.analysis.visible import visible
from jobmond.model.state import Bucket
from jobmond.model.trials import Trials


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder read to its end: trials, scores, checkpoints, whichever it holds.

    `files` and `size_bytes` count what was read. `max_step` is a trainer's own word, `ended` says
    that a trainer or a harness left its proof of the end.
    """

    path: str
    files: int
    size_bytes: int
    dialect: str = "unknown"
    bucket: Bucket = Bucket.OTHER
    trials: Trials | None = None
    scores: Sequence[Score] = ()
    banked: Banked = field(default_factory=Banked)
    last_step: int | None = None
    max_step: int | None = None
    ended: bool = False

    @property
    def step(self) -> int | None:
        """The newest step that is proved."""
        return self.last_step if self.last_step is not None else self.banked.step

    @property
    def phase(self) -> str | None:
        """As far as files can tell it; None where they cannot."""
        trials = self.trials
        if self.ended or (trials is not None and trials.finished):
            return "done"
        if trials is None:
            return "training" if self.banked.complete else None
        if trials.all_done:
            return "finishing"
        return "training" if trials.done else "bring-up"


def trial_metrics(trials: Trials) -> dict[str, float]:
    """Under their canonical names; what is not known is absent."""
    found: dict[str, float | None] = {
        "trials_done": trials.done,
        "trials_total": trials.total,
        "chunks_done": trials.chunks_done,
        "chunks_total": trials.chunks_total,
        "avg_turns": trials.avg_turns,
        "mean_reward": trials.mean_reward,
        "exception_fraction": trials.exception_fraction,
        "pass_rate": trials.pass_rate,
    }
    return {name: value for name, value in found.items() if value is not None}


def trial_fields(trials: Trials) -> dict[str, Any]:
    """What stands beside the metrics, where it applies."""
    found = {
        "top_exception": None if trials.top_exception is None else visible(trials.top_exception),
        "avg_turns_source": trials.turns_source,
        "mean_reward_basis": trials.mean_reward_basis,
    }
    return {name: value for name, value in found.items() if value is not None}


def folder_document(seen: Folder) -> dict[str, Any]:
    """The object of `inspect --json`."""
    trials = seen.trials
    document: dict[str, Any] = {
        "schema": 1,
        "path": seen.path,
        "bucket": str(seen.bucket),
        "dialect": seen.dialect,
        "bytes": seen.size_bytes,
        "lines": None,
        "files": seen.files,
        "life": 1,
        "resumed_from": None,
        "phase": seen.phase,
        "step": seen.step,
        "max_step": seen.max_step,
        "metrics": {} if trials is None else trial_metrics(trials),
        "series": {},
        "rate_s_per_step": None,
        "eta_s": None,
        "checkpoints": list(seen.banked.complete),
        "signals": [],
        "diagnosis": None,
    }
    if trials is not None:
        document |= {
            **trial_fields(trials),
            "trials_running": trials.running,
            "exceptions": {visible(n): c for n, c in sorted(trials.exceptions.items())},
        }
    if seen.scores:
        document["scores"] = [{**s.plain(), "name": visible(s.name)} for s in seen.scores]
    if seen.banked.unfinished:
        document["checkpoints_unfinished"] = list(seen.banked.unfinished)
    return document


def folder_text(seen: Folder) -> list[str]:
    """The same for a person."""
    head = f"{visible(seen.path)}: {seen.dialect}, {seen.bucket}"
    said = [head if seen.phase is None else f"{head}, {seen.phase}"]
    if not seen.files and seen.phase is None:
        return [*said, "  no trials, results or checkpoints in it; name a log by itself"]
    said.append(f"  {seen.files} files read, {seen.size_bytes} bytes")
    if seen.trials is not None:
        said += _trial_lines(seen.trials)
    if seen.scores:
        said.append("  " + ", ".join(f"{visible(s.name)}: {s.value:.1f}%" for s in seen.scores))
    if seen.banked.complete or seen.banked.unfinished:
        said += _step_lines(seen)
    return said


def _trial_lines(trials: Trials) -> list[str]:
    total = "" if trials.total is None else f"/{trials.total}"
    more = "" if trials.whole else " (not all of them could be read)"
    said = [f"  {trials.done}{total} trials done, {trials.running} without a result{more}"]
    if trials.chunks_total is not None:
        said.append(f"  {trials.chunks_done}/{trials.chunks_total} chunks done")
    parts = []
    if trials.pass_rate is not None:
        parts.append(f"pass rate {trials.pass_rate:.3f}")
    if trials.mean_reward is not None:
        parts.append(f"mean reward {trials.mean_reward:.4f} ({trials.mean_reward_basis})")
    if trials.avg_turns is not None:
        parts.append(f"{trials.avg_turns:.3f} turns a trial ({trials.turns_source})")
    if parts:
        said.append("  " + ", ".join(parts))
    if trials.errored:
        said.append(f"  {trials.errored} with an exception: {_most(trials.exceptions)}")
    return said


def _most(exceptions: Mapping[str, int]) -> str:
    ranked = sorted(exceptions.items(), key=lambda pair: (-pair[1], pair[0]))
    rest = len(ranked) - 5
    shown = ", ".join(f"{visible(name)} {count}" for name, count in ranked[:5])
    return f"{shown}, {rest} other types" if rest > 0 else shown


def _step_lines(seen: Folder) -> list[str]:
    banked = seen.banked
    most = "" if seen.max_step is None else f" of {seen.max_step}"
    if banked.step is None:
        said = ["  no complete checkpoint"]
    else:
        steps = ", ".join(map(str, banked.complete[-20:]))
        place = visible(banked.paths[banked.step])
        said = [f"  banked step {banked.step}{most} in {place}; complete: {steps}"]
    if seen.last_step is not None:
        said.append(f"  the trainer's own record ends at step {seen.last_step}")
    if banked.unfinished:
        said.append("  not complete: " + ", ".join(map(str, banked.unfinished)))
    return said
