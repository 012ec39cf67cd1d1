"""What the far side's shell makes of the script."""

import getpass
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobmond.backends.slurm.script import Nonce, Window, listing

NONCE = Nonce.of("ab" * 32)


def asked_users(folder: Path, users: tuple[str, ...], others: tuple[str, ...]) -> list[str]:
    """The users that squeue and sacct are called for when the login user's shell runs it."""
    for name in ("squeue", "sacct"):
        program = folder / name
        program.write_text(
            '#!/bin/sh\nwhile [ "$1" != -u ]; do shift; done; echo "$2" >&2; exit 0\n'
        )
        program.chmod(0o755)
    script = listing(
        NONCE,
        users=users,
        others=others,
        accounting=Window(datetime(2026, 11, 29, tzinfo=UTC)),
        submit_line=True,
        squeue_s=5,
        sacct_s=5,
        bin_dir=str(folder),
    )
    done = subprocess.run(["/bin/sh"], input=script, capture_output=True, check=True)
    lines = done.stdout.decode().splitlines()
    ends = [n for n, line in enumerate(lines) if " end squeue 0" in line or " end sacct 0" in line]
    return [lines[n + 1] for n in ends]


ME = getpass.getuser()


@pytest.mark.parametrize(
    ("users", "others", "expected"),
    [
        ((), (), [ME, ME]),
        ((), (ME,), [ME, ME]),
        ((), ("nobody", ME), [f"{ME},nobody", ME]),
        (("alice", "bob"), ("it's",), ["alice,bob,it's", "alice,bob"]),
    ],
)
def test_nobody_is_asked_about_twice(
    tmp_path: Path, users: tuple[str, ...], others: tuple[str, ...], expected: list[str]
) -> None:
    assert asked_users(tmp_path, users, others) == expected
