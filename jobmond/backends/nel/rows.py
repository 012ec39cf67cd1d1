"""What `nel status --json` prints, read without believing it.

Source: nemo-evaluator-launcher 0.2.6. Its exit code carries no job's state. Over SSH any failure of
its own (no connection, no accounting, a record that is not there yet) is printed as `failed`, and
what a time limit, a preemption or a lost node ended as `pending`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobmond.analysis.visible import readable, visible
from jobmond.model.state import State

# Eight digits in old releases, sixteen today; a row of one has its number after a dot.
ID = re.compile(r"(?P<invocation>[0-9a-f]{8,16})(?:\.(?P<n>\d{1,4}))?")
_JOB = re.compile(r"[0-9a-f]{8,16}\.\d{1,4}")
_SLURM_ID = re.compile(r"[1-9]\d{0,11}")
_FOLDER = re.compile(r"/[^\x00-\x1f\x7f]{1,4000}")

# What a row of the local executor proves: it is read from files of this host.
LOCAL = {
    "pending": State.PENDING,
    "running": State.RUNNING,
    "success": State.COMPLETED,
    "failed": State.FAILED,
    "killed": State.CANCELLED,
}
# What a row of SLURM proves: nel can only have it from accounting.
OVER_SLURM = {"success": State.COMPLETED, "killed": State.CANCELLED}
WORDS = frozenset({*LOCAL, "not_found", "error", "unknown"})
_MOST = 1_000


class NotUnderstood(ValueError):
    """An answer that is none; one line says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One job of an invocation. `done` counts requests, of which nobody knows how many there are.

    `slurm_id` and `folder` are None where the row names none, or something else than one.
    """

    invocation: str
    job: str | None
    status: str
    done: int | None = None
    slurm_id: str | None = None
    folder: str | None = None
    host: str | None = None
    user: str | None = None
    error: str | None = None

    @property
    def local(self) -> bool:
        """Whether it runs on the host that nel was called on."""
        return self.host is None and self.slurm_id is None and self.folder is not None


def rows(stdout: bytes) -> list[Row]:
    """The rows of an answer.

    Raises:
        NotUnderstood: it is no list of rows, or has a word for a state that is unknown here.
    """
    try:
        answer = json.loads(stdout)
    except (ValueError, RecursionError) as error:
        raise NotUnderstood("nel status printed no JSON") from error
    if not isinstance(answer, list):
        raise NotUnderstood("nel status printed something else than a list")
    return [_row(one) for one in answer[:_MOST]]


def _row(one: object) -> Row:
    if not isinstance(one, dict):
        raise NotUnderstood("nel status printed a row that is none")
    status = _text(one.get("status"))
    if status not in WORDS:
        raise NotUnderstood(f"nel status has a word that is unknown here: {visible(status or '')}")
    return row_of(one, status, _mapping(one.get("data")))


def row_of(one: Mapping[str, Any], status: str, data: Mapping[str, Any]) -> Row:
    """A row of `data`, which nel's answers and its database have alike."""
    job = _text(one.get("job_id"))
    invocation = _text(one.get("invocation")) or _text(one.get("invocation_id")) or ""
    slurm_id = str(data.get("slurm_job_id") or "")
    folder = _text(data.get("remote_rundir_path")) or _text(data.get("output_dir")) or ""
    progress = one.get("progress")
    done = _mapping(progress).get("progress") if isinstance(progress, dict) else progress
    return Row(
        invocation=invocation or (job or "").partition(".")[0],
        job=job if job and _JOB.fullmatch(job) else None,
        status=status,
        done=done if isinstance(done, int) and not isinstance(done, bool) else None,
        slurm_id=slurm_id if _SLURM_ID.fullmatch(slurm_id) else None,
        folder=folder.rstrip("/") if _FOLDER.fullmatch(folder) else None,
        host=_word(data.get("hostname")),
        user=_word(data.get("username")),
        error=visible(str(data["error"]))[:200] if data.get("error") else None,
    )


def refusal(exit_code: int, stderr: bytes) -> str | None:
    """Why there is no answer, in one line; None where nel ended as it does with one."""
    said = readable(stderr)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if exit_code == 0:
        return None
    if exit_code in (124, 137):
        return "nel status did not answer in time"
    if exit_code in (126, 127):
        return f"nel cannot be started: {visible(lines[-1])[:200] if lines else 'not found'}"
    if "mbiguous" in said:
        return "more than one invocation begins like this: write the whole id"
    last = next((line for line in reversed(lines) if not line.startswith("[I ")), "")
    return f"nel status ended with {exit_code}{f': {visible(last)[:200]}' if last else ''}"


def transport_error(stderr: bytes) -> str | None:
    """The error of ssh that nel swallowed, in one line; None without one."""
    for line in readable(stderr).splitlines():
        if line.startswith(("ssh: ", "kex_exchange", "Host key verification failed")) or (
            "Permission denied (" in line
        ):
            return visible(line.strip())[:200]
    return None


_VERSION = re.compile(r"nemo_evaluator_launcher:\s*(?P<version>[\w.+-]{1,40})")
_OTHER = re.compile(r"nel, version (?P<version>[\w.+-]{1,40})")


def unsuitable(command: str, stdout: bytes, stderr: bytes, exit_code: int) -> str | None:
    """Why the program that is called like this is not the launcher; None where it is."""
    said = readable(stdout)
    if _VERSION.search(said):
        return None
    other = _OTHER.search(said)
    if other is not None:
        return (
            f"{command} is nel {other['version']} of the nemo-evaluator package, another program:"
            " set [nel] command, or --nel-command of the job, to that of nemo-evaluator-launcher"
        )
    if exit_code in (124, 137):
        return f"{command} --version did not answer in time"
    if exit_code in (126, 127):
        return f"{command} cannot be started: set [nel] command, or --nel-command of the job"
    last = readable(stderr).strip().rpartition("\n")[2]
    return f"{command} is not nemo-evaluator-launcher ({visible(last or said.strip())[:120]})"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _word(value: object) -> str | None:
    word = _text(value)
    return word if word and word.isprintable() and len(word) <= 255 and " " not in word else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
