"""Which file system a database is on: SQLite's shared memory and locks need a local one."""

from pathlib import Path

_NETWORK = frozenset(
    {
        "nfs",
        "nfs3",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "lustre",
        "gpfs",
        "beegfs",
        "beegfs_nodev",
        "ceph",
        "glusterfs",
        "pvfs2",
        "orangefs",
        "afs",
        "wekafs",
        "panfs",
        "9p",
        "virtiofs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "fuse.juicefs",
        "fuse.s3fs",
        "fuse.rclone",
    }
)
_MOUNTS = Path("/proc/self/mountinfo")


def network_file_system(path: Path, *, mounts: Path = _MOUNTS) -> str | None:
    """The kind of network file system that `path` is (or would be) on; None for a local one.

    Where the mounts cannot be read the answer is None: nothing is known to be wrong.
    """
    try:
        listed = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = mounted(listed, path.resolve())
    return kind if kind in _NETWORK else None


def mounted(mountinfo: str, path: Path) -> str | None:
    """The kind of file system at `path`, by the text of `/proc/self/mountinfo`.

    Of several mounts at one place the last is the visible one.
    """
    best, kind = -1, None
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < 5:
            continue
        place = Path(_unescaped(fields[4]))
        if path.is_relative_to(place) and len(place.parts) >= best:
            best, kind = len(place.parts), after.split(" ")[0]
    return kind


def _unescaped(text: str) -> str:
    for octal, character in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        text = text.replace(octal, character)
    return text
