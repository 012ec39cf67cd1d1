"""Which job an entry of a registry file means. Pure."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from jobmond.analysis.activejobs import Entry
from jobmond.desk.aim import ClusterInfo, Target, ValidateId, aim
from jobmond.desk.refusals import listed, quoted
from jobmond.errors import ConfigError, JobmondError, Refused
from jobmond.model.state import Kind

_INVOCATION_CHARS = 16  # an invocation of nel may be all digits

Names = Mapping[str, Set[str]]
"""By cluster, in lower case: its name, its hosts, and what those hosts are otherwise called."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry and the job it means, or why it means none."""

    entry: Entry
    target: Target | None = None
    error: str | None = None


def all_listed(
    entries: Sequence[Entry],
    clusters: Sequence[ClusterInfo],
    names: Names,
    *,
    real_name: Callable[[str], str | None],
    validate_id: ValidateId,
) -> list[Listed]:
    """Each entry on its own: what is wrong with one is no concern of the others.

    `real_name` is what ssh_config makes of a host.
    """
    found = []
    for entry in entries:
        try:
            if entry.error is not None:
                raise ConfigError(entry.error)
            there = _clusters(entry, clusters, names, real_name)
            found.append(Listed(entry, _target(entry, there, validate_id)))
        except JobmondError as wrong:
            named = f"{entry.id}: " if entry.error is None else ""
            found.append(Listed(entry, error=f"{named}{wrong}"))
    return found


def _clusters(
    entry: Entry,
    clusters: Sequence[ClusterInfo],
    names: Names,
    real_name: Callable[[str], str | None],
) -> list[ClusterInfo]:
    """The clusters that the entry's host belongs to; all where it names none."""
    if entry.host is None:
        return list(clusters)
    host = entry.host.rpartition("@")[2].lower()
    by_name = [c for c in clusters if c.name.lower() == host]
    there = by_name or [c for c in clusters if host in names[c.name]]
    if not there:
        real = (real_name(host) or host).lower()
        there = [c for c in clusters if real in names[c.name]]
    if not there:
        known = listed(c.name for c in clusters)
        raise Refused(
            f"host {quoted(entry.host)} is no cluster, no host of one and no alias of such a host"
            f" (clusters: {known or 'none'})"
        )
    return [c for c in there if entry.user and entry.user in c.users] or there


def _target(entry: Entry, there: Sequence[ClusterInfo], validate_id: ValidateId) -> Target:
    kind = None if entry.type is None else Kind(entry.type)
    bare = entry.id.isascii() and entry.id.isdigit() and len(entry.id) < _INVOCATION_CHARS
    if kind in (Kind.NEL, Kind.LAUNCHER) and bare:
        kind = Kind.SLURM
    if kind is not None and not any(kind in c.kinds for c in there):
        raise Refused(f"jobs of type {entry.type} cannot be watched there in this version")
    usable = [c for c in there if kind is None or kind in c.kinds]
    cluster = usable[0].name if len(usable) == 1 else None
    return aim(entry.id, kind=kind, cluster=cluster, clusters=usable, validate_id=validate_id)
