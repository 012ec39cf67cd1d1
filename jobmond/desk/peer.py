"""Who is at the other end of the socket, and what that user may do."""

import grp
import os
import pwd
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from jobmond.desk.refusals import NotYours
from jobmond.errors import ConfigError
from jobmond.model.job import Job


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end, as the kernel named it when it connected."""

    uid: int
    gid: int
    pid: int
    groups: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Rights:
    """The daemon's user and root do everything; nobody else gets in without a socket group.

    With one, its members read everything and change jobs whose owner they are; members who are
    admins change all.
    """

    daemon_uid: int
    socket_gid: int | None = None
    admin_uids: frozenset[int] = frozenset()

    @classmethod
    def of(cls, *, socket_group: str | None = None, admins: Iterable[str] = ()) -> "Rights":
        """The rights that group and user names of the configuration mean on this host.

        Raises:
            ConfigError: there is no such group or user.
        """
        gid = None if socket_group is None else group_id(socket_group)
        return cls(os.geteuid(), gid, frozenset(_user_id(name) for name in admins))

    def may_read(self, peer: Peer) -> bool:
        if peer.uid in (0, self.daemon_uid):
            return True
        return self.socket_gid is not None and self.socket_gid in peer.groups | {peer.gid}

    def over_all(self, peer: Peer) -> bool:
        """Whether the peer may change every job, and name files that the daemon then reads."""
        if peer.uid in (0, self.daemon_uid):
            return True
        return self.may_read(peer) and peer.uid in self.admin_uids

    def check_read(self, peer: Peer) -> None:
        """Raises NotYours: the peer may not even read."""
        if not self.may_read(peer):
            raise NotYours(f"this jobmond belongs to {user_name(self.daemon_uid)}, not to you")

    def check_change(self, peer: Peer, job: Job) -> None:
        """Raises NotYours: the peer may not change `job`."""
        self.check_read(peer)
        if self.over_all(peer) or job.choices.owner_uid == peer.uid:
            return
        owner = job.choices.owner or "nobody"
        raise NotYours(f"{job.ref} belongs to {owner}: only its owner and admins change it")

    def check_all(self, peer: Peer, what: str) -> None:
        """Raises NotYours: `what` is for the daemon's user and admins."""
        if not self.over_all(peer):
            raise NotYours(f"only the daemon's user and admins may {what}")


@lru_cache(maxsize=1024)
def user_name(uid: int) -> str:
    """The user's name on this host, else the number as text. May ask a directory service."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


def group_id(name: str) -> int:
    """Raises ConfigError: there is no such group."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError as missing:
        raise ConfigError(f"socket_group: there is no group {name!r} on this host") from missing


def _user_id(name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError as missing:
        raise ConfigError(f"admins: there is no user {name!r} on this host") from missing
