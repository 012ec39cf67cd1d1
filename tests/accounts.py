"""Linux accounts made and removed while other tests do the same."""

import subprocess

from tests.live.waiting import wait_for

LOCK_WAIT_S = 30.0  # another test may hold /etc/passwd.lock


def change_accounts(
    argv: list[str], fine: tuple[int, ...] = (0,), *, typed: str | None = None
) -> None:
    """Run `useradd` and the like, with `typed` to read; exit codes in `fine` are success.

    Raises TimeoutError when the accounts stay locked, RuntimeError for any other failure.
    """
    tries: list[subprocess.CompletedProcess[str]] = []

    def done() -> bool:
        tries.append(subprocess.run(argv, input=typed, capture_output=True, text=True, check=False))
        if tries[-1].returncode in fine:
            return True
        if any(word in tries[-1].stderr for word in ("lock", "cannot remove entry")):
            return False  # somebody else is at it: the next try finds it free, or done
        raise RuntimeError(f"{argv}: rc {tries[-1].returncode}: {tries[-1].stderr}")

    wait_for(done, LOCK_WAIT_S, what=" ".join(argv), every_s=0.2)
