"""The launcher's own map from jobs in SLURM to experiments, `.slurm_jobs`.

Source: nemo_run 0.11, `run/torchx_backend/schedulers/slurm.py`: a line for each job,
`<id> = <remote log files>,<local folder>,<tunnel>,<JSON of the tunnel>`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from jobmond.analysis.visible import readable

EXPERIMENT = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,100}_\d{10,19}")
_LINE = re.compile(
    r"(?P<id>[1-9]\d{0,11}) = (?P<logs>/[^,\x00-\x1f\x7f]{1,2000})"
    r",(?P<folder>[^,\x00-\x1f\x7f]{1,2000})"
    r",(?P<tunnel>\w{1,40})(?:,(?P<json>\{.{0,4000}\}))?\s*$"
)


@dataclass(frozen=True, slots=True)
class Mapped:
    """A job in SLURM that the launcher submitted; `folder` is where it works, at the far side."""

    slurm_id: str
    experiment: str
    task: str
    folder: str
    host: str | None


def mapped(text: bytes) -> Mapping[str, tuple[Mapped, ...]]:
    """The jobs of a map by experiment, in the order of their ids; other lines are passed over."""
    found: dict[str, dict[str, Mapped]] = {}
    for line in readable(text).splitlines():
        one = _mapped(line)
        if one is not None:
            found.setdefault(one.experiment, {})[one.slurm_id] = one
    return {
        experiment: tuple(sorted(jobs.values(), key=lambda job: int(job.slurm_id)))
        for experiment, jobs in found.items()
    }


def _mapped(line: str) -> Mapped | None:
    shape = _LINE.fullmatch(line.strip())
    if shape is None:
        return None
    folder, _, task = shape["folder"].rstrip("/").rpartition("/")
    experiment = folder.rpartition("/")[2]
    if not EXPERIMENT.fullmatch(experiment):
        # The experiment's own folder; the logs tell which task.
        task, experiment = shape["logs"].split("/")[-2], task
    if not EXPERIMENT.fullmatch(experiment):
        return None
    return Mapped(shape["id"], experiment, task, shape["logs"].rpartition("/")[0], _host(shape))


def _host(shape: re.Match[str]) -> str | None:
    try:
        tunnel = json.loads(shape["json"] or "{}")
    except (ValueError, RecursionError):
        return None
    host = tunnel.get("host") if isinstance(tunnel, dict) else None
    return host.lower() if isinstance(host, str) and host.isprintable() else None
