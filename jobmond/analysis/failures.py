"""The failures of a cluster: which are alike, which came before, how often each came."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobmond.analysis.recurrence import Earlier, recurrence
from jobmond.model.job import Job
from jobmond.model.observation import Facts
from jobmond.model.outcome import Failure, Recurrence

_UNKNOWN = "unknown"
_NAMED = 5  # runs and jobs of a group that are named

_Who = tuple[str, str | None]


def failure_of(job: Job, now: datetime) -> Failure | None:
    """`job`, which has ended, as a failure; None where it has no diagnosis."""
    if job.diagnosis is None:
        return None
    facts = job.facts
    ended_at = job.ended_at or facts.ended_at or now
    return Failure(
        ref=job.ref,
        birth=job.birth,
        name=job.name,
        run=job.run,
        config=facts.command,
        state=job.state,
        cause=job.diagnosis.cause,
        fingerprint=job.diagnosis.fingerprint,
        summary=job.diagnosis.summary,
        at=ended_at,
        elapsed_s=lived_s(facts, ended_at),
        entry=job.agent_log,
    )


def lived_s(facts: Facts, ended_at: datetime) -> int | None:
    """How long a job that ended at `ended_at` had run; None where nobody knows."""
    if facts.elapsed_s is not None or facts.started_at is None:
        return facts.elapsed_s
    return max(0, int((ended_at - facts.started_at).total_seconds()))


class History:
    """Failures of one cluster, looked up by run, configuration and signature."""

    def __init__(self, failures: Iterable[Failure] = ()) -> None:
        self._by_run: defaultdict[str, dict[_Who, Failure]] = defaultdict(dict)
        self._by_config: defaultdict[str, dict[_Who, Failure]] = defaultdict(dict)
        self._by_print: defaultdict[str, dict[_Who, Failure]] = defaultdict(dict)
        for failure in failures:
            self.add(failure)

    def add(self, failure: Failure) -> None:
        """One more, which may be known with another cause."""
        who = failure.ref, failure.birth
        self._by_run[failure.run][who] = failure
        if failure.config:
            self._by_config[failure.config][who] = failure
        if failure.fingerprint:
            self._by_print[failure.fingerprint][who] = failure

    def standing(self, failed: Failure) -> Recurrence | None:
        """How `failed` stands among those before it; None where it has no signature."""
        if failed.fingerprint is None:
            return None
        own = self._own(failed)
        return recurrence(
            [Earlier(f.at, f.fingerprint or "", f.elapsed_s, f.ref) for f in own.values()],
            fingerprint=failed.fingerprint,
            at=failed.at,
            elapsed_s=failed.elapsed_s,
            others=[] if failed.cause == _UNKNOWN else self._others(failed, own),
        )

    def alike(self, failed: Failure) -> list[Failure]:
        """Earlier failures with its signature, its own run's first, the newest first."""
        if failed.fingerprint is None:
            return []
        same = self._by_print.get(failed.fingerprint, {}).values()
        own = self._own(failed)
        found = [f for f in same if f.at <= failed.at and not _is(f, failed)]
        found.sort(key=lambda f: ((f.ref, f.birth) in own, f.at), reverse=True)
        return found

    def before(self, failed: Failure) -> Failure | None:
        """The failure of its run or configuration that came before it."""
        earlier = [f for f in self._own(failed).values() if f.at < failed.at]
        return max(earlier, key=lambda f: f.at, default=None)

    def _own(self, failed: Failure) -> dict[_Who, Failure]:
        own = dict(self._by_run.get(failed.run, {}))
        own |= self._by_config.get(failed.config or "", {})
        own.pop((failed.ref, failed.birth), None)
        return own

    def _others(self, failed: Failure, own: Iterable[_Who]) -> list[datetime]:
        known = {*own, (failed.ref, failed.birth)}
        same = self._by_print.get(failed.fingerprint or "", {})
        return [f.at for who, f in same.items() if who not in known]


def _is(one: Failure, other: Failure) -> bool:
    return (one.ref, one.birth) == (other.ref, other.birth)


@dataclass(frozen=True, slots=True)
class Group:
    """Failures that have one signature. `newest` is the last of them, `runs` the runs of the last
    ones, `interval_s` how long they lived where that was about the same.
    """

    fingerprint: str
    count: int
    first_at: datetime
    newest: Failure
    runs: tuple[str, ...]
    refs: tuple[str, ...]
    clusters: tuple[str, ...]
    recurrence: Recurrence


def grouped(failures: Iterable[Failure]) -> list[Group]:
    """By signature, the one that came last first. What has no signature stands by its cause."""
    groups: dict[str, list[Failure]] = {}
    for failure in failures:
        groups.setdefault(failure.fingerprint or f"{failure.cause}:-:-:-", []).append(failure)
    found = [_group(name, sorted(held, key=lambda f: f.at)) for name, held in groups.items()]
    return sorted(found, key=lambda group: group.newest.at, reverse=True)


def _group(fingerprint: str, held: Sequence[Failure]) -> Group:
    newest = held[-1]
    earlier = [Earlier(f.at, fingerprint, f.elapsed_s) for f in held[:-1]]
    return Group(
        fingerprint=fingerprint,
        count=len(held),
        first_at=held[0].at,
        newest=newest,
        runs=tuple(dict.fromkeys(f.run for f in reversed(held)))[:_NAMED],
        refs=tuple(dict.fromkeys(f.ref for f in reversed(held)))[:_NAMED],
        clusters=tuple(dict.fromkeys(f.cluster for f in reversed(held))),
        recurrence=recurrence(
            earlier, fingerprint=fingerprint, at=newest.at, elapsed_s=newest.elapsed_s
        ),
    )
