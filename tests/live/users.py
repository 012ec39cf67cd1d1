"""Unprivileged users that exist as long as their lab."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.accounts import change_accounts

NO_SUCH_USER = 6  # userdel: another process cleared the same orphan first
# A login shell (`bash -l`) gets PATH anew from /etc/profile, which would hide the counting.
_PROFILE = """\
[ -z "${JOBMOND_LAB:-}" ] || PATH=$JOBMOND_LAB/counting/bin:$PATH
"""


@dataclass(frozen=True, slots=True)
class User:
    """A Linux user of the lab; `key_file` is its private key, readable by root only."""

    name: str
    uid: int
    gid: int
    home: Path
    key_file: Path


def create_user(name: str, homes: Path, key_file: Path) -> User:
    """Add the Linux user `name` with an own home and no password.

    The password is `*` and not `!`: sshd without PAM refuses a locked account.
    Raises TimeoutError when /etc/passwd stays locked.
    """
    home = homes / name
    change_accounts(["useradd", "-M", "-s", "/bin/bash", "-d", str(home), "-p", "*", name])
    entry = pwd.getpwnam(name)
    home.mkdir(mode=0o755)
    profile = home / ".profile"
    profile.write_text(_PROFILE)
    for path in (home, profile):
        os.chown(path, entry.pw_uid, entry.pw_gid)
    return User(name, entry.pw_uid, entry.pw_gid, home, key_file)


def users_under(homes: Path) -> list[pwd.struct_passwd]:
    """The Linux users whose home lies directly in `homes`."""
    return [entry for entry in pwd.getpwall() if Path(entry.pw_dir).parent == homes]


def remove_users(homes: Path) -> None:
    """Delete the users of `homes` and the homes; nothing of theirs may run any more."""
    for entry in users_under(homes):
        change_accounts(["userdel", "--force", entry.pw_name], fine=(0, NO_SUCH_USER))
    shutil.rmtree(homes, ignore_errors=True)


def set_bashrc(user: User, text: str) -> None:
    """What bash runs first for every ssh command of `user`, interactive or not."""
    path = user.home / ".bashrc"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    os.chown(path, user.uid, user.gid)


def printing(lines: Iterable[str]) -> str:
    """Shell text that prints `lines` on standard output."""
    return "".join(f"printf '%s\\n' {shlex.quote(line)}\n" for line in lines)
