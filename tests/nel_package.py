"""The real nemo-evaluator-launcher, in an environment of its own."""

import fcntl
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.needs import need

VERSION = "0.2.6"
ROOT = Path(__file__).parents[1]
INSTALL_S = 900
_NOT_OFFERED = ("No matching distribution", "Could not find a version")


@cache
def nel_program() -> Path:
    """`nemo-evaluator-launcher`; the first test that asks installs it, and it is kept.

    Skips the test where the package index does not offer it. Where it does, and the installation
    fails, that is what `need` makes of something that is missing.
    """
    kept = ROOT / ".venv" if (ROOT / ".venv").is_dir() else Path(tempfile.gettempdir())
    folder = kept / f"jobmond-nel-{VERSION}-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    program, whole = folder / "bin" / "nemo-evaluator-launcher", folder / "whole"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        failed = None if whole.exists() else _installed(folder)
        if failed is None:
            whole.touch()
    if failed is not None and any(word in failed for word in _NOT_OFFERED):
        pytest.skip(f"this package index does not offer nemo-evaluator-launcher {VERSION}")
    need(failed is None, f"nemo-evaluator-launcher {VERSION} could not be installed: {failed}")
    return program


def _installed(folder: Path) -> str | None:
    """Why it is not."""
    install = [
        str(folder / "bin" / "python"),
        *("-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        f"nemo-evaluator-launcher=={VERSION}",
    ]
    for step in ([sys.executable, "-m", "venv", str(folder)], install):
        try:
            done = subprocess.run(
                step, capture_output=True, timeout=INSTALL_S, check=False, text=True
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode:
            return (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2][:200]
    return None
