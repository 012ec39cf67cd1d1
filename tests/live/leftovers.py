"""What a lab leaves behind, and how all of it goes: processes first, then users and files."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.live import options, processes
from tests.live.processes import Signs
from tests.live.users import remove_users, users_under


def wipe(folder: Path) -> None:
    """Everything of the lab in `folder`, be it this process' or an orphan's: processes first.

    Raises TimeoutError when a process survives; users and folder go nevertheless.
    """
    homes = folder / "home"
    marks = (f"JOBMOND_LAB={folder}", f"SLURM_CONF={folder}/etc/slurm.conf")
    signs = Signs(
        frozenset(mark.encode() for mark in marks),
        frozenset(entry.pw_uid for entry in users_under(homes)),
    )
    notes = [note.read_text() for note in (folder / "notes").glob("*")]
    roots = {int(note.split(" ")[0]) for note in notes if processes.same_process(note)}
    try:
        processes.kill_all(signs, roots)
    finally:
        remove_users(homes)
        for spool in folder.glob("spool.*"):
            _remove_cgroups(f"slurm_{spool.name.removeprefix('spool.')}")
        shutil.rmtree(folder, ignore_errors=True)


def _remove_cgroups(name: str) -> None:
    for top in Path("/sys/fs/cgroup").glob(f"*/{name}"):
        groups = [path for path in top.rglob("*") if path.is_dir()]
        for group in [*sorted(groups, key=lambda path: -len(path.parts)), top]:
            with suppress(OSError):
                group.rmdir()


def clear_orphans() -> None:
    """Wipe labs whose test process was killed before it could; one process at a time."""
    with (Path(tempfile.gettempdir()) / "jobmond-lab.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        _clear_orphans()


def _clear_orphans() -> None:
    for folder in options.left_folders():
        try:
            owner = (folder / "owner").read_text()
        except OSError:
            continue  # half made by a process that lives, or half gone
        if owner and not processes.same_process(owner):
            wipe(folder)
