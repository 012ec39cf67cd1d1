"""What this machine must have before a lab can start here."""

from __future__ import annotations

import os
import pwd
import shutil

# command: Debian package
PROGRAMS = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmdbd": "slurmdbd",
    "squeue": "slurm-client",
    "sacct": "slurm-client",
    "munged": "munge",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "mariadb": "mariadb-client",
    "sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
    "useradd": "passwd",
}
ACCOUNTS = {"slurm": "slurmctld", "munge": "munge", "mysql": "mariadb-server"}
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def missing() -> str:
    """Why no lab can start here, in one line that names what to do; empty if one can."""
    if os.geteuid() != 0:
        return "needs root: it starts daemons and adds throw-away users"
    packages = {
        package for name, package in PROGRAMS.items() if shutil.which(name, path=_PATH) is None
    }
    packages |= {package for name, package in ACCOUNTS.items() if not _exists(name)}
    if packages:
        return f"needs the packages {' '.join(sorted(packages))}: run tests/live/install.sh"
    return ""


def _exists(account: str) -> bool:
    try:
        pwd.getpwnam(account)
    except KeyError:
        return False
    return True
