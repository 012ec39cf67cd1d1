"""From an output file and the launcher's map to a sighting."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from jobmond.analysis.launcher import Launched
from jobmond.backends.launcher.jobs_map import Mapped
from jobmond.model.observation import Ask, Facts, Gone, Link, Part, Seen, Sighting, Unreachable
from jobmond.model.state import FILE_REF, State


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one experiment. `said` is None where its file was never read; `lacking`
    is why it was not read now."""

    said: Launched | None
    path: str | None
    mtime_at: datetime | None
    lacking: str | None
    jobs: Mapping[str, Sequence[Mapped]]
    hosts: frozenset[str]


def sighting(ask: Ask, known: Known, *, now: datetime, silent: timedelta) -> Sighting:
    """What is known of an experiment; its jobs in SLURM are asked about elsewhere."""
    said = known.said
    experiment = _experiment(ask, said)
    if said is not None and experiment != said.experiment and said.experiment is not None:
        said = None  # another experiment was launched into the same file since
    parts = _parts(said, known.jobs.get(experiment or "", ()))
    stranger = _stranger(said, known.jobs.get(experiment or "", ()), known.hosts)
    if stranger is not None:
        return Unreachable(
            f"its jobs run on {stranger}, which is no host of this cluster: add it where they do"
            " (--cluster), or name that host in the cluster's host"
        )
    if not parts and (said is None or known.lacking is not None):
        return Unreachable(_nothing(ask, known))
    if not parts and said is not None and _given_up(said, known, now, silent):
        return Gone("the launcher is gone and named no job", complete=False)
    return _seen(ask, experiment, said, known, parts)


def _experiment(ask: Ask, said: Launched | None) -> str | None:
    if not ask.native_id.startswith(FILE_REF):
        return ask.native_id
    return said.experiment if said is not None else None


def _stranger(said: Launched | None, jobs: Iterable[Mapped], hosts: frozenset[str]) -> str | None:
    named = [said.host] if said is not None and said.host else []
    named += [one.host for one in jobs if one.host]
    return next((host for host in named if host.lower() not in hosts), None)


def _nothing(ask: Ask, known: Known) -> str:
    if known.path is not None:
        return f"its output file {known.path}: {known.lacking or 'nothing was read of it'}"
    if ask.native_id.startswith(FILE_REF):
        return "its output file is not known: add it again with --log"
    return f"the launcher's map knows no job of {ask.native_id}, and no output file was named"


def _given_up(said: Launched, known: Known, now: datetime, silent: timedelta) -> bool:
    waits = said.state in (None, State.PENDING)
    return waits and known.mtime_at is not None and now - known.mtime_at >= silent


def _parts(said: Launched | None, jobs: Sequence[Mapped]) -> tuple[Part, ...]:
    """One a task, in their order: those the file tells, with what only the map knows."""
    parts: dict[str, Part] = {}
    for task in said.tasks if said is not None else ():
        if task.job is not None:
            proved = task.state if task.ended and task.state is not State.FAILED else None
            native = task.state.value if task.state is not None else ""
            parts[task.job] = Part(
                task.name or f"task {task.n}", native, proved, (Link(task.job),), folder=task.folder
            )
    for job in jobs:
        parts.setdefault(
            job.slurm_id,
            Part(job.task, links=(Link(job.slurm_id),), folder=job.folder),
        )
    if not parts or said is None:
        return tuple(parts.values())
    lacking = State.FAILED if said.error is not None else State.PENDING
    more = [Part(f"task {n}", "not submitted", lacking) for n in range(len(parts), said.planned)]
    return (*parts.values(), *more)


def _seen(
    ask: Ask,
    experiment: str | None,
    said: Launched | None,
    known: Known,
    parts: tuple[Part, ...],
) -> Seen:
    native_id = experiment or ask.native_id
    state = (said.state if said is not None else None) or State.PENDING
    return Seen(
        state=state,
        native=_native(said, state),
        birth=native_id,
        facts=Facts(
            name=_name(said, parts, known.path),
            submitted_at=began_at(native_id) if experiment else None,
            reason=said.error if said is not None and not parts else None,
            progress=_progress(said),
            log_path=known.path,
        ),
        proof="the launcher's output",
        native_id=native_id if native_id != ask.native_id else None,
        parts=parts,
    )


def _native(said: Launched | None, state: State) -> str:
    if said is None:
        return "launched"
    if not said.jobs:
        return {State.FAILED: "submission failed", State.COMPLETED: "dry run"}.get(
            state, "submitting"
        )
    return "DETACHED" if said.detached and state is State.PENDING else state.value


def _name(said: Launched | None, parts: Sequence[Part], path: str | None) -> str | None:
    names = [part.name for part in parts if part.links]
    if names:
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    if said is not None and said.tasks and said.tasks[0].name:
        return said.tasks[0].name
    return path.rpartition("/")[2] if path else None


def _progress(said: Launched | None) -> str | None:
    if said is None:
        return None
    failed = [text for verdict, text in said.reports if verdict == "FAIL"]
    if failed:
        return f"its report says FAIL: {failed[-1]}"
    return said.progress


def began_at(experiment: str) -> datetime:
    """When an experiment was made: its id ends in seconds, or nanoseconds, since 1970."""
    digits = experiment.rpartition("_")[2]
    return datetime.fromtimestamp(int(digits[:10] or 0), UTC)
