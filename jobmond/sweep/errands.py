"""Commands that people gave for what is owed: each run once, in the background, its end kept."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from jobmond.analysis.instants import instant
from jobmond.analysis.mask import mask
from jobmond.analysis.visible import readable, visible
from jobmond.model.outcome import Followup
from jobmond.ports import Clock
from jobmond.sweep.trouble import Troubles

journal = structlog.get_logger("jobmond.errands")

_WORD = re.compile(r"\{([a-z_]+)\}")
_SAID_CHARS = 300
_GRACE_S = 2.0
INTERRUPTED = "jobmond was stopped while it ran; it is not run again"


class Ledger(Protocol):
    """Where follow-ups are kept."""

    def followups(self, *, all: bool = False) -> Sequence[Followup]: ...
    def note_followup(self, followup_id: int, evidence: Mapping[str, Any]) -> None: ...
    def audit(
        self,
        *,
        at: Any,
        uid: int | None,
        action: str,
        subject: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None: ...


class Ended(Protocol):
    """What a program had to say."""

    @property
    def status(self) -> int | None: ...
    @property
    def stdout(self) -> bytes: ...
    @property
    def stderr(self) -> bytes: ...


class Run(Protocol):
    """Runs a program without a shell; raises OSError where it cannot be started, TimeoutError
    where it did not end in time and was ended.
    """

    async def __call__(
        self,
        command: Sequence[str],
        *,
        timeout_s: float,
        grace_s: float,
        env: Mapping[str, str] | None = None,
    ) -> Ended: ...


@dataclass(frozen=True, slots=True)
class Errand:
    """A command line and how long it may take. `{path}` and the like stand for a follow-up's."""

    command: Sequence[str]
    timeout_s: float


class Errands:
    """Runs the commands of open follow-ups, one after the other; nothing waits for them."""

    def __init__(
        self,
        ledger: Ledger,
        call: Callable[..., Awaitable[Any]],
        clock: Clock,
        run: Run,
        *,
        env: Mapping[str, str],
        troubles: Troubles | None = None,
    ) -> None:
        self._ledger, self._call, self._clock, self._run = ledger, call, clock, run
        self._env = dict(env)
        self._troubles = troubles or Troubles()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    def wake(self, errands: Mapping[str, Errand]) -> None:
        """See to what is owed now, by kind; what is in hand goes on."""
        if errands and not self._stopping and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._round(errands), name="commands of follow-ups")
            self._task.add_done_callback(self._ended)

    async def idle(self) -> None:
        """Wait until all are done; each has its time."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self) -> None:
        """End what runs, and begin nothing more."""
        self._stopping = True
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _round(self, errands: Mapping[str, Errand]) -> None:
        for owed in await self._call(self._ledger.followups):
            errand, known = errands.get(owed.kind), owed.evidence.get("command")
            if known is not None:
                if "ended_at" not in known:
                    await self._note(owed, {**known, **self._end(error=INTERRUPTED)})
            elif errand is not None and not owed.evidence.get("held"):
                await self._do(owed, errand)

    async def _do(self, owed: Followup, errand: Errand) -> None:
        """At most once: that it begins is kept before it does."""
        begun = {"program": errand.command[0], "began_at": instant(self._clock.now())}
        words = filled(errand.command, owed)
        if words is None:
            await self._note(owed, {**begun, **self._end(error="not run: no tree is known")})
            return
        await self._note(owed, begun)
        env = {**self._env, "JOBMOND_FOLLOWUP_ID": str(owed.id), "JOBMOND_FOLLOWUP_REF": owed.ref}
        try:
            said = await self._run(words, timeout_s=errand.timeout_s, grace_s=_GRACE_S, env=env)
        except TimeoutError:
            ended = self._end(error=f"did not end within {errand.timeout_s:g} s, and was ended")
        except OSError as error:
            ended = self._end(error=f"cannot be started: {error.strerror or error}")
        else:
            ended = self._end(status=said.status, said=_last_line(said))
        await self._note(owed, {**begun, **ended})

    def _end(self, **outcome: Any) -> dict[str, Any]:
        return {"ended_at": instant(self._clock.now()), **outcome}

    async def _note(self, owed: Followup, command: Mapping[str, Any]) -> None:
        await self._call(self._ledger.note_followup, owed.id, {"command": command})
        await self._call(
            self._ledger.audit,
            at=self._clock.now(),
            uid=None,
            action="followup-command",
            subject=owed.ref,
            detail={"id": owed.id, "kind": owed.kind, **command},
        )
        journal.info("command of a follow-up", followup=owed.id, ref=owed.ref, **command)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._troubles.worked(task.get_name())
        else:
            self._troubles.failed(task.get_name(), error)


def filled(command: Sequence[str], owed: Followup) -> list[str] | None:
    """The command line for one follow-up, word by word, for no shell; None where it asks for a
    path and none is known.
    """
    cluster, _, native_id = owed.ref.partition("/")
    path = owed.evidence.get("path")
    known = {
        "id": str(owed.id),
        "kind": owed.kind,
        "ref": owed.ref,
        "cluster": cluster,
        "native_id": native_id,
        "path": str(path or ""),
    }
    if not path and any("{path}" in word for word in command):
        return None
    return [_WORD.sub(lambda found: known.get(found[1], found[0]), word) for word in command]


def _last_line(said: Ended) -> str:
    for raw in (said.stderr, said.stdout):
        lines = [line for line in readable(raw).splitlines() if line.strip()]
        if lines:
            return mask(visible(lines[-1].strip()))[:_SAID_CHARS]
    return ""
