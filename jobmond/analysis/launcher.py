"""What an output file of the experiment launcher (NeMo-Run) has said so far, as a value.

Its exit code and tracebacks in it prove nothing. `jobmond.analysis.launcher_lines` reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from jobmond.model.state import State

ENDED = {
    "SUCCEEDED": State.COMPLETED,
    "FAILED": State.FAILED,
    "CANCELLED": State.CANCELLED,
}
LIVE = {"PENDING": State.PENDING, "SUBMITTED": State.PENDING, "RUNNING": State.RUNNING}


@dataclass(frozen=True, slots=True)
class LaunchedTask:
    """One task as the launcher knows it: its place, its job in SLURM, its folder there, and the
    launcher's last word about it (`state` None where it said none)."""

    n: int
    name: str | None = None
    job: str | None = None
    folder: str | None = None
    state: State | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Launched:
    """All that an output file has said so far.

    `host` is where it submits to, `planned` how many tasks there will be, as far as is known.
    `error` is why nothing, or not all, was submitted. `calibrated` is (done, total) of the
    calibration's bar. `dry` says that nothing was to be submitted, `spoken` that a job has printed
    something, `gave_up` that the launcher ended because SLURM did not answer it, `may_fail` that a
    task goes on after one that failed.
    """

    experiment: str | None = None
    host: str | None = None
    tasks: tuple[LaunchedTask, ...] = ()
    planned: int = 0
    error: str | None = None
    detached: bool = False
    dry: bool = False
    container: str | None = None
    image: str | None = None
    calibrating: bool = False
    calibrated: tuple[int, int] | None = None
    exported: str | None = None
    reports: tuple[tuple[str, str], ...] = ()
    spoken: bool = False
    gave_up: bool = False
    may_fail: bool = False

    @property
    def jobs(self) -> tuple[LaunchedTask, ...]:
        """The tasks that have a job in SLURM."""
        return tuple(task for task in self.tasks if task.job is not None)

    @property
    def state(self) -> State | None:
        """How things stand by the file alone; None where it says nothing.

        Only a fast path: whoever knows the jobs' ids asks SLURM.
        """
        return self._submitted() if self.jobs else self._alone()

    def _alone(self) -> State | None:
        """Without any job."""
        if self.error is not None:
            return State.FAILED
        if self.dry:
            return State.COMPLETED
        return State.PENDING if self.experiment is not None else None

    def _submitted(self) -> State:
        states = [task.state or State.PENDING for task in self.jobs]
        failed = State.FAILED in states
        if State.RUNNING in states or (self.spoken and not any(t.ended for t in self.jobs)):
            return State.RUNNING
        if not all(task.ended for task in self.jobs):
            # What waits for a task that failed waits for ever, and so does the launcher.
            return State.FAILED if failed and not self.may_fail else State.PENDING
        if len(self.jobs) < self.planned and not failed:
            return State.FAILED if self.error is not None else State.PENDING
        worst = (State.FAILED, State.CANCELLED)
        return next((state for state in worst if state in states), State.COMPLETED)

    @property
    def phase(self) -> str:
        """`queued bring-up training finishing done failed`; training is calibration here."""
        state = self.state
        if state is State.COMPLETED:
            return "done"
        if state in (State.FAILED, State.CANCELLED):
            return "failed"
        if not self.jobs:
            return "bring-up"
        if state is State.PENDING and not self.spoken:
            return "queued"
        if self.exported is not None:
            return "finishing"
        return "training" if self.calibrated is not None else "bring-up"

    @property
    def progress(self) -> str | None:
        """What it is doing, in a few words; None where that is not known."""
        if self.exported is not None:
            return f"exported to {self.exported}"
        if self.calibrated is not None:
            done, total = self.calibrated
            if not self.calibrating or done >= total:
                return "calibration complete, exporting checkpoint"
            return f"calibrating {done}/{total}"
        if self.container == "importing":
            return f"importing container {self.image}"
        if self.container == "failed":
            return "container could not be started"
        return "job is up" if self.spoken else None


def launched(memory: Mapping[str, Any]) -> Launched:
    """The memory of `take` as a value."""
    jobs: Mapping[str, str | None] = memory.get("jobs", {})
    named: Mapping[str, Mapping[str, Any]] = memory.get("tasks", {})
    tasks = {int(n): _task(int(n), task, jobs) for n, task in named.items()}
    for job in jobs:
        if all(task.job != job for task in tasks.values()):
            n = next(n for n in range(len(tasks) + 1) if n not in tasks or tasks[n].job is None)
            tasks[n] = replace(tasks.get(n) or LaunchedTask(n), **_known(job, jobs))
    bar = memory.get("bar")
    return Launched(
        experiment=memory.get("experiment"),
        host=memory.get("host"),
        tasks=tuple(tasks[n] for n in sorted(tasks)),
        planned=memory.get("planned", 0),
        error=memory.get("error"),
        detached=memory.get("detached", False),
        dry=memory.get("dry", False),
        container=memory.get("container"),
        image=memory.get("image"),
        calibrating=memory.get("calibrating", False),
        calibrated=(bar[0], bar[1]) if bar else None,
        exported=memory.get("exported"),
        reports=tuple((verdict, text) for verdict, text in memory.get("reports", ())),
        spoken=memory.get("spoken", False),
        gave_up=memory.get("gave_up", False),
        may_fail=memory.get("may_fail", False),
    )


def _task(n: int, told: Mapping[str, Any], jobs: Mapping[str, str | None]) -> LaunchedTask:
    task = LaunchedTask(n, told.get("name"), folder=told.get("remote"))
    job = told.get("job")
    return task if job is None else replace(task, **_known(job, jobs))


def _known(job: str, jobs: Mapping[str, str | None]) -> dict[str, Any]:
    word = jobs.get(job) or ""
    state = ENDED.get(word) or LIVE.get(word)
    return {"job": job, "state": state, "ended": word in ENDED}


def events(said: Launched) -> list[dict[str, Any]]:
    """What happened, as plain JSON objects, each kind at most once a task, in order."""
    found: list[dict[str, Any]] = []
    if said.experiment is not None:
        found.append({"event": "experiment", "id": said.experiment})
    found += [
        {"event": "slurm-job", "task": task.n, "name": task.name, "id": task.job}
        for task in said.jobs
    ]
    if said.container is not None:
        found.append({"event": "container", "state": said.container, "image": said.image})
    if said.calibrated is not None:
        done, total = said.calibrated
        found.append({"event": "calibration", "done": done, "total": total})
    if said.exported is not None:
        found.append({"event": "export", "path": said.exported})
    found += [{"event": "report", "verdict": v, "text": text} for v, text in said.reports]
    found += [
        {"event": "finished", "task": task.n, "id": task.job, "state": task.state}
        for task in said.jobs
        if task.ended
    ]
    if said.error is not None:
        found.append({"event": "error", "text": said.error})
    return found
