"""Which further logs of a job stand where its log does."""

import re

from jobmond.model.job import Job

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
# An evaluation's server and client, the launcher's own output, what ranks write for themselves.
# Source: nel's and SLURM's names of files.
_NAMES = ("server-*{}*.log", "client-*{}*.log", "slurm-*{}*.log", "*{}*rank*", "*rank*{}*")
_LOCAL = ("server_stdout.log", "client_stdout.log")


def beside(job: Job) -> tuple[str, ...]:
    """Absolute paths, or names in the log's folder in which `*` stands for anything."""
    facts = job.facts
    log = job.choices.log_path or facts.log_path
    other = facts.err_path
    found = [other] if other and other.startswith("/") and other != log else []
    ids = [link.native_id for part in job.parts for link in part.links] or [job.native_id]
    for native_id in ids[-1:]:
        if _PLAIN.fullmatch(native_id):
            found += [name.format(native_id) for name in _NAMES]
    return (*found, *_LOCAL)
