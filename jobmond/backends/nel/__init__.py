"""nel, the launcher of NeMo Evaluator: invocations, and jobs of them.

What nel says of a job in SLURM is only believed where it can have it from nowhere else than
accounting. The ids of those jobs are what it is asked for: SLURM is then asked about them.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobmond.analysis.visible import readable, visible
from jobmond.backends._same_host import SameHost
from jobmond.backends.nel import script
from jobmond.backends.nel.execdb import Launched, launched
from jobmond.backends.nel.rows import (
    ID,
    NotUnderstood,
    Row,
    refusal,
    rows,
    transport_error,
    unsuitable,
)
from jobmond.backends.nel.verdict import Told, found_whole, host_of, sighting
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.model.observation import Ask, Gone, Poll, Sighting, Unreachable
from jobmond.ports import Answer, Clock, Offload, Transport, inline
from jobmond.registry import backends

_COMMAND = ("nemo-evaluator-launcher",)
_DB_BYTES = 64 << 20
_RECENT_BYTES = 8 << 20
_ANSWER_BYTES = 8 << 20
_FOLDER_BYTES = 512 << 10
_RECENT = timedelta(days=1)
_FOUND = 20
_QUICK_S = 15.0
_SOON_S = 10.0  # a call takes two seconds of this host and a login; with less it is not begun


@dataclass(frozen=True, slots=True)
class _Way:
    """How nel is called for some jobs."""

    command: tuple[str, ...]
    home: str | None
    exec_db: str | None


@dataclass(frozen=True, slots=True)
class _Database:
    """What an execution database holds of what is asked about; `error` why it holds nothing."""

    jobs: Mapping[str, Launched] = field(default_factory=dict)
    error: str | None = None


@dataclass(slots=True)
class _Sweep:
    """What one sweep has found out so far; `until` is when it has to be over (monotonic)."""

    now: datetime
    clock: Clock
    until: float
    hosts: frozenset[str] = frozenset()
    databases: dict[_Way, _Database] = field(default_factory=dict)
    told: dict[str, Told] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    @property
    def left_s(self) -> float:
        """What it may still take."""
        return max(0.0, self.until - self.clock.monotonic())

    def count(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1


@backends.plugin("nel")
class NelBackend:
    """Asks nel on this host about invocations whose jobs run on one cluster.

    `here` is this host, `far` where the jobs' folders are. `hosts` are the names, in lower case,
    under which nel may know the cluster, `real_name` resolves another; `this_host` says that jobs
    of nel's local executor are its own too. `command`, `home` and `exec_db` are nel's where a job
    has none of its own.
    `each_s` bounds one call. `grace_s` is how young a job may be that nel does not know yet.
    """

    kind = "nel"
    discovers = True

    def __init__(
        self,
        here: Transport,
        far: Transport,
        clock: Clock,
        *,
        hosts: frozenset[str] = frozenset(),
        real_name: Callable[[str], str | None] = lambda host: None,
        this_host: bool = False,
        command: Sequence[str] = (),
        home: str | None = None,
        exec_db: str | None = None,
        each_s: float = 45,
        grace_s: float = 600,
        offload: Offload = inline,
    ) -> None:
        self._here, self._far, self._clock = here, far, clock
        self._same, self._this_host = SameHost(hosts, real_name, offload), this_host
        self._default = _Way(tuple(command) or _COMMAND, home, exec_db)
        self._each_s = each_s
        self._grace = timedelta(seconds=grace_s)
        self._offload = offload
        self._suitable: set[_Way] = set()
        self._waited: dict[str, int] = {}

    def valid_id(self, native_id: str) -> str | None:
        """None for `65f68ad6c803b542` and `65f68ad6c803b542.0`; else what is wrong."""
        found = ID.fullmatch(native_id)
        if found and (len(found["invocation"]) == 16 or not found["invocation"].isdigit()):
            return None
        return f"{native_id!r} is no nel invocation: 16 digits or letters a to f, as nel prints it"

    async def poll(
        self, asks: Sequence[Ask], *, since: datetime, now: datetime, timeout_s: float
    ) -> Poll:
        """The database, `nel status` for each invocation, and one script for all folders."""
        sweep = _Sweep(now, self._clock, self._clock.monotonic() + timeout_s)
        valid = [ask for ask in asks if self.valid_id(ask.native_id) is None]
        await self._read_databases(valid, sweep)
        for ask in sorted(valid, key=lambda a: -self._waited.get(a.native_id, 0)):
            await self._ask(ask, sweep)
        found = self._found(valid, sweep)
        chains = await self._folders([*sweep.told.values(), *found], sweep)
        sightings: dict[str, Sighting] = {
            ask.native_id: Unreachable(self.valid_id(ask.native_id) or "no such job")
            for ask in asks
        }
        for ask in valid:
            told = sweep.told[ask.native_id]
            sightings[ask.native_id] = self._young(ask, sighting(ask, told, chains), now)
        whole = [(told.id, seen) for told in found if (seen := found_whole(told, chains))]
        return Poll(
            sightings,
            found=tuple(whole),
            calls=sweep.calls,
            complaints=tuple(sweep.complaints),
        )

    async def usable(self, now: datetime) -> str | None:
        """Why nel cannot be asked as it is configured; None where it can."""
        sweep = _Sweep(now, self._clock, self._clock.monotonic() + self._each_s)
        return await self._check(self._default, sweep)

    async def knows(self, ask: Ask) -> bool:
        """Whether the database names the invocation, with jobs that run here."""
        sweep = _Sweep(ask.added_at, self._clock, self._clock.monotonic() + _QUICK_S)
        await self._read_databases([ask], sweep)
        way = self._way(ask)
        held = sweep.databases[_Way((), way.home, way.exec_db)]
        jobs = _of(ask.native_id, held.jobs.values())
        return bool(jobs) and host_of(jobs, sweep.hosts, this_host=self._this_host) is None

    def _young(self, ask: Ask, said: Sighting, now: datetime) -> Sighting:
        """What was launched a moment ago may not be written down yet."""
        born = max(ask.added_at, ask.submitted_at or ask.added_at)
        if isinstance(said, Gone) and ask.state is None and now - born < self._grace:
            return Unreachable(f"nel does not know {ask.native_id} (yet)")
        return said

    def _way(self, ask: Ask) -> _Way:
        own_home = ask.home is not None
        return _Way(
            ask.command or self._default.command,
            ask.home if own_home else self._default.home,
            None if own_home else self._default.exec_db,
        )

    async def _read_databases(self, asks: Sequence[Ask], sweep: _Sweep) -> None:
        """Every database once, for what is asked about; ours also for what is new in it."""
        default = _Way((), self._default.home, self._default.exec_db)
        wanted: dict[_Way, list[str]] = {default: []}
        for ask in asks:
            way = self._way(ask)
            wanted.setdefault(_Way((), way.home, way.exec_db), []).append(ask.native_id)
        for way, ids in wanted.items():
            recent = _RECENT_BYTES if way == default else 0
            sweep.databases[way] = await self._database(way, ids, recent, sweep)
        jobs = [job for held in sweep.databases.values() for job in held.jobs.values()]
        sweep.hosts = await self._same.among({job.row.host for job in jobs if job.row.host})

    async def _database(
        self, way: _Way, ids: Sequence[str], recent_bytes: int, sweep: _Sweep
    ) -> _Database:
        invocations = sorted({one.partition(".")[0] for one in ids})
        asked = script.database(
            invocations, recent_bytes=recent_bytes, home=way.home, exec_db=way.exec_db
        )
        answer = await self._run(asked, min(_QUICK_S, sweep.left_s), _DB_BYTES)
        if isinstance(answer, str):
            return _Database(error=answer)
        path = visible(readable(answer.stdout[-4096:]))
        if answer.exit_code == script.NOT_THERE:
            return _Database(error=f"nel's execution database {path} is not there")
        if answer.exit_code == script.NOT_READABLE:
            return _Database(error=f"nel's execution database {path} cannot be read")
        if answer.exit_code:
            return _Database(error=f"nel's execution database: {_last(answer)}")
        return _Database(await self._offload(lambda: launched(answer.stdout)))

    async def _ask(self, ask: Ask, sweep: _Sweep) -> None:
        way = self._way(ask)
        database = sweep.databases[_Way((), way.home, way.exec_db)]
        known = _of(ask.native_id, database.jobs.values())
        told = Told(ask.native_id, known=tuple(known), readable=database.error is None)
        stranger = host_of(known, sweep.hosts, this_host=self._this_host)
        if stranger is not None:
            told.error = (
                f"its jobs run on {stranger}, which is no host of this cluster: add it where they"
                " do (--cluster), or name that host in the cluster's host"
            )
            told.known, told.foreign = (), True
        elif sweep.left_s < min(self._each_s, _SOON_S):
            self._waited[ask.native_id] = self._waited.get(ask.native_id, 0) + 1
            told.error = "no time was left to ask nel in this sweep"
        else:
            self._waited.pop(ask.native_id, None)
            await self._status(ask, way, told, sweep)
        if told.error is None and database.error is not None and not told.jobs:
            told.error = database.error
        sweep.told[ask.native_id] = told

    async def _status(self, ask: Ask, way: _Way, told: Told, sweep: _Sweep) -> None:
        told.error = await self._check(way, sweep)
        if told.error is not None:
            return
        answer = await self._nel(way, ("status", ask.native_id, "--json"), sweep)
        if isinstance(answer, str):
            told.error = answer
            return
        told.error = refusal(answer.exit_code, answer.stderr)
        if told.error is not None:
            return
        told.swallowed = transport_error(answer.stderr)
        try:
            told.rows = tuple(_mine(ask.native_id, rows(answer.stdout)))
        except NotUnderstood as error:
            told.error = str(error)

    async def _check(self, way: _Way, sweep: _Sweep) -> str | None:
        """Whether this nel is the launcher; asked once for each way to call it."""
        if way in self._suitable:
            return None
        answer = await self._nel(way, ("--version",), sweep)
        if isinstance(answer, str):
            return answer
        wrong = unsuitable(way.command[0], answer.stdout, answer.stderr, answer.exit_code)
        if wrong is None:
            self._suitable.add(way)
        return wrong

    async def _nel(self, way: _Way, words: Sequence[str], sweep: _Sweep) -> Answer | str:
        each_s = max(2, int(min(self._each_s, sweep.left_s)))
        asked = script.call(
            (*way.command, *words), each_s=each_s, home=way.home, exec_db=way.exec_db
        )
        sweep.count("nel")
        # The script ends by itself, and clears up; the rest is for a host that is overloaded.
        return await self._run(asked, each_s + 30, _ANSWER_BYTES)

    async def _run(self, asked: bytes, timeout_s: float, max_bytes: int) -> Answer | str:
        try:
            return await self._here.run(asked, timeout_s=timeout_s, max_bytes=max_bytes)
        except (NeedsPersonError, TransientTransportError) as error:
            return str(error)

    def _found(self, asks: Sequence[Ask], sweep: _Sweep) -> list[Told]:
        """Invocations of the last day that nobody asked about and that run here."""
        database = sweep.databases[_Way((), self._default.home, self._default.exec_db)]
        asked = {ask.native_id.partition(".")[0] for ask in asks}
        groups: dict[str, list[Launched]] = {}
        for job in database.jobs.values():
            invocation = job.row.invocation
            if invocation not in asked and ID.fullmatch(invocation):
                groups.setdefault(invocation, []).append(job)
        fresh = {
            invocation: jobs
            for invocation, jobs in groups.items()
            if any(job.submitted_at and sweep.now - job.submitted_at < _RECENT for job in jobs)
            and all(job.executor == "slurm" for job in jobs)
            and host_of(jobs, sweep.hosts, this_host=self._this_host) is None
        }
        newest = list(fresh)[-_FOUND:]
        return [Told(one, known=tuple(fresh[one]), readable=True) for one in newest]

    async def _folders(
        self, all_told: Iterable[Told], sweep: _Sweep
    ) -> Mapping[str, Mapping[str, bytes]]:
        """What stands in the folder of each job, by folder."""
        wanted = {folder: True for told in all_told for folder in told.folders}
        if not wanted:
            return {}
        mark = secrets.token_hex(16)
        asked = list(wanted.items())
        try:
            answer = await self._far.run(
                script.folders(asked, mark),
                timeout_s=max(10.0, min(30.0, sweep.left_s)),
                max_bytes=len(asked) * _FOLDER_BYTES,
            )
        except (NeedsPersonError, TransientTransportError):
            return {}  # SLURM is asked the same way, and will say what is wrong
        sweep.count("folders")
        told = script.told(answer.stdout, mark) or {}
        read: dict[str, dict[str, bytes]] = {}
        for (what, which), body in told.items():
            if which < len(asked):
                read.setdefault(asked[which][0], {})[what] = body
        return read


def _of(native_id: str, jobs: Iterable[Launched]) -> list[Launched]:
    """The jobs that an id names: of an invocation (or what it begins with) all, else one."""
    invocation, _, n = native_id.partition(".")
    return [
        job
        for job in jobs
        if job.row.invocation.startswith(invocation)
        and (not n or (job.row.job or "").endswith(f".{n}"))
    ]


def _mine(native_id: str, answered: Iterable[Row]) -> Iterable[Row]:
    invocation = native_id.partition(".")[0]
    return (row for row in answered if row.invocation.startswith(invocation))


def _last(answer: Answer) -> str:
    return visible(readable(answer.stderr).strip().rpartition("\n")[2])[:200] or "no answer"
