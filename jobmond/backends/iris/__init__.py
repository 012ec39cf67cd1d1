"""iris: jobs of one controller, asked through its own interface, never through its program."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobmond.backends.iris import records, verdict
from jobmond.backends.iris.records import Children, Record, Task
from jobmond.backends.iris.rpc import Controller, Declined, Time
from jobmond.backends.iris.verdict import Evidence, Terms
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.model.observation import Ask, Gone, Poll, Seen, Sighting, Unreachable
from jobmond.model.state import State
from jobmond.ports import Clock, HttpApi, Offload, inline
from jobmond.registry import backends

_BATCH = 500  # ids in one question
_AT_A_STRETCH = 100  # jobs looked at before others get their turn
_PAGE = 500  # the most that one answer lists
_YOUNG = "the controller does not know it, and it is too young to miss"
_LATE = "not looked at: the time for this sweep was over; comes first next time"

Key = tuple[str, str]


@dataclass(slots=True)
class _Memory:
    """What one sweep leaves to the next. Losing it makes verdicts later, never different.

    `empty`: how often a running job had no live task, and since when. `late`: jobs whose turn did
    not come.
    """

    empty: dict[Key, tuple[int, datetime]] = field(default_factory=dict)
    late: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Sweep:
    """One sweep's question, and what has been said so far."""

    asks: Sequence[Ask]
    since: datetime
    now: datetime
    time: Time
    known: frozenset[str] = frozenset()
    listed: dict[str, Record] = field(default_factory=dict)
    empty: dict[Key, tuple[int, datetime]] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)


class IrisBackend:
    """Asks one controller: which jobs it knows, then what it says of each.

    `users` are those whose jobs are found. `grace_s`: how young a job may be that the controller
    does not know. `max_misses`: at how many looks a running job must have been without tasks.
    `max_pages` bounds the list of each user's jobs. `each_s` bounds one call, `remedy` is what a
    person can do when the controller refuses who asks. `discover` spends calls on found jobs too.
    """

    kind = "iris"
    discovers = True

    def __init__(
        self,
        http: HttpApi,
        clock: Clock,
        *,
        url: str,
        users: Sequence[str] = (),
        grace_s: float = 600,
        max_misses: int = 3,
        max_pages: int = 10,
        max_bytes: int = 64 * 2**20,
        each_s: float = 20.0,
        remedy: str | None = None,
        discover: bool = False,
        offload: Offload = inline,
    ) -> None:
        self._controller = Controller(
            http, url.rstrip("/"), offload, max_bytes, each_s=each_s, remedy=remedy
        )
        self._clock = clock
        self._offload = offload
        self._users = tuple(dict.fromkeys(users))
        self._terms = Terms(timedelta(seconds=grace_s), max_misses)
        self._max_pages = max_pages
        self._discover = discover
        self._memory = _Memory()

    def valid_id(self, native_id: str) -> str | None:
        """None for `user/job` and deeper; else what is wrong."""
        return records.wrong_id(native_id)

    async def poll(
        self, asks: Sequence[Ask], *, since: datetime, now: datetime, timeout_s: float
    ) -> Poll:
        """One call about all, one list a user, and one or two about each that needs them."""
        self._controller.calls = Counter()
        sweep = _Sweep(asks, since, now, Time.of(self._clock, timeout_s))
        valid = {ask.native_id: ask for ask in asks if self.valid_id(ask.native_id) is None}
        try:
            sweep.known = await self._known(list(valid), sweep.time)
            await self._list(sweep)
        except (NeedsPersonError, TransientTransportError) as error:
            return self._silent(asks, error)
        return await self._told(sweep, valid)

    async def _known(self, ids: Sequence[str], time: Time) -> frozenset[str]:
        """Which of `ids` the controller knows: it leaves out the others without a word."""
        known: set[str] = set()
        for at in range(0, len(ids), _BATCH):
            question = {"jobIds": [f"/{one}" for one in ids[at : at + _BATCH]]}
            answer = await self._controller.call("GetJobState", question, time)
            states = answer.get("states", {})
            if not isinstance(states, dict):
                raise TransientTransportError("GetJobState: the answer has no states")
            known |= {one.removeprefix("/") for one in states}
        return frozenset(known)

    async def _list(self, sweep: _Sweep) -> None:
        """The jobs that the users submitted, the newest first, without those of their jobs."""
        for user in self._users:
            query = {"jobIdPrefix": f"/{user}/", "scope": "JOB_QUERY_SCOPE_ROOTS"}
            try:
                whole = await self._pages(query, sweep)
            except Declined as error:
                sweep.complaints.append(str(error))
                continue
            if not whole:
                sweep.complaints.append(
                    f"{user} has more than {self._max_pages * _PAGE} jobs: older ones are not found"
                )

    async def _pages(self, query: Mapping[str, object], sweep: _Sweep) -> bool:
        """Take up what the query lists; whether that was all."""
        for page in range(self._max_pages):
            question = {"query": {**query, "limit": _PAGE, "offset": page * _PAGE}}
            answer = await self._controller.call("ListJobs", question, sweep.time)
            found = records.records(answer.get("jobs", []))
            if found is None:
                raise TransientTransportError("ListJobs: the answer lists no jobs")
            for one in found:
                sweep.listed.setdefault(one.job_id, one)
            if not found or answer.get("hasMore") is not True:
                return True
        return False

    async def _told(self, sweep: _Sweep, valid: dict[str, Ask]) -> Poll:
        sightings: dict[str, Sighting] = {
            ask.native_id: Unreachable(self.valid_id(ask.native_id) or "") for ask in sweep.asks
        }
        order = sorted(valid, key=lambda native: (native not in self._memory.late, native))
        trouble: Exception | None = None
        late = set()
        for position, native in enumerate(order):
            await self._breathe(position)
            if trouble is None and sweep.time.left_s > 0:
                try:
                    sightings[native] = await self._sighting(sweep, valid[native])
                    continue
                except Declined as error:
                    sightings[native] = Unreachable(str(error))
                    sweep.complaints.append(f"{native}: {error}")
                    continue
                except (NeedsPersonError, TransientTransportError) as error:
                    trouble = error
            late.add(native)
            sightings[native] = Unreachable(str(trouble) if trouble else _LATE)
        found = () if trouble else await self._found(sweep)
        # An outage is no look: what was counted of a job whose turn did not come still counts.
        kept = {key: known for key, known in self._memory.empty.items() if key[0] in late}
        self._memory = _Memory({**kept, **sweep.empty}, frozenset(late))
        return self._poll(sightings, trouble, found, sweep.complaints)

    def _poll(
        self,
        sightings: Mapping[str, Sighting],
        trouble: Exception | None,
        found: tuple[tuple[str, Seen], ...] = (),
        complaints: Iterable[str] = (),
    ) -> Poll:
        person = trouble if isinstance(trouble, NeedsPersonError) else None
        return Poll(
            sightings,
            found=found,
            trouble=str(trouble) if trouble else None,
            needs_login=person is not None,
            remedy=person.remedy if person else None,
            calls=dict(self._controller.calls),
            complaints=tuple(complaints),
        )

    def _silent(self, asks: Iterable[Ask], error: Exception) -> Poll:
        return self._poll({ask.native_id: Unreachable(str(error)) for ask in asks}, error)

    async def _sighting(self, sweep: _Sweep, ask: Ask) -> Sighting:
        """Raises what a call raises."""
        record = sweep.listed.get(ask.native_id)
        if record is None and ask.native_id not in sweep.known:
            if ask.state is State.LOST:
                return verdict.gone(ask)
            if verdict.young(ask, sweep.now, self._terms):
                return Unreachable(_YOUNG)
        if record is None:
            record = await self._status(ask.native_id, sweep.time)
        if record is None:
            if ask.native_id in sweep.known:
                return Unreachable("its record went while it was asked for")
            return verdict.gone(ask)
        if record.word is None:
            sweep.complaints.append(f"{ask.native_id}: unknown state word {record.native!r}")
            return Unreachable(f"unknown state word {record.native!r}")
        return await self._seen(sweep, ask, record)

    async def _seen(self, sweep: _Sweep, ask: Ask, record: Record) -> Sighting:
        tasks: tuple[Task, ...] | None = None
        children: Children | None = None
        hollow = verdict.empty(record)
        if hollow or verdict.wants_tasks(record):
            tasks = await self._tasks(record, sweep)
        if record.parent:
            children = await self._children(record, sweep)
        looks = None
        if hollow and not verdict.alive(tasks or ()) and not _busy(children):
            looks = self._missed(sweep, ask, record)
            if looks is None:
                return Gone(verdict.NO_TASKS)
        return verdict.sighting(ask, Evidence(record, tasks, children, looks), sweep.now)

    def _missed(self, sweep: _Sweep, ask: Ask, record: Record) -> str | None:
        """How often the job had no task; None where that was often enough, for long enough."""
        key = (ask.native_id, record.birth or "")
        count, first_at = self._memory.empty.get(key, (0, sweep.now))
        sweep.empty[key] = (count + 1, first_at)
        if ask.state is State.LOST and ask.birth == record.birth:
            return None
        if count + 1 >= self._terms.max_misses and sweep.now - first_at >= self._terms.grace:
            return None
        return f"running without a task, look {count + 1} of {self._terms.max_misses}"

    async def _status(self, native: str, time: Time) -> Record | None:
        """One job's record; None where the controller says that there is none."""
        try:
            answer = await self._controller.call("GetJobStatus", {"jobId": f"/{native}"}, time)
        except Declined as error:
            if error.code == "not_found":
                return None
            raise
        found = records.record(answer.get("job"))
        if found is None or found.job_id != native:
            raise Declined("GetJobStatus: the answer is not about this job", "other")
        return found

    async def _tasks(self, record: Record, sweep: _Sweep) -> tuple[Task, ...] | None:
        """A job's tasks; None where the controller will not list them."""
        question = {"jobId": f"/{record.job_id}"}
        try:
            answer = await self._controller.call("ListTasks", question, sweep.time)
        except Declined as error:
            sweep.complaints.append(f"{record.job_id}: {error}")
            return None
        return records.tasks(answer.get("tasks"))

    async def _children(self, record: Record, sweep: _Sweep) -> Children | None:
        query = {"scope": "JOB_QUERY_SCOPE_CHILDREN", "parentJobId": f"/{record.job_id}"}
        question = {"query": {**query, "limit": _PAGE}}
        try:
            answer = await self._controller.call("ListJobs", question, sweep.time)
        except Declined as error:
            sweep.complaints.append(f"{record.job_id}: {error}")
            return None
        found = records.records(answer.get("jobs", []))
        return None if found is None else records.children(found, answer.get("totalCount"))

    async def _found(self, sweep: _Sweep) -> tuple[tuple[str, Seen], ...]:
        """The users' jobs that nobody asked about and that live, or ended lately."""
        asked = {ask.native_id for ask in sweep.asks}
        found = []
        for position, (native, record) in enumerate(sweep.listed.items()):
            await self._breathe(position)
            if (
                native in asked
                or self.valid_id(native) is not None
                or verdict.old(record, sweep.since)
            ):
                continue
            shown = verdict.seen(await self._about(record, sweep), sweep.now)
            if isinstance(shown, Unreachable):
                sweep.complaints.append(f"{native}: {shown.error}")
            else:
                found.append((native, shown))
        return tuple(found)

    async def _breathe(self, position: int) -> None:
        """Let others go on now and then: most jobs need no call, and there can be thousands."""
        if position % _AT_A_STRETCH == _AT_A_STRETCH - 1:
            await self._offload(lambda: None)

    async def _about(self, record: Record, sweep: _Sweep) -> Evidence:
        """What is worth a call about a job that is going to be tracked."""
        if not self._discover or not verdict.wants_tasks(record):
            return Evidence(record)
        try:
            return Evidence(record, await self._tasks(record, sweep))
        except (NeedsPersonError, TransientTransportError) as error:
            sweep.complaints.append(f"{record.job_id}: {error}")
            return Evidence(record)


def _busy(children: Children | None) -> bool:
    live = ("pending", "building", "running")
    return children is not None and any(children.counts.get(word) for word in live)


@backends.plugin("iris")
def iris(http: HttpApi, clock: Clock, **options: object) -> IrisBackend:
    """The backend of one controller; `options` are those of `IrisBackend`."""
    return IrisBackend(http, clock, **options)  # type: ignore[arg-type] # checked by the settings
