"""What the inside asks of the outside."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar, runtime_checkable

from jobmond.model.intent import Stopped, Target
from jobmond.model.job import Job
from jobmond.model.metrics import Event, Memory, RunSeries, Segment
from jobmond.model.observation import Ask, LogAsk, LogTail, NotApplicable, Poll, Reading
from jobmond.model.outcome import Delivery, Signal
from jobmond.model.setting import Setting
from jobmond.model.state import Bucket
from jobmond.model.trials import (
    Completion,
    Engine,
    OutputAsk,
    Outputs,
    Remains,
    TreeAsk,
    TreeNews,
    Trials,
)

T = TypeVar("T")


class Clock(Protocol):
    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """A script that ran to its end at the far side. `stdout` is free of any banner."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class Transport(Protocol):
    """Runs one POSIX shell script at a time at the far side.

    The script travels on standard input and ends with a sentinel that carries the exit code, so
    a dead connection is never an answer. Inside the script standard input is `/dev/null`.
    """

    @property
    def logins(self) -> int:
        """Logins attempted since this transport was made."""
        ...

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        """Run `script` with `/bin/sh`.

        `timeout_s` is enforced at the far side as well. More than `max_bytes` of stdout is an
        error, not an answer.

        Raises:
            TransientTransportError: no whole answer; trying again later can help.
            NeedsPersonError: do not try again until somebody acts.
        """
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A response that came whole, or as much of its body as was asked for.

    Names of headers are in lower case. `body` is as it was sent, never unpacked.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpApi(Protocol):
    """Sends one HTTP request at a time and follows no redirect.

    No message of an error holds any part of the URL: it may be a secret.
    """

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        timeout_s: float,
        max_bytes: int,
    ) -> HttpAnswer:
        """Any status is an answer. `timeout_s` is for all of it, from the name to the last byte.

        A body longer than `max_bytes` is cut there.

        Raises:
            TransientTransportError: no whole answer; trying again later can help.
            NeedsPersonError: the URL or the proxy settings are none.
        """
        ...

    async def close(self) -> None: ...


class KubeApi(Protocol):
    """Reads from the API server of one Kubernetes cluster, one request after another.

    Credentials are its own business: they are loaded at the first request, and again when they
    expire, when their files change and when they are refused.
    """

    @property
    def logins(self) -> int:
        """How often credentials were loaded since it was made."""
        ...

    async def namespace(self, *, timeout_s: float) -> str:
        """The namespace that is meant where none is named.

        Raises:
            TransportError: as for `get`.
        """
        ...

    async def get(
        self, path: str, query: Mapping[str, str], *, timeout_s: float, max_bytes: int
    ) -> HttpAnswer:
        """GET `path` (absolute, its segments quoted). Any status but 401 and 429 is an answer.

        Being throttled is waited out as the server asks, within `timeout_s`, which is for all of
        it. More than `max_bytes` of a body is an error, not an answer.

        Raises:
            TransientTransportError: no whole answer; trying again later can help.
            NeedsPersonError: the credentials were refused, or there are none that can be used.
        """
        ...

    async def close(self) -> None: ...


class Offload(Protocol):
    """Runs a pure computation where it does not hold up the event loop."""

    async def __call__(self, compute: Callable[[], T], /) -> T: ...


async def inline(compute: Callable[[], T], /) -> T:
    """The offload of a caller who can wait."""
    return compute()


class LogSource(Protocol):
    """Reads job logs, all of one cluster in one script."""

    async def read_tails(
        self, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[LogTail]]:
        """One reading for each `LogAsk.native_id`; never raises for a far side that fails."""
        ...


class TreeSource(Protocol):
    """Looks at trees of trials, all of one cluster in one script."""

    async def read_trees(
        self, asks: Sequence[TreeAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[TreeNews]]:
        """One reading for each `TreeAsk.native_id`; never raises for a far side that fails."""
        ...

    async def read_remains(
        self, paths: Sequence[str], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[Remains]]:
        """Whether each folder is still there; never raises for a far side that fails."""
        ...

    async def read_outputs(
        self, asks: Sequence[OutputAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[Outputs]]:
        """One reading for each `OutputAsk.native_id`; never raises for a far side that fails."""
        ...


class Backend(Protocol):
    """Asks one source about jobs. Never invents a state when the far side fails."""

    kind: str
    discovers: bool  # whether `Poll.found` can hold jobs nobody asked about

    async def poll(
        self, asks: Sequence[Ask], *, since: datetime, now: datetime, timeout_s: float
    ) -> Poll:
        """One sweep's question. Far-side failures become `Unreachable` and `Poll.trouble`.

        `since` is how far back `Poll.found` must reach for jobs that have ended already.
        """
        ...

    def valid_id(self, native_id: str) -> str | None:
        """None where `native_id` has this source's form, else one line saying what is wrong."""
        ...


@runtime_checkable
class Canceller(Protocol):
    """A backend that can cancel jobs of its source."""

    async def cancel(self, targets: Sequence[Target], *, timeout_s: float) -> Mapping[str, Stopped]:
        """Cancel `targets` in their order; what became of each, by native id.

        A target of which nothing is said may or may not have been cancelled.

        Raises:
            TransientTransportError, NeedsPersonError: no answer.
        """
        ...


_NOT_ASKED = NotApplicable()


@dataclass(frozen=True, slots=True)
class SweepView:
    """What one sweep saw of a cluster's running jobs.

    `read` is how many have a log that was read in this sweep. `hushed` are the ids of those that
    fell silent together, where they are most of them: one cause, not each job's own.
    """

    read: int = 0
    hushed: frozenset[str] = frozenset()


_ALONE = SweepView()


@runtime_checkable
class Knows(Protocol):
    """A backend of one cluster whose source lies elsewhere: on the host of a launcher."""

    async def knows(self, ask: Ask) -> bool:
        """Whether its source knows the job, and that it runs on this cluster."""
        ...


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule sees of one life: the job as it was, and as this sweep sees it.

    `log` is this sweep's look at the log, `view` what the sweep saw of the whole cluster.
    `steady_since` is when our clock was set while we ran: nothing has been quiet for longer.
    `series` is None where no metrics were read. `exported` is how many rows of traces the log
    says were uploaded (0 where it was read and says nothing of it). `untested` is what an RL run is
    tried with where nobody tried that before and no probe of it was closed.
    """

    before: Job | None
    job: Job
    now: datetime
    series: RunSeries | None = None
    log: Reading[LogTail] = _NOT_ASKED
    view: SweepView = _ALONE
    steady_since: datetime | None = None
    trials: Reading[Trials] = _NOT_ASKED
    engine: Reading[Engine] = _NOT_ASKED
    exported: Reading[int] = _NOT_ASKED
    completion: Reading[Completion] = _NOT_ASKED
    untested: Setting | None = None


class Rule(Protocol):
    """A pure function from a case to signals; thresholds are constructor keywords.

    `id` is the rule's word in the interface, `source` says where it comes from. A rule may name in
    `needs` the readings of a case without which it cannot tell: what it raised then stays raised.
    """

    id: str
    source: str

    def judge(self, case: Case) -> Iterable[Signal]: ...

    def explain(self) -> str:
        """Logic, thresholds and sources in a few lines."""
        ...


class MetricParser(Protocol):
    """Reads one trainer's log. Pure: what it remembers is in the memory it is handed.

    Only segments that hold one of `needles` (fixed byte strings) matter to it, so a log may be
    filtered by them before it is read. `proof` matches the raw bytes of a segment that only this
    trainer writes; a segment with one of `hints` makes it likely. `own_steps` says that its
    records carry their step (a bar then gives only the last one), `derived` that it is built on
    another dialect, whose hints it repeats and whose log looks the same but for its own hints.
    `kept` are trainer's names whose series rules ask for, `pace` is the metric that holds a
    step's duration and what makes seconds of it.
    """

    name: str
    bucket: Bucket
    own_steps: bool
    derived: bool
    needles: tuple[bytes, ...]
    hints: tuple[bytes, ...]
    proof: re.Pattern[bytes]
    kept: frozenset[str]
    pace: tuple[str, float] | None

    def read(self, segment: Segment, memory: Memory) -> Iterable[Event]:
        """What a segment says. Any bytes are accepted. A segment that is not closed is the last
        one: what it leaves incomplete is no event.
        """
        ...

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        """The values of one record under their canonical names."""
        ...


class Sink(Protocol):
    """Takes deliveries one after the other, in order."""

    async def send(self, deliveries: Sequence[Delivery]) -> None:
        """Take the deliveries, in order; idempotent by `Delivery.key`.

        Raises:
            SinkRetry: none or some were taken; send all again later.
            SinkRefusal: one of them will never be taken; alone it is refused alone.
        """
        ...


@runtime_checkable
class FarSink(Sink, Protocol):
    """A sink that others answer for: it may be slow, or gone for days.

    It is handed one delivery at a time, in the background, so that what was taken is known and
    nothing waits for it. What it did not take for `give_up_after`, and the oldest of more than
    `spool` that wait, is given up.
    """

    give_up_after: timedelta
    spool: int

    async def check(self) -> None:
        """Whether it is set up to be used; sends nothing.

        Raises:
            SinkRetry: something of this host is not as it should be.
        """
        ...


class RegistryWords(Protocol):
    """What the entries of a registry file should say, asked when the file is written."""

    async def wanted(self, path: str) -> Mapping[str, str | None]:
        """The status of each entry by its key; None where the entry should go."""
        ...

    async def stood(self, path: str, written: Mapping[str, str | None]) -> None:
        """These entries say so now."""
        ...
