"""Where a job's tree of trials may be.

Sources: OpenThoughts-Agent, `hpc/datagen_launch_utils.py` (`trace_jobs`), its experiments layout
`<experiments>/<job>/<job>/trace_jobs`; harbor, `models/job/config.py` (`jobs/<job name>`).
"""

from collections.abc import Sequence

from jobmond.model.job import Job
from jobmond.model.state import Bucket

TREE_LABEL = "tree="
MOST = 24
# The most telling first: a folder that is only called like the job may be anything.
_BELOW = (
    "{0}/{0}/trace_jobs",
    "{0}/trace_jobs",
    "experiments/{0}/{0}/trace_jobs",
    "trace_jobs/{0}",
    "jobs/{0}",
    "{0}",
)
_TREED = frozenset({Bucket.DATAGEN, Bucket.EVAL})


def has_tree(job: Job) -> bool:
    """Whether trials are to be looked for. Standard RL leaves none, and is not asked for any."""
    named = any(label.startswith(TREE_LABEL) for label in job.labels)
    agentic = job.bucket is Bucket.RL and "agentic" in job.labels and "standard" not in job.labels
    return named or agentic or job.bucket in _TREED


def tree_places(job: Job, trial_dirs: Sequence[str]) -> tuple[str, ...]:
    """Absolute paths, the likeliest first: the label `tree=PATH`, where it was found before,
    then by the job's and the run's name below its work directory and `trial_dirs`.
    """
    folder = job.facts.workdir
    found = [
        _below(folder, label.removeprefix(TREE_LABEL))
        for label in sorted(job.labels)
        if label.startswith(TREE_LABEL)
    ]
    if found:
        return tuple(filter(_usable, found))[:MOST]
    if job.work is not None and job.work.tree:
        found.append(job.work.tree)
    names = [name for name in dict.fromkeys((job.name, job.run)) if _plain(name)]
    for top in (*trial_dirs, *([folder] if folder else [])):
        for name in names:
            found += [_below(top, below.replace("{0}", name)) for below in _BELOW]
    return tuple(dict.fromkeys(filter(_usable, found)))[:MOST]


def _below(folder: str | None, path: str) -> str:
    return path if path.startswith("/") or not folder else f"{folder.rstrip('/')}/{path}"


def _plain(name: str) -> bool:
    return bool(name) and "/" not in name and name not in (".", "..")


def _usable(path: str) -> bool:
    return path.startswith("/") and "\n" not in path and "\0" not in path
