"""`jobmonctl wait`: come back when jobs have got somewhere."""

import re
from dataclasses import dataclass
from typing import Any

import click

from jobmond.cli.session import Session, say, show_json, surface
from jobmond.cli.session import show as show_lines
from jobmond.cli.wire import ANSWER_S
from jobmond.errors import ConfigError, DaemonUnreachable
from jobmond.model.state import TERMINAL, State
from jobmond.reports.choose import nearest
from jobmond.reports.times import instant, seconds

_LONGEST_S = 30.0
_AGAIN_S = 5.0
_PATIENCE_S = 600.0
TIMED_OUT = 5


@dataclass(frozen=True, slots=True)
class Goal:
    """What is waited for: the end (both None), a state, or a step."""

    state: State | None = None
    step: int | None = None

    @classmethod
    def read(cls, text: str) -> "Goal":
        """`end`, a state, or `step=N`.

        Raises:
            ConfigError: none of these.
        """
        if text.lower() == "end":
            return cls()
        if match := re.fullmatch(r"step=(\d{1,12})", text):
            return cls(step=int(match[1]))
        word = text.upper()
        if word not in set(State):
            raise ConfigError(
                f"--until knows end, a state or step=N, not {text!r}{nearest(word, list(State))}"
            )
        return cls(state=State(word))

    def reached(self, job: dict[str, Any]) -> bool | None:
        """Whether the job got there; None while it still may. A completed job has been anywhere."""
        state = job["state"]
        if self.state is not None and state == self.state:
            return True
        if self.step is not None and (job.get("step") or 0) >= self.step:
            return True
        if state in TERMINAL:
            passed = self.state is None or self.state in (State.PENDING, State.RUNNING)
            return state == State.COMPLETED and passed
        return None if job.get("tracked") and job.get("asked_about", True) else False


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@click.option("--until", default="end", metavar="WHAT", help="end, a state, or step=N.")
@click.option("--timeout", metavar="T", help="Give up after 90s, 10m, 2h …")
@surface
def wait(session: Session, jobs: tuple[str, ...], until: str, timeout: str | None) -> int:
    """Wait for jobs: 0 all completed (or got there), 1 one ended otherwise, 5 timed out.

    A job that a successor continues is waited for under the successor.
    """
    goal = Goal.read(until)
    try:
        limit = seconds(timeout) if timeout is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    deadline = None if limit is None else session.monotonic() + limit
    return _Wait(session, goal, deadline).run(list(dict.fromkeys(jobs)))


class _Wait:
    def __init__(self, session: Session, goal: Goal, deadline: float | None) -> None:
        self._session = session
        self._goal = goal
        self._deadline = deadline
        self._place: dict[str, object] = {"since": instant(session.now())}

    def run(self, words: list[str]) -> int:
        code = 0
        waiting = [self._settled(word, {word}) for word in words]
        while True:
            for job, verdict in waiting:
                if verdict is not None:
                    code = code if verdict else 1
                    self._tell(job)
            rest = [job for job, verdict in waiting if verdict is None]
            if not rest:
                return code
            if self._out_of_time():
                for job in rest:
                    say(f"{job['ref']} is still {job['state']}")
                return TIMED_OUT
            self._until_something_happens()
            waiting = [self._patiently(job["ref"]) for job in rest]

    def _settled(self, word: str, passed: set[str]) -> tuple[dict[str, Any], bool | None]:
        job = self._session.daemon().get("/v1/job", {"job": word})["job"]
        successor = job.get("successor")
        ended = job["state"] in TERMINAL and job["state"] != self._goal.state
        if ended and job["state"] != State.COMPLETED and successor and successor not in passed:
            return self._settled(successor, passed | {job["ref"], successor})
        return job, self._goal.reached(job)

    def _patiently(self, ref: str) -> tuple[dict[str, Any], bool | None]:
        """Over a restart of the daemon, which must not end a wait of days."""
        started, said = self._session.monotonic(), False
        while True:
            try:
                return self._settled(ref, {ref})
            except DaemonUnreachable as unreachable:
                waited = self._session.monotonic() - started
                if waited >= _PATIENCE_S or self._out_of_time():
                    raise
                if not said:
                    say(f"{unreachable}; waiting for it")
                said = True
                self._session.pause(_AGAIN_S)

    def _until_something_happens(self) -> None:
        started = self._session.monotonic()
        wait_s = _LONGEST_S
        if self._deadline is not None:
            wait_s = max(0.0, min(wait_s, self._deadline - started))
        query = {**self._place, "wait_s": max(1, int(wait_s)), "limit": 1000}
        try:
            answer = self._session.daemon().get("/v1/events", query, timeout_s=ANSWER_S + wait_s)
        except DaemonUnreachable:
            return
        if answer.get("last"):
            self._place = {"after": answer["last"]}
        if not answer["events"] and self._session.monotonic() - started < 1:
            self._session.pause(min(1.0, wait_s))

    def _out_of_time(self) -> bool:
        return self._deadline is not None and self._session.monotonic() >= self._deadline

    def _tell(self, job: dict[str, Any]) -> None:
        if self._session.as_json:
            show_json(job)
            return
        untracked = "" if job["state"] in TERMINAL else _forgotten(job)
        code = f", exit code {job['exit_code']}" if job.get("exit_code") is not None else ""
        text = f"{job['ref']} {job['state']}{code}{untracked}"
        show_lines([self._session.view().safe(text)])


def _forgotten(job: dict[str, Any]) -> str:
    """Why nobody will ever hear of its end."""
    if not job.get("tracked"):
        return ", no longer tracked"
    if not job.get("asked_about", True):
        return f", and nobody asks about it: {job['cluster']} is not in the configuration"
    return ""
