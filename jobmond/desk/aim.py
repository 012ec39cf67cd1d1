"""Which cluster and kind a word given to `add` means. Pure: a guess is made only where it is safe,
and says what it was."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jobmond.desk.refusals import listed, nearest, quoted
from jobmond.errors import ConfigError, Refused
from jobmond.model.state import Kind

ValidateId = Callable[[str, str, str], str | None]

_DIGITS = re.compile(r"[1-9][0-9]{0,9}")
_NEVER_NUMBERS = frozenset({Kind.IRIS, Kind.KUBERNETES})  # their ids have a user or a namespace


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """One configured cluster, as far as people's questions need it.

    `kind` is the configuration's word, `kinds` every source asked there (the built-in cluster
    `local` has local processes and, with `squeue` on PATH, SLURM).
    """

    name: str
    kind: str
    kinds: tuple[Kind, ...]
    active: bool = True
    hosts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    notes: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What to track. `guessed` says in a line what was not given; None where all was."""

    cluster: str
    kind: Kind
    native_id: str
    guessed: str | None = None

    @property
    def ref(self) -> str:
        return f"{self.cluster}/{self.native_id}"


def cluster_named(name: str, clusters: Sequence[ClusterInfo]) -> ClusterInfo:
    """Raises ConfigError: unknown; the nearest is named."""
    for cluster in clusters:
        if cluster.name == name:
            return cluster
    names = [c.name for c in clusters]
    hint = nearest(name, names) or f"; configured: {listed(names) or 'none'}"
    raise ConfigError(f"unknown cluster {quoted(name)}{hint}")


def aim(
    word: str,
    *,
    kind: Kind | None,
    cluster: str | None,
    clusters: Sequence[ClusterInfo],
    validate_id: ValidateId,
) -> Target:
    """The one (cluster, kind, native id) that `word` can mean.

    Raises:
        ConfigError: unknown cluster, a kind the cluster lacks, an id no source takes.
        Refused: more than one reading; all are named.
    """
    place, native = _split(word, cluster, clusters)
    if place is not None and kind is not None and kind not in place.kinds:
        has = listed(place.kinds)
        raise ConfigError(f"cluster {place.name} has no jobs of kind {kind}; it has: {has}")
    readings, complaints = _readings(native, kind, place, clusters, validate_id)
    if len(readings) == 1:
        return _said(readings[0], word, kind, place)
    if readings:
        options = listed(f"{t.ref} ({t.kind})" for t in readings)
        raise Refused(f"{quoted(word)} can mean {options}: say which with --cluster or --kind")
    if kind is not None and not any(kind in c.kinds for c in clusters):
        raise ConfigError(f"no cluster with jobs of kind {kind} is configured")
    if place is None and "/" in word:
        cluster_named(word.partition("/")[0], clusters)
    if complaints:
        raise ConfigError(complaints[0])
    raise ConfigError("no cluster is configured")


def _split(
    word: str, cluster: str | None, clusters: Sequence[ClusterInfo]
) -> tuple[ClusterInfo | None, str]:
    place = None if cluster is None else cluster_named(cluster, clusters)
    head, slash, rest = word.partition("/")
    if not slash or head not in {c.name for c in clusters}:
        return place, word
    named = cluster_named(head, clusters)
    if place is not None and place.name != named.name:
        # A namespace or a user of iris may be called like another cluster; the option decides then.
        if not {Kind.KUBERNETES, Kind.IRIS}.isdisjoint(place.kinds):
            return place, word
        raise ConfigError(f"{quoted(word)} is on {named.name}, but --cluster says {place.name}")
    return named, rest


def _readings(
    native: str,
    kind: Kind | None,
    place: ClusterInfo | None,
    clusters: Sequence[ClusterInfo],
    validate_id: ValidateId,
) -> tuple[list[Target], list[str]]:
    asked = [place] if place is not None else list(clusters)
    if kind is None and _DIGITS.fullmatch(native):
        asked = [c for c in asked if not _NEVER_NUMBERS.issuperset(c.kinds)] or asked
    readings: list[tuple[bool, Target]] = []
    complaints = []
    for c in asked:
        for k in c.kinds:
            if kind is not None and k is not kind:
                continue
            # A bare number is a process only where it cannot be anything else.
            sure = kind is Kind.LOCAL or all(_sources(x) == (Kind.LOCAL,) for x in asked)
            form = native
            if k is Kind.LOCAL and sure and _DIGITS.fullmatch(native):
                form = f"pid-{native}"
            elif k is Kind.IRIS:
                form = native.removeprefix("/")
            wrong = validate_id(c.name, k, form)
            if wrong is None:
                readings.append((c.active, Target(c.name, k, form)))
            else:
                complaints.append(wrong)
    active = [t for on, t in readings if on]
    return active or [t for _, t in readings], complaints


def _sources(cluster: ClusterInfo) -> tuple[Kind, ...]:
    """The kinds of jobs there whose ids have no form of their own."""
    return tuple(kind for kind in cluster.kinds if kind not in (Kind.NEL, Kind.LAUNCHER))


def _said(target: Target, word: str, kind: Kind | None, place: ClusterInfo | None) -> Target:
    missing = []
    if place is None:
        missing.append(f"cluster {target.cluster}")
    alone = place is not None and _sources(place) == (target.kind,)
    if kind is None and not alone:
        missing.append(f"kind {target.kind}")
    if not missing:
        return target
    said = f"{quoted(word)} taken as {target.ref}: {', '.join(missing)}"
    return Target(target.cluster, target.kind, target.native_id, said)
