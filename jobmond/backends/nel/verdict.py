"""From what nel, its database and the folders of its jobs say to a sighting."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from jobmond.analysis.scores import results_scores
from jobmond.analysis.visible import readable
from jobmond.backends.nel.execdb import Launched
from jobmond.backends.nel.rows import LOCAL, OVER_SLURM, Row
from jobmond.model.observation import (
    Ask,
    Facts,
    Gone,
    Link,
    Part,
    Seen,
    Sighting,
    Unreachable,
)
from jobmond.model.state import Bucket, State

Folders = Mapping[str, Mapping[str, bytes]]

_CHAIN = 200
_NAME_CHARS = 120
# What nel and the cluster's own host may call this host.
THIS_HOST = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(slots=True)
class Told:
    """What is known of one invocation (or one job of it) beside the folders.

    `rows` is nel's answer, `error` why there is none; `swallowed` an error of ssh that nel made
    `failed` of. `known` is what the database holds, `readable` whether there is one. `foreign`
    says that the jobs are another cluster's.
    """

    id: str
    known: tuple[Launched, ...] = ()
    readable: bool = False
    rows: tuple[Row, ...] = ()
    error: str | None = None
    swallowed: str | None = None
    foreign: bool = False

    @property
    def jobs(self) -> Mapping[str, Row]:
        """Rows by job id: nel's own, and those of the database that nel did not answer about."""
        held = {job.row.job: job.row for job in self.known if job.row.job}
        return held | {row.job: row for row in self.rows if row.job}

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.folder for row in self.jobs.values() if row.folder))


def host_of(jobs: Iterable[Launched], hosts: frozenset[str], *, this_host: bool) -> str | None:
    """A host of `jobs` that is none of the cluster's; None where all are."""
    for job in jobs:
        host = (job.row.host or "").lower()
        ours = hosts | THIS_HOST if this_host else hosts
        if host and host not in ours:
            return host
        if not host and job.row.local and not this_host:
            return "the host of nel itself (its local executor)"
    return None


def sighting(ask: Ask, told: Told, folders: Folders) -> Sighting:
    """What is known of an invocation that is tracked."""
    jobs = told.jobs
    if told.foreign or (not jobs and told.error is not None):
        return Unreachable(told.error or "nel did not answer")
    if not jobs:
        return _without_jobs(told)
    local_only = all(row.slurm_id is None for row in jobs.values())
    if told.error is not None and local_only:
        return Unreachable(told.error)
    return _seen(told, folders, ask.native_id, earlier=ask.facts.scores)


def found_whole(told: Told, folders: Folders) -> Seen | None:
    """What is known of one that nobody asked about; its jobs in SLURM say how it is."""
    if not any(row.slurm_id for row in told.jobs.values()):
        return None
    return _seen(told, folders, told.id)


def _without_jobs(told: Told) -> Sighting:
    wrong = next((row for row in told.rows if row.error), None)
    if wrong is not None:
        return Unreachable(f"nel: {wrong.error}")
    if any(row.status == "not_found" for row in told.rows) and told.readable:
        return Gone("not_found")
    return Unreachable(told.error or "nel said nothing about it")


def _seen(
    told: Told, folders: Folders, asked: str, earlier: Mapping[str, float] | None = None
) -> Seen:
    jobs = told.jobs
    parts = tuple(_part(name, row, told, folders) for name, row in sorted(jobs.items(), key=_order))
    invocation, _, n = asked.partition(".")
    whole = next(iter(jobs.values())).invocation or invocation
    native_id = f"{whole}.{n}" if n else whole
    words = {part.native for part in parts if part.native}
    state = next((part.state for part in parts if part.state is not None), State.PENDING)
    return Seen(
        state=state,
        native=words.pop() if len(words) == 1 else ("mixed" if words else "launched"),
        birth=native_id,
        facts=_facts(told, jobs, folders, earlier),
        proof="nel status" if told.rows else "nel's database",
        native_id=native_id if native_id != asked else None,
        parts=parts,
    )


def _order(item: tuple[str, Row]) -> tuple[str, int]:
    invocation, _, n = item[0].partition(".")
    return invocation, int(n or 0)


def _part(name: str, row: Row, told: Told, folders: Folders) -> Part:
    seen = folders.get(row.folder or "", {})
    if row.slurm_id is None:
        return Part(name, row.status, _local(row, seen, told), folder=row.folder)
    # An error that nel swallowed is printed as `failed`; nothing else it says is then its word.
    state = OVER_SLURM.get(row.status) if told.swallowed is None else None
    ran = [row.slurm_id, *_chain(seen.get("chain", b""), row.slurm_id)]
    links = tuple(Link(one) for one in ran[-_CHAIN:])
    return Part(name, row.status, state, links, chained=True, folder=row.folder)


def _local(row: Row, seen: Mapping[str, bytes], told: Told) -> State | None:
    """A job of this host, by its files. Two of nel's words mean nothing by themselves."""
    if not row.local or told.swallowed is not None:
        return None
    if row.status == "pending" and ("none" in seen or "folder" not in seen):
        return None  # pending for ever: nel says so too where the folder is gone
    if row.status == "running" and "rebooted" in seen:
        return State.LOST  # running for ever: nobody is left to write the end down
    return LOCAL.get(row.status)


def _chain(listed: bytes, first: str) -> list[str]:
    """The jobs that really went on, in order; `first` is known from the launch."""
    words = [w for w in readable(listed).split() if w.isdecimal() and len(w) <= 12]
    return [one for one in dict.fromkeys(words) if one != first]


def _facts(
    told: Told,
    jobs: Mapping[str, Row],
    folders: Folders,
    earlier: Mapping[str, float] | None,
) -> Facts:
    times = [job.submitted_at for job in told.known if job.submitted_at is not None]
    tasks = list(dict.fromkeys(job.task for job in told.known if job.task))
    users = {row.user for row in jobs.values() if row.user}
    scores = {**(earlier or {}), **_scores(jobs.values(), folders)}
    return Facts(
        name=", ".join(tasks)[:_NAME_CHARS] or None,
        user=users.pop() if len(users) == 1 else None,
        workdir=next((row.folder for row in jobs.values() if row.folder), None),
        submitted_at=min(times, default=None),
        progress=_progress(jobs.values(), folders),
        scores=scores or None,
        bucket=Bucket.EVAL,
    )


def _progress(jobs: Iterable[Row], folders: Folders) -> str | None:
    counts = [row.done for row in jobs if row.done is not None]
    for row in jobs:
        said = readable(folders.get(row.folder or "", {}).get("done", b"")).strip()
        if row.done is None and said.isdecimal():
            counts.append(int(said))
    return f"{sum(counts)} requests answered" if counts else None


def _scores(jobs: Iterable[Row], folders: Folders) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in jobs:
        held = folders.get(row.folder or "", {})
        if "results" in held:
            framework = _mapping(_yaml(held.get("config", b""))).get("framework_name")
            for score in results_scores(_yaml(held["results"]), _word(framework)):
                found.setdefault(score.name, score.value)
    return found


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _yaml(text: bytes) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
