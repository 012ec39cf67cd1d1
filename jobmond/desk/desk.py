"""The desk: every question and wish a person can bring, one method each."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar

from jobmond.analysis.settle import Classify
from jobmond.desk import look, track
from jobmond.desk.added import Missing, nobody_asked, row_added, row_of, row_refused
from jobmond.desk.aim import ClusterInfo, ValidateId, aim, cluster_named
from jobmond.desk.answers import Whole, event_row, followup_row, found_row, in_full, with_unasked
from jobmond.desk.budget import SweepBudget
from jobmond.desk.forgotten import as_left, forgotten
from jobmond.desk.peer import Peer, Rights, user_name
from jobmond.desk.refusals import AmbiguousJob, UnknownJob, listed, nearest, quoted
from jobmond.desk.requests import (
    AddRequest,
    CloseRequest,
    EventsRequest,
    HistoryRequest,
    ImportRequest,
    LocalExit,
    LocalStart,
    LogRequest,
    SweepRequest,
    Wish,
)
from jobmond.desk.shelf import Call, Found, Handover, Locate, Shelf, nobody_knows
from jobmond.desk.sweeps import RequestSweep, SweepAsks
from jobmond.desk.track import Asker, Subject
from jobmond.desk.unregistered import called, pointer, subject_of
from jobmond.desk.waiting import Bell, LogQueue
from jobmond.errors import ConfigError, JobmondError, Refused
from jobmond.model.commit import Added
from jobmond.model.job import Job
from jobmond.model.state import Kind
from jobmond.ports import Clock
from jobmond.reports.document import job_object, status_document, with_unused

Row = dict[str, Any]
T = TypeVar("T")
_LOCAL = "local"


@dataclass(kw_only=True, slots=True)
class Desk:
    """Answers people from the store; a cluster is only asked by a sweep or for a log.

    `call` runs a store method in the store's thread. `clusters` and `discovered` are asked anew
    each time, because a reload may change them. `read_log(job, n=…, after=…)` answers
    `{"path", "status", "text", "offset", "next", "size"}`, masked. `local_exit` takes how an
    announced process ended. `missing` says why there can be no such job. `last_answer(name)` is
    what `request_sweep` last answered for a cluster in this run of the daemon. `wake` tells the
    schedule that there may be something to watch.
    `changed` is called after something that `status` shows was changed by a person.
    `locate` says on which cluster the jobs of a launcher run, where it alone can tell.
    `sinks` are the names of those configured. `recent` is how long a job that ended stays in
    `status`. Every method wants the peer, and raises `NotYours` where that user may not.
    """

    call: Call
    store: Shelf
    clock: Clock
    clusters: Callable[[], Sequence[ClusterInfo]]
    classify: Classify
    validate_id: ValidateId
    request_sweep: RequestSweep
    read_log: Callable[..., Awaitable[Mapping[str, Any]]]
    discovered: Callable[[], Sequence[Found]]
    daemon_info: Callable[[], Mapping[str, Any]]
    rights: Rights
    local_exit: Callable[[Job, LocalExit], Awaitable[None]] | None = None
    missing: Missing = nobody_asked
    last_answer: Callable[[str], Mapping[str, Any] | None] = lambda name: None
    wake: Callable[[], None] = lambda: None
    changed: Callable[[], None] = lambda: None
    sinks: Callable[[], Sequence[str]] = lambda: ()
    recent: timedelta = timedelta(hours=24)
    budget: SweepBudget = field(default_factory=SweepBudget)
    handover: Handover | None = None
    locate: Locate = nobody_knows
    _bell: Bell = field(default_factory=Bell, init=False)
    _logs: LogQueue = field(default_factory=LogQueue, init=False)

    def notify(self) -> None:
        """News was committed: long polls look again. To be called in the event loop."""
        self._bell.strike()

    def close(self) -> None:
        """The daemon stops: end all long polls, and start no more sweeps."""
        self._bell.close()

    async def status(self, peer: Peer) -> Row:
        """The whole status document."""
        self.rights.check_read(peer)
        now = self.clock.now()
        seen = await self.call(look.overview, self.store, now - self.recent, now)
        infos = self.clusters()
        names = {info.name for info in infos}
        clusters = list(with_unasked(seen.healths, infos, now))
        clusters += forgotten(seen.jobs, seen.healths, names, now)
        jobs = as_left(seen.jobs, names)
        sinks, daemon = with_unused(seen.standings, self.sinks()), self.daemon_info()
        # Thousands of jobs take longer than the event loop may be held up.
        return await asyncio.to_thread(
            status_document, jobs, clusters, sinks=sinks, daemon=daemon, now=now
        )

    async def show(self, word: str, peer: Peer) -> Row:
        """One job in full."""
        self.rights.check_read(peer)
        return self._in_full(await self._known(look.whole, word))

    async def history(self, request: HistoryRequest, peer: Peer) -> list[Row]:
        """What ended, oldest first, as `status` would show it."""
        self.rights.check_read(peer)
        now = self.clock.now()
        jobs = await self.call(look.ended, self.store, request, now)
        return [job_object(job, now, older=older) for job, older in jobs]

    async def events(self, request: EventsRequest, peer: Peer) -> Row:
        """Events in order, and the key to go on from; waits for the first where asked to."""
        self.rights.check_read(peer)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.wait_s
        while True:
            ring = self._bell.ring
            news = await self.call(
                self.store.events,
                after_key=request.after,
                since=request.since,
                limit=request.limit,
            )
            left_s = deadline - loop.time()
            if news or left_s <= 0 or not await self._bell.wait(ring, timeout_s=left_s):
                last = news[-1].key if news else request.after
                return {"events": [event_row(n) for n in news], "last": last}

    async def log(self, request: LogRequest, peer: Peer) -> Row:
        """The end of a job's log, through the daemon's connection, one at a time and cluster.

        Raises:
            Refused: too many wait for that cluster's logs already.
        """
        self.rights.check_read(peer)
        job = await self._known(track.look_up, request.job)
        async with self._logs.turn(job.cluster):
            return dict(await self.read_log(job, n=request.n, after=request.after))

    async def add(self, request: AddRequest, peer: Peer) -> list[Row]:
        """Track what the request names; of several ids each row has its own error.

        Raises:
            ConfigError: unknown cluster; what is wrong with the only id.
            Refused: the only id is ambiguous, or surely nobody's.
        """
        asker = await self.asker(peer)
        for power in request.wish.powers():
            self.rights.check_all(peer, power)
        if request.cluster is not None:
            cluster_named(request.cluster, self.clusters())
        if len(request.ids) == 1:
            rows = [await self._add_one(request.ids[0], request, asker)]
        else:
            rows = [await self._add_or_say(word, request, asker) for word in request.ids]
        await self.swept_soon(row["ref"] for row in rows if row["error"] is None)
        return rows

    async def change(self, word: str, wish: Wish, peer: Peer) -> Row:
        """Change labels, bucket, run, name, description; the job as it is then."""
        asker = await self.asker(peer)
        job = await self.call(track.change, self.store, word, wish, self.classify, asker)
        self.changed()
        return self._in_full(await self.call(look.whole_of, self.store, job))

    async def remove(self, word: str, peer: Peer) -> Row:
        """Stop tracking; the job itself is never touched."""
        asker = await self.asker(peer)
        job = await self.call(track.drop, self.store, word, asker)
        self.changed()
        return {"ref": job.ref}

    async def discover(self, peer: Peer) -> list[Row]:
        """Jobs the last sweeps saw that nobody registered."""
        self.rights.check_read(peer)
        return [found_row(found) for found in await self._unregistered()]

    async def track_found(self, refs: Sequence[str], peer: Peer) -> list[Row]:
        """Track discovered jobs; one row for each ref, with its own error."""
        asker = await self.asker(peer)
        known = {found.ref: found for found in self.discovered()}
        rows = [await self._track_one(ref, known, asker) for ref in refs]
        await self.swept_soon(row["ref"] for row in rows if row["error"] is None)
        return rows

    async def sweep(self, request: SweepRequest, peer: Peer) -> list[Row]:
        """Sweep now, within the budget; beyond it the last answer with its age.

        Raises:
            ConfigError: unknown cluster.
        """
        self.rights.check_read(peer)
        if self._bell.closed:
            raise Refused("jobmond is stopping and begins no more sweeps")
        asks = self._sweeps()
        if request.cluster is None:
            return await asks.all(wait=request.wait)
        return await asks.by_name(request.cluster, wait=request.wait)

    async def take_in(self, request: ImportRequest, peer: Peer) -> Row:
        """Entries of a registry file, or a file to watch."""
        return dict(await self._registry_desk().take_in(request, peer))

    async def give_out(self, peer: Peer) -> Row:
        """What is tracked, as entries of a registry file."""
        return dict(await self._registry_desk().give_out(peer))

    def _registry_desk(self) -> Handover:
        if self.handover is None:
            raise Refused("registry files are not handled here")
        return self.handover

    async def followups(self, peer: Peer, *, every: bool) -> list[Row]:
        """What is owed; with `every`, also what was closed."""
        self.rights.check_read(peer)
        entries = await self.call(self.store.followups, all=every)
        return [followup_row(entry) for entry in entries]

    async def close_followup(self, number: int, request: CloseRequest, peer: Peer) -> Row:
        """Close one follow-up."""
        asker = await self.asker(peer)
        await self.call(track.close, self.store, number, request.verdict, request.note, asker)
        return {"id": number, "state": "closed"}

    async def announce(self, start: LocalStart, peer: Peer) -> Row:
        """Track a process of this host that the peer has started."""
        asker = await self.asker(peer)
        added, note = await self._started(start, asker)
        await self.swept_soon([added.job.ref])
        return {"ref": added.job.ref, "created": added.created, "note": note}

    async def take_up(self, starts: Sequence[LocalStart], peer: Peer) -> list[Row]:
        """Track processes whose start was written down while nobody listened.

        One that is known already, even if somebody stopped tracking it, is left as it is. A row
        for each of the others: its ref, or why it cannot be tracked now.
        """
        asker = await self.asker(peer)
        try:
            cluster = self._local_cluster()
        except Refused:
            return []
        ids = [start.native_id for start in starts]
        known = await self.call(self.store.known, cluster, Kind.LOCAL, ids)
        rows: list[Row] = []
        for start in starts:
            if (start.native_id, start.birth) in known:
                continue
            try:
                added, _ = await self._started(start, asker)
            except JobmondError as refusal:
                rows.append({"ref": f"{cluster}/{start.native_id}", "error": str(refusal)})
            else:
                rows.append({"ref": added.job.ref, "error": None})
        await self.swept_soon(row["ref"] for row in rows if row["error"] is None)
        return rows

    async def local_ended(self, request: LocalExit, peer: Peer) -> Row:
        """How an announced process ended, as the program that started it saw it."""
        asker = await self.asker(peer)
        detail = {"exit_code": request.exit_code, "signal": request.signal}
        job = await self.call(track.ended_locally, self.store, request.ref, asker, detail)
        if self.local_exit is not None:
            await self.local_exit(job, request)
        await self.swept_soon([job.ref])
        return {"ref": job.ref}

    async def asker(self, peer: Peer) -> Asker:
        """Who asks, by what right, and when."""
        self.rights.check_read(peer)
        user = await asyncio.to_thread(user_name, peer.uid)
        return Asker(peer, user, self.rights, self.clock.now())

    async def _add_or_say(self, word: str, request: AddRequest, asker: Asker) -> Row:
        try:
            return await self._add_one(word, request, asker)
        except JobmondError as refusal:
            return {**row_of(word), **row_refused(refusal)}

    async def _add_one(self, word: str, request: AddRequest, asker: Asker) -> Row:
        there = None if request.cluster else await self.locate(word, request)
        clusters = [c for c in self.clusters() if there in (None, c.name)]
        try:
            target = aim(
                word,
                kind=request.kind,
                cluster=request.cluster,
                clusters=clusters,
                validate_id=self.validate_id,
            )
        except ConfigError:
            if (row := await self._add_by_name(word, request, asker)) is not None:
                return row
            raise
        hint = request.submitted_at
        known = await self.call(track.is_tracked, self.store, target.ref)
        if not known and (wrong := await self.missing(target, hint)):
            raise Refused(f"{target.ref}: {wrong}; nothing was added")
        subject = Subject(target.cluster, target.kind, target.native_id, submitted_at=hint)
        added = await self._track(subject, request.wish, asker)
        return {**row_of(word), **row_added(added), "guessed": target.guessed}

    async def _add_by_name(self, word: str, request: AddRequest, asker: Asker) -> Row | None:
        """The row of a job that the last sweeps saw and that is called `word`."""
        wanted = [f for f in self.discovered() if request.cluster in (None, f.cluster)]
        wanted = [f for f in wanted if request.kind in (None, f.kind)]
        found = called(word, wanted)
        if len(found) > 1:
            raise Refused(f"{quoted(word)} can mean {listed(f.ref for f in found)}: say which")
        if not found:
            return None
        row = await self._track_found(found[0], request.wish, asker)
        guessed = f"{quoted(word)} taken as {found[0].ref}: the {found[0].kind} job of that name"
        return {**row, "word": word, "guessed": guessed}

    async def _known(self, find: Callable[..., T], word: str) -> T:
        """What `find` gives for `word`; of a job that nobody registered the refusal says where it
        is."""
        try:
            return await self.call(find, self.store, word, self.clock.now())
        except AmbiguousJob:
            raise
        except UnknownJob:
            if said := pointer(word, await self._unregistered()):
                raise UnknownJob(said) from None
            raise

    async def _track_one(self, ref: str, known: Mapping[str, Found], asker: Asker) -> Row:
        found = known.get(ref)
        if found is None:
            hint = nearest(ref, known)
            unknown = UnknownJob(f"nothing discovered is called {quoted(ref)}{hint}")
            return {**row_of(ref), "ref": ref, **row_refused(unknown)}
        try:
            return await self._track_found(found, Wish(), asker)
        except JobmondError as refusal:
            return {**found_row(found), **row_of(ref), "ref": ref, **row_refused(refusal)}

    async def _track_found(self, found: Found, wish: Wish, asker: Asker) -> Row:
        added = await self._track(subject_of(found), wish, asker)
        return {**found_row(found), **row_of(found.ref), **row_added(added)}

    async def _track(self, subject: Subject, wish: Wish, asker: Asker) -> Added:
        return await self.call(track.track, self.store, subject, wish, self.classify, asker)

    async def _started(self, start: LocalStart, asker: Asker) -> tuple[Added, str | None]:
        wish, note = start.wish, None
        if wish.log_path is not None and not self.rights.over_all(asker.peer):
            wish, note = replace(wish, log_path=None), "its log is not read: you are no admin"
        subject = track.launched(replace(start, wish=wish), self._local_cluster(), asker.user)
        return await self._track(subject, wish, asker), note

    async def _unregistered(self) -> list[Found]:
        now = self.clock.now()
        jobs = await self.call(self.store.jobs, recent_since=now)
        tracked = {job.ref for job in jobs if job.tracked}
        return [found for found in self.discovered() if found.ref not in tracked]

    async def swept_soon(self, refs: Iterable[str]) -> None:
        """Jobs were added, or ended: wake up, and ask for sweeps of their clusters."""
        names = {ref.partition("/")[0] for ref in refs}
        if names and not self._bell.closed:
            self.wake()
            self.changed()
            await self._sweeps().after_adding(names)

    def _sweeps(self) -> SweepAsks:
        return SweepAsks(
            call=self.call,
            store=self.store,
            clock=self.clock,
            clusters=self.clusters,
            request_sweep=self.request_sweep,
            last_answer=self.last_answer,
            budget=self.budget,
        )

    def _local_cluster(self) -> str:
        names = [c.name for c in self.clusters() if Kind.LOCAL in c.kinds]
        if not names:
            raise Refused("no cluster of kind local is configured: add one to watch processes")
        return _LOCAL if _LOCAL in names else names[0]

    def _in_full(self, whole: Whole) -> Row:
        names = {info.name for info in self.clusters()}
        [job] = as_left([whole.job], names)
        base = job_object(job, self.clock.now(), older=whole.older)
        return {**in_full(whole, base), "asked_about": job.tracked and job.cluster in names}
