"""A folder on this host read offline: trials, scores and checkpoints, whichever it holds.

Nothing below a trial or a checkpoint is walked, links are not followed, and only regular files
are opened.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobmond.analysis.banked import LATEST, Banked, banked, is_step, tracked_step
from jobmond.analysis.classify import PREFIXES
from jobmond.analysis.scores import Score, bundle_scores, lm_eval_scores, results_scores
from jobmond.analysis.sifting import EVERYTHING, Wanted
from jobmond.analysis.tally import JobTree, tally
from jobmond.cli.trialfiles import Counted, job_tree, sifted_file
from jobmond.errors import ConfigError
from jobmond.model.state import Bucket
from jobmond.model.trials import Place
from jobmond.reports.folder import Folder

DEEPEST = 5
MOST_FOLDERS = 5000
MOST_TEXT_BYTES = 16 << 20
_CHUNK = re.compile(rb"chunk_\d{1,6}")
_SKIPPED = frozenset({"task_chunks", "artifacts_cache", "wandb", "__pycache__", "node_modules"})
_STATE_WANTED: Wanted = {"global_step": EVERYTHING, "max_steps": EVERYTHING}


@dataclass(slots=True)
class _Found:
    """What the walk came across."""

    read: Counted = field(default_factory=Counted)
    trees: list[JobTree] = field(default_factory=list)
    newest_at: list[float] = field(default_factory=list)
    chunks: int | None = None
    scores: dict[str, Score] = field(default_factory=dict)
    dialect: str | None = None
    places: list[Place] = field(default_factory=list)
    folders: int = 0


def read_folder(path: str) -> Folder:
    """Everything a folder proves.

    Raises:
        ConfigError: it cannot be listed.
    """
    root, found = Path(path), _Found()
    try:
        next(root.iterdir(), None)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    _walk(root, "", found)
    trials = None
    if found.trees:
        newest = max(found.newest_at, default=None)
        trials = tally(
            found.trees,
            chunks=found.chunks,
            last_result_at=None if newest is None else datetime.fromtimestamp(newest, UTC),
        )
    banks = banked(found.places)
    last_step, max_step, ended = _trainer_state(root, banks, found.read)
    return Folder(
        path=path,
        files=found.read.files,
        size_bytes=found.read.size_bytes,
        dialect=_dialect(found, banks),
        bucket=_bucket(root, found, banks),
        trials=trials,
        scores=list(found.scores.values()),
        banked=banks,
        last_step=last_step,
        max_step=max_step,
        ended=ended or bool(found.scores),
    )


def _dialect(found: _Found, banks: Banked) -> str:
    if banks.dialect != "unknown":
        return banks.dialect
    return "harbor" if found.trees else found.dialect or "unknown"


def _bucket(root: Path, found: _Found, banks: Banked) -> Bucket:
    for name in (root.resolve().name, root.resolve().parent.name):
        for prefix, bucket in PREFIXES:
            if name.startswith(prefix):
                return bucket
    if banks.dialect != "unknown":
        return banks.bucket
    if found.chunks is not None:
        return Bucket.DATAGEN
    return Bucket.EVAL if found.trees or found.scores or found.dialect else Bucket.OTHER


def _walk(folder: Path, relative: str, found: _Found) -> None:
    """`relative` is the folder's path from where the walk began."""
    found.folders += 1
    if found.folders > MOST_FOLDERS:
        return
    files, folders = _listed(folder)
    tree = job_tree(folder, files, folders, found.read)
    if tree is not None:
        found.trees.append(tree.tree)
        if tree.newest_at is not None:
            found.newest_at.append(tree.newest_at)
        return
    if "task_chunks" in folders or "task_chunk_map.json" in files:
        found.chunks = (found.chunks or 0) + _chunks(folder, folders, found.read)
    for score in _scores(folder, files, found):
        found.scores.setdefault(score.name, score)
    steps = {name for name in folders if is_step(name)}
    if steps:
        found.places.append(_place(folder, relative, steps, files, found.read))
    if relative.count("/") >= DEEPEST:
        return
    for name in folders:
        if name not in steps and name not in _SKIPPED and not name.startswith((".", "_retry_")):
            _walk(folder / name, f"{relative}/{name}".lstrip("/"), found)


def _listed(folder: Path) -> tuple[list[str], list[str]]:
    """Names of regular files and of folders, each in order; nothing where it may not be read."""
    files, folders = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file():
                    files.append(entry.name)
    except OSError:
        return [], []
    return sorted(files), sorted(folders)


def _chunks(folder: Path, folders: Sequence[str], read: Counted) -> int:
    """How many pieces the work was cut into: by their folders, else by their map."""
    if "task_chunks" in folders:
        pieces = [name for name in _listed(folder / "task_chunks")[1] if name.startswith("chunk_")]
        if pieces:
            return len(pieces)
    return len(set(_CHUNK.findall(_text(folder / "task_chunk_map.json", read))))


def _scores(folder: Path, files: Sequence[str], found: _Found) -> Iterator[Score]:
    """Headlines of the results in a folder; of several by lm-eval the newest file's."""
    newest = [name for name in files if re.search(r"results_.*\.json$", name)][-1:]
    for name in newest:
        yield from _named(lm_eval_scores(_json(folder / name, found.read)), "lm-eval", found)
    for name in files:
        if re.search(r"(?:^|_)eval-.*\.json$", name):
            yield from _named(
                bundle_scores(_json(folder / name, found.read)), "nemo-evaluator", found
            )
    if "results.yml" in files:
        launched = folder.name == "artifacts" or "metadata.yaml" in files
        document = _yaml(folder / "results.yml", found.read)
        framework = None
        if "run_config.yml" in files:
            config = _yaml(folder / "run_config.yml", found.read)
            framework = config.get("framework_name") if isinstance(config, Mapping) else None
        framework = framework if isinstance(framework, str) else None
        dialect = "nel" if launched else "nemo-evaluator"
        yield from _named(results_scores(document, framework), dialect, found)


def _named(scores: list[Score], dialect: str, found: _Found) -> list[Score]:
    if scores and found.dialect is None:
        found.dialect = dialect
    return scores


def _place(
    folder: Path, relative: str, steps: set[str], files: Sequence[str], read: Counted
) -> Place:
    inside = {}
    for name in steps:
        names, folders = _listed(folder / name)
        inside[name] = frozenset([*names, *folders])
    latest = None
    for name in LATEST:
        if name in files:
            latest = tracked_step(_text(folder / name, read)[:100].decode("ascii", "replace"))
    return Place(relative, inside, latest, frozenset(files))


def _trainer_state(root: Path, banks: Banked, read: Counted) -> tuple[int | None, int | None, bool]:
    """Last step, total and whether the run ended, as transformers' trainer wrote them down: in
    the run's own folder at the end, in a checkpoint's while it runs.
    """
    if banks.dialect not in ("hf", "unknown"):
        return None, None, False
    top = sifted_file(root / "trainer_state.json", _STATE_WANTED, read)
    if isinstance(top, Mapping):
        return _number(top, "global_step"), _number(top, "max_steps"), True
    if banks.step is not None:
        inside = root / banks.paths[banks.step] / "trainer_state.json"
        state = sifted_file(inside, _STATE_WANTED, read)
        if isinstance(state, Mapping):
            return None, _number(state, "max_steps"), False
    return None, None, False


def _number(document: Mapping[str, Any], name: str) -> int | None:
    value = document.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _json(path: Path, read: Counted) -> Any:
    return sifted_file(path, {
        "results": EVERYTHING, "groups": EVERYTHING, "group_subtasks": EVERYTHING,
        "benchmark": EVERYTHING,
    }, read)  # fmt: skip


def _yaml(path: Path, read: Counted) -> Any:
    import yaml  # only a folder of results needs it

    try:
        return yaml.safe_load(_text(path, read))
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def _text(path: Path, read: Counted) -> bytes:
    """A small file's bytes; nothing where it cannot be read or is too large to be one."""
    return b"".join(read.pieces(path, most_bytes=MOST_TEXT_BYTES))
