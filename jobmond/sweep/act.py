"""The only place that cancels a job: once, after its evidence is on disk, as the policy allows."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from jobmond.analysis.acting import hindrance
from jobmond.analysis.chains import waits_for
from jobmond.analysis.judge import standing
from jobmond.analysis.settle import Found
from jobmond.errors import TransportError
from jobmond.model.intent import Intent, Stage, Stop, Stopped, Target, Unsettled
from jobmond.model.job import Job
from jobmond.model.state import TERMINAL, Kind, State
from jobmond.ports import Canceller, Clock
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.conclude import AGENT_LOG

journal = structlog.get_logger("jobmond.act")

Call = Callable[..., Awaitable[Any]]

ATTEMPTS = 3  # a scheduler that took the request and does not act on it is for a person


class Ledger(Protocol):
    """The part of the store that cancellations live in."""

    def unsettled_intents(self, cluster: str) -> Sequence[Unsettled]: ...
    def stands(self, key: str, sink: str) -> bool: ...
    def move_intent(
        self,
        intent_id: int,
        stage: Stage,
        *,
        detail: str | None = None,
        asked_at: datetime | None = None,
    ) -> None: ...
    def audit(
        self,
        *,
        at: datetime,
        uid: int | None,
        action: str,
        subject: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Actor:
    """Carries intents one stage on, after a sweep that asked the cluster.

    `patience` is how long a job may take to save after the first signal: another would cut that
    short.
    """

    ledger: Ledger
    call: Call
    clock: Clock
    patience: timedelta = timedelta(minutes=10)

    async def act(self, cluster: Cluster, waiting: Sequence[Found]) -> None:
        """`waiting` are the PENDING jobs that the sweep saw, tracked or not."""
        done: set[int] = set()
        # Read again for each: to cancel one can take a minute, and a label may come in it.
        while (one := await self._after(done, cluster)) is not None:
            intent, job = one.intent, one.job
            done.add(intent.id)
            if job.state in TERMINAL or not job.tracked:
                await self._settle(intent, job, Stage.CONFIRMED, f"{job.state.value}")
            elif job.stale or job.state is State.UNKNOWN:
                continue  # what it does now was not seen
            elif not any(s.rule == intent.rule for s in standing(job)):
                await self._settle(intent, job, Stage.DROPPED, "it began anew since")
            elif (hindered := hindrance(job, cluster.leave)) is not None:
                await self._settle(intent, job, Stage.DROPPED, hindered)
            elif intent.asked_at and self.clock.now() - intent.asked_at < self.patience:
                continue
            elif intent.attempts >= ATTEMPTS:
                await self._settle(intent, job, Stage.DROPPED, "it runs on, however often asked")
            elif await self.call(self.ledger.stands, intent.evidence, AGENT_LOG):
                await self._ask(cluster, one, waiting)

    async def _after(self, done: set[int], cluster: Cluster) -> Unsettled | None:
        found = await self.call(self.ledger.unsettled_intents, cluster.name)
        return next((one for one in found if one.intent.id not in done), None)

    async def _ask(self, cluster: Cluster, one: Unsettled, waiting: Sequence[Found]) -> None:
        """Put down that the scheduler is asked, then ask: never the other way round."""
        intent, job = one.intent, one.job
        backend: object = cluster.backends.get(job.kind)
        if not isinstance(backend, Canceller) or job.birth is None:
            await self._settle(intent, job, Stage.DROPPED, "its source cannot cancel")
            return
        targets = [*successors(job, waiting), Target(job.native_id, job.birth)]
        if kept := [t.native_id for t in targets if t.waiting and t.native_id in one.spared]:
            why = f"{kept[0]}, which waits for it, is labelled no-kill or spike-mitigation"
            await self._settle(intent, job, Stage.DROPPED, why)
            return
        now = self.clock.now()
        await self.call(self.ledger.move_intent, intent.id, Stage.ASKED, asked_at=now)
        await self._note("cancel", job, intent, {"targets": [t.native_id for t in targets]})
        try:
            told = await backend.cancel(targets, timeout_s=cluster.budget_s / 2)
        except TransportError as error:
            journal.warning(
                "cancel: no answer, the next sweep looks", job=job.ref, error=str(error)
            )
            return
        words = {native_id: _words(stopped) for native_id, stopped in told.items()}
        journal.warning("cancelled after a collapse", job=job.ref, answers=words)
        await self._note("cancelled", job, intent, words)
        mine = told.get(job.native_id)
        if mine is not None and mine.stop is Stop.ANOTHER:
            await self._settle(intent, job, Stage.DROPPED, "its id belongs to another job by now")
        else:
            detail = _words(mine) if mine is not None else "no answer"
            await self.call(self.ledger.move_intent, intent.id, Stage.ASKED, detail=detail)

    async def _settle(self, intent: Intent, job: Job, stage: Stage, why: str) -> None:
        await self.call(self.ledger.move_intent, intent.id, stage, detail=why)
        await self._note(f"cancel-{stage.value}", job, intent, {"why": why})
        if stage is Stage.DROPPED:
            journal.warning("not cancelled after all", job=job.ref, why=why)

    async def _note(self, action: str, job: Job, intent: Intent, detail: Mapping[str, Any]) -> None:
        said = {"rule": intent.rule, "step": intent.step, "allowed_by": intent.allowed_by}
        await self.call(
            self.ledger.audit,
            at=self.clock.now(),
            uid=None,
            action=action,
            subject=job.ref,
            detail={**said, **detail},
        )


def successors(job: Job, waiting: Iterable[Found]) -> list[Target]:
    """Pending links of `job`'s chain, the last first: what would start once it is gone.

    Only those that share its name: a job of another kind may be meant to run afterwards.
    """
    pool = {
        one.native_id: one
        for one in waiting
        if one.kind is Kind.SLURM
        and one.seen.state is State.PENDING
        and one.seen.facts.name == job.facts.name
        and one.seen.facts.user == job.facts.user
    }
    chain: list[Target] = []
    before = {job.native_id}
    while before:
        links = [i for i, one in pool.items() if before & set(waits_for(one.seen.facts.dependency))]
        chain += [Target(i, pool.pop(i).seen.birth, waiting=True) for i in links]
        before = set(links)
    return chain[::-1]


def _words(stopped: Stopped) -> str:
    return f"{stopped.stop.value} {stopped.said}".strip()
