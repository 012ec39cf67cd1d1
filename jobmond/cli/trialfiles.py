"""The files of one job of trials on this host: its own result and one for each trial."""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobmond.analysis.harbor import (
    AGENT_STEPS,
    EPISODE_FOLDERS,
    JOB_WANTED,
    TRAJECTORY_WANTED,
    TRIAL_WANTED,
    JobResult,
    agent_steps,
    job_result,
    run_trials,
    trial,
)
from jobmond.analysis.sifting import Wanted, sifted
from jobmond.analysis.tally import JobTree
from jobmond.model.trials import Trial

PIECE_BYTES = 1 << 20
RESULTS = ("result.json", "results.json")  # Harbor's, and its predecessor's
_NO_TRIAL = re.compile(r"_retry_|lost\+found$|\.")
_TRIAL_FOLDER = re.compile(r".+__[A-Za-z0-9]{5,12}$|.+\.\d+-of-\d+\..+")
_TRIAL_FILES = frozenset({"trial.log", "config.json", *RESULTS})


_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO without a writer must not hold us up
_EITHER_WANTED: Wanted = {**JOB_WANTED, **TRIAL_WANTED, "results": TRIAL_WANTED}


@dataclass(slots=True)
class Counted:
    """What was read so far."""

    files: int = 0
    size_bytes: int = 0

    def pieces(self, path: Path, *, most_bytes: int | None = None) -> Iterator[bytes]:
        """A regular file's bytes; nothing where it cannot be read or is larger than that."""
        try:
            with os.fdopen(os.open(path, _READ), "rb", buffering=0) as source:
                about = os.fstat(source.fileno())
                if not stat.S_ISREG(about.st_mode) or about.st_size > (most_bytes or 1 << 62):
                    return
                self.files += 1
                while piece := source.read(PIECE_BYTES):
                    self.size_bytes += len(piece)
                    yield piece
        except OSError:
            return


@dataclass(frozen=True, slots=True)
class ReadTree:
    """A job's folder as it was read; `newest_at` is when its last result was written."""

    tree: JobTree
    newest_at: float | None


def sifted_file(path: Path, wanted: Wanted, read: Counted) -> Any:
    """What is wanted of a JSON file; None where it is not whole or cannot be read."""
    return sifted(read.pieces(path), wanted)


def job_tree(
    folder: Path, files: Sequence[str], folders: Sequence[str], read: Counted
) -> ReadTree | None:
    """The job in `folder`, or the one trial; None where it is neither."""
    own, alone = _own(folder, files, read)
    if alone:
        return ReadTree(JobTree(own, trials=alone), _written_at(folder))
    below = [name for name in folders if not _NO_TRIAL.match(name)]
    if own is None and "job.log" not in files and not _holds_trials(folder, below):
        return None
    ended: list[tuple[float, Trial]] = []
    running = 0
    for name in below:
        at, one, began = _trial(folder / name, read)
        if one is not None:
            ended.append((at, one))
        running += began and one is None
    ended.sort(key=lambda pair: (pair[0], pair[1].name))
    return ReadTree(
        JobTree(own, [one for _, one in ended], running), ended[-1][0] if ended else None
    )


def _own(
    folder: Path, files: Sequence[str], read: Counted
) -> tuple[JobResult | None, Sequence[Trial]]:
    """What the result file in `folder` is: a job's, one trial's, or (terminal-bench) a run's,
    with all its trials inside.
    """
    for name in RESULTS:
        if name in files:
            document = sifted_file(folder / name, _EITHER_WANTED, read)
            one = trial(document, name=folder.name)
            return job_result(document), (one,) if one is not None else run_trials(document)
    return None, ()


def _holds_trials(folder: Path, below: Sequence[str]) -> bool:
    """Whether the folders in it are called like trials, and the first of them is one."""
    named = [name for name in below if _TRIAL_FOLDER.match(name)]
    return any(_TRIAL_FILES & _names(folder / name) for name in named[:3])


def _names(folder: Path) -> set[str]:
    try:
        return {one.name for one in folder.iterdir()}
    except OSError:
        return set()


def _trial(folder: Path, read: Counted) -> tuple[float, Trial | None, bool]:
    """When its result was written, the trial, and whether there is one at all."""
    for name in RESULTS:
        path = folder / name
        try:
            at = path.stat().st_mtime
        except OSError:
            continue
        found = trial(sifted_file(path, TRIAL_WANTED, read), name=folder.name)
        if found is not None and found.turns is None:
            found = _with_turns(folder / "agent", found, read)
        return at, found, True
    return 0.0, None, (folder / "config.json").is_file()


def _with_turns(agent: Path, found: Trial, read: Counted) -> Trial:
    """Turns by the trajectory, else by the folders of its episodes."""
    steps = agent_steps(sifted_file(agent / "trajectory.json", TRAJECTORY_WANTED, read))
    if steps is not None:
        return replace(found, turns=steps, turns_source=AGENT_STEPS)
    episodes = sum(name.startswith("episode-") for name in _names(agent))
    if episodes:
        return replace(found, turns=episodes, turns_source=EPISODE_FOLDERS)
    return found


def _written_at(folder: Path) -> float | None:
    for name in RESULTS:
        try:
            return (folder / name).stat().st_mtime
        except OSError:
            continue
    return None
