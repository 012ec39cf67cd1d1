"""What the desk needs of the store and of the sweeps, so that a double can stand in for both."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ParamSpec, Protocol, TypeVar

from jobmond.desk.peer import Peer
from jobmond.desk.requests import AddRequest, ImportRequest
from jobmond.model.commit import Added
from jobmond.model.job import Choices, Classified, ClusterHealth, Job
from jobmond.model.observation import Facts, Seen
from jobmond.model.outcome import Failure, Followup, News, SinkStanding, Transition
from jobmond.model.registered import Registered, Stage, WatchedFile
from jobmond.model.state import Kind

P = ParamSpec("P")
R = TypeVar("R")


class Registers(Protocol):
    """The store's synchronous methods about registry files; each is one transaction."""

    def entries(self, path: str) -> Sequence[Registered]: ...

    def add(
        self,
        path: str,
        key: str,
        cluster: str,
        kind: Kind,
        native_id: str,
        *,
        choices: Choices,
        classified: Classified,
        submitted_at: datetime | None,
        last_status: str | None,
        now: datetime,
    ) -> Added: ...

    def join(
        self, path: str, key: str, job_id: int, *, last_status: str | None, now: datetime
    ) -> None: ...

    def move(self, path: str, keys: Collection[str], stage: Stage, now: datetime) -> None: ...

    def forget(self, path: str, key: str) -> None: ...

    def needed(self, job_id: int) -> bool: ...

    def hold(self, job_id: int) -> None: ...

    def wanted(self, path: str) -> Mapping[str, str | None]: ...

    def stood(self, path: str, written: Mapping[str, str | None], now: datetime) -> None: ...

    def owe(self, path: str, now: datetime) -> None: ...

    def files(self) -> Sequence[WatchedFile]: ...

    def watch(self, path: str, *, by: str, now: datetime) -> None: ...


class Failures(Protocol):
    """The store's synchronous method about failures."""

    def since(self, at: datetime, *, limit: int) -> Sequence[Failure]: ...


class Shelf(Protocol):
    """The store's synchronous methods that answer people; each is one transaction."""

    @property
    def registries(self) -> Registers: ...

    @property
    def failures(self) -> Failures: ...

    def find(self, word: str) -> Sequence[Job]: ...

    def add(
        self,
        cluster: str,
        kind: Kind,
        native_id: str,
        *,
        choices: Choices,
        classified: Classified,
        birth: str | None,
        facts: Facts,
        now: datetime,
        submitted_at: datetime | None,
    ) -> Added: ...

    def known(
        self, cluster: str, kind: Kind, native_ids: Sequence[str]
    ) -> Collection[tuple[str, str | None]]: ...

    def choose(self, job_id: int, choices: Choices, classified: Classified) -> object: ...

    def untrack(self, job_id: int, *, by: str, now: datetime) -> object: ...

    def jobs(self, *, recent_since: datetime) -> Sequence[Job]: ...

    def job(self, job_id: int) -> Job | None: ...

    def lives(self, run: str, cluster: str) -> Sequence[Job]: ...

    def transitions(self, job_id: int) -> Sequence[Transition]: ...

    def history(
        self, *, since: datetime | None, job_id: int | None, limit: int
    ) -> Sequence[Job]: ...

    def events(
        self, *, after_key: str | None, since: datetime | None, limit: int
    ) -> Sequence[News]: ...

    def clusters(self, now: datetime) -> Sequence[ClusterHealth]: ...

    def standings(self) -> Sequence[SinkStanding]: ...

    def followups(self, *, all: bool) -> Sequence[Followup]: ...

    def close_followup(
        self, followup_id: int, *, by: str, verdict: str | None, note: str | None, now: datetime
    ) -> object: ...

    def audit(
        self, *, at: datetime, uid: int, action: str, subject: str, detail: Mapping[str, Any]
    ) -> object: ...

    def swept_at(self) -> Mapping[str, datetime]: ...

    def superseded(self, jobs: Sequence[Job]) -> Collection[int]: ...


class Handover(Protocol):
    """Registry files handed in and out."""

    async def take_in(self, request: ImportRequest, peer: Peer) -> Mapping[str, Any]: ...

    async def give_out(self, peer: Peer) -> Mapping[str, Any]: ...


class Call(Protocol):
    """Runs a synchronous function in the store's one thread."""

    def __call__(self, fn: Callable[P, R], /, *args: P.args, **kw: P.kwargs) -> Awaitable[R]: ...


@dataclass(frozen=True, slots=True)
class Found:
    """A job that a sweep saw and nobody registered, as it was at that sweep (`at`)."""

    cluster: str
    kind: Kind
    native_id: str
    seen: Seen
    at: datetime

    @property
    def ref(self) -> str:
        return f"{self.cluster}/{self.native_id}"


class Locate(Protocol):
    """Says on which cluster the jobs of a launcher run, where it alone can tell."""

    def __call__(self, word: str, request: AddRequest, /) -> Awaitable[str | None]: ...


async def nobody_knows(word: str, request: AddRequest) -> str | None:
    """Where no launcher is asked."""
    return None
