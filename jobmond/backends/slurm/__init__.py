"""SLURM: one squeue and one sacct a sweep, and scontrol for what only it can tell."""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobmond.analysis.visible import readable
from jobmond.backends.slurm import accounting, cancel, queue, record
from jobmond.backends.slurm.fields import asked_id, last_line
from jobmond.backends.slurm.picture import Owed, Picture, picture, trouble
from jobmond.backends.slurm.rows import Detail
from jobmond.backends.slurm.script import (
    Named,
    Nonce,
    Section,
    Window,
    details,
    listing,
    sections,
)
from jobmond.backends.slurm.verdict import Terms
from jobmond.errors import ConfigError, NeedsPersonError, TransientTransportError
from jobmond.model.intent import Stopped, Target
from jobmond.model.observation import Ask, Poll, Seen, Sighting, Unreachable
from jobmond.model.state import State
from jobmond.ports import Answer, Offload, Transport, inline
from jobmond.registry import backends

_USER = re.compile(r"[^\s,:'\"\x00-\x1f-][^\s,:'\"\x00-\x1f]*")
_TOO_SLOW = (124, 137)


@dataclass(slots=True)
class _Memory:
    """What one sweep leaves to the next. Losing it makes verdicts later, never different.

    `unsettled`: ids that accounting must be asked for by name. `missing`: since when the queue has
    lost a job that accounting calls alive. `passed_over`: how often scontrol's turn did not come.
    `found_since`: how far back found jobs have not been looked for yet.
    """

    unsettled: set[str] = field(default_factory=set)
    missing: dict[tuple[str, str | None], datetime] = field(default_factory=dict)
    passed_over: dict[str, int] = field(default_factory=dict)
    found_since: datetime | None = None
    submit_line: bool = True


@dataclass(frozen=True, slots=True)
class _Sweep:
    """One sweep's question. `mode` is how accounting is asked, None where it is not."""

    asks: Sequence[Ask]
    since: datetime
    now: datetime
    timeout_s: float
    nonce: Nonce
    mode: Window | Named | None


@dataclass(frozen=True, slots=True)
class _First:
    """What a sweep knows before scontrol is asked."""

    seen: Picture
    sightings: Mapping[str, Sighting]
    found: tuple[tuple[str, Seen], ...]
    owed: Sequence[Owed]
    calls: Mapping[str, int]


class SlurmBackend:
    """Asks one cluster by `users` (empty: the login user), so that requeues and successors show.

    `accounting` is `auto` (asked; a cluster that says it keeps none is believed) or `none`.
    `grace_s`: how young a job may be that no source knows yet. `unknown_after_s`: how long
    accounting may call a job alive that the queue has lost. `max_named`: with more tracked jobs
    than that, accounting is asked by name only for those that need it. `discover` spends what
    is left of `max_scontrol` on found jobs, which are about to be tracked. `offload` runs a
    computation that may take longer than an event loop can wait.
    """

    kind = "slurm"
    discovers = True

    def __init__(
        self,
        transport: Transport,
        *,
        users: Sequence[str] = (),
        accounting: str = "auto",
        grace_s: float = 600,
        unknown_after_s: float = 86400,
        max_scontrol: int = 50,
        max_named: int = 2000,
        max_bytes: int = 64 * 2**20,
        bin_dir: str | None = None,
        discover: bool = False,
        offload: Offload = inline,
    ) -> None:
        for user in users:
            if not _USER.fullmatch(user):
                raise ConfigError(f"users: {user!r} is not a user's name")
        if accounting not in ("auto", "none"):
            raise ConfigError(f"accounting: {accounting!r} is neither 'auto' nor 'none'")
        self._transport = transport
        self._users = tuple(dict.fromkeys(users))
        self._ask_accounting = accounting == "auto"
        self._terms = Terms(timedelta(seconds=grace_s), timedelta(seconds=unknown_after_s))
        self._max_scontrol = max_scontrol
        self._max_named = max_named
        self._max_bytes = max_bytes
        self._bin_dir = bin_dir
        self._discover = discover
        self._memory = _Memory()
        self._offload = offload

    def valid_id(self, native_id: str) -> str | None:
        """None for `4711`, `4711_3`, `4711+1`; else what is wrong."""
        if asked_id(native_id) is not None:
            return None
        return f"{native_id!r} is not a Slurm job id (4711, array task 4711_3, component 4711+1)"

    async def poll(
        self, asks: Sequence[Ask], *, since: datetime, now: datetime, timeout_s: float
    ) -> Poll:
        """One squeue, one sacct, and at most `max_scontrol` scontrol calls in a second script."""
        sweep = _Sweep(
            asks=asks,
            since=min(since, self._memory.found_since or since),
            now=now,
            timeout_s=timeout_s,
            nonce=Nonce.of(secrets.token_hex(32)),
            mode=self._mode(asks, since, now),
        )
        try:
            answer = await self._transport.run(
                self._listing(sweep),
                timeout_s=max(timeout_s * 0.75, 12),
                max_bytes=self._max_bytes,
            )
        except NeedsPersonError as error:
            return _nothing(asks, str(error), needs_login=True, remedy=error.remedy)
        except TransientTransportError as error:
            return _nothing(asks, str(error))
        return await self._answered(sweep, answer)

    async def cancel(self, targets: Sequence[Target], *, timeout_s: float) -> Mapping[str, Stopped]:
        """One squeue and one scancel a target, which is cancelled only if it is still itself."""
        nonce = Nonce.of(secrets.token_hex(32))
        each_s = max(5, int(timeout_s / (3 * max(1, len(targets)))))
        wanted = cancel.script(nonce, targets, each_s=each_s, bin_dir=self._bin_dir)
        answer = await self._transport.run(wanted, timeout_s=timeout_s, max_bytes=self._max_bytes)
        return cancel.answers(answer.stdout, nonce, targets)

    def _listing(self, sweep: _Sweep) -> bytes:
        return listing(
            sweep.nonce,
            users=self._users,
            others=self._others(sweep.asks),
            accounting=sweep.mode,
            submit_line=self._memory.submit_line,
            squeue_s=max(5, int(sweep.timeout_s * 0.3)),
            sacct_s=max(5, int(sweep.timeout_s * 0.4)),
            bin_dir=self._bin_dir,
        )

    async def _answered(self, sweep: _Sweep, answer: Answer) -> Poll:
        first = await self._offload(lambda: self._first(sweep, answer))
        if isinstance(first, Poll):
            return first
        shown, complaint = await self._details(first.seen, first.owed, sweep.timeout_s)
        return await self._offload(lambda: self._final(sweep, first, shown, complaint))

    def _first(self, sweep: _Sweep, answer: Answer) -> _First | Poll:
        """What queue and accounting say; a whole answer at once where the queue said nothing."""
        parts = sections(answer.stdout, sweep.nonce)
        calls = {name: 1 for name in ("squeue", "sacct") if name in parts}
        failure = _queue_failure(parts, answer)
        if failure is not None:
            return _nothing(sweep.asks, failure, calls=calls)
        seen = self._picture(sweep, parts)
        sightings = {ask.native_id: seen.sighting(ask) for ask in sweep.asks}
        found = seen.found(sweep.asks, since=sweep.since)
        return _First(seen, sightings, found, self._owed(seen, sweep.asks, sightings, found), calls)

    def _final(
        self,
        sweep: _Sweep,
        first: _First,
        shown: Mapping[str, Detail],
        complaint: str | None,
    ) -> Poll:
        """The answer, with what scontrol told."""
        seen, found, owed = first.seen, first.found, first.owed
        sightings, calls = dict(first.sightings), dict(first.calls)
        if shown:
            calls["scontrol"] = len(shown)
            seen = seen.with_details(shown)
            again = [ask for ask in sweep.asks if ask.native_id in shown]
            sightings |= {ask.native_id: seen.sighting(ask) for ask in again}
            found = seen.found(sweep.asks, since=sweep.since) if self._discover else found
        self._remember(sweep, seen, sightings, [o for o in owed if o.ask.native_id not in shown])
        return Poll(
            sightings=sightings,
            found=found,
            trouble=trouble(seen.accounting, seen.queue),
            calls=calls,
            complaints=seen.complaints() + ((complaint,) if complaint else ()),
        )

    def _picture(self, sweep: _Sweep, parts: Mapping[str, Section]) -> Picture:
        mode = sweep.mode
        if mode is None:
            kept: accounting.Accounting = accounting.NoAccounting()
        else:
            named = frozenset(mode.ids) if isinstance(mode, Named) else None
            kept = accounting.read(
                parts.get("sacct"),
                sweep.nonce,
                named=named,
                submit_line=self._memory.submit_line,
            )
        login = readable(parts["who"].out).strip() if "who" in parts else ""
        own = frozenset(self._users or (login,))
        return picture(
            queue.parse(parts["squeue"], sweep.nonce),
            kept,
            own=own,
            users=own | set(self._others(sweep.asks)),
            now=sweep.now,
            terms=self._terms,
            missing=self._memory.missing,
        )

    def _mode(self, asks: Sequence[Ask], since: datetime, now: datetime) -> Window | Named | None:
        """How accounting is asked.

        By name shows waiting jobs and jobs of any user and age; by user and window shows those
        nobody asked about. One call does one of the two. Names come first where a job is new, and
        otherwise take turns with the window; what it did not show now it shows next time.
        """
        if not self._ask_accounting:
            return None
        start = min(since, self._memory.found_since or since)
        valid = [ask for ask in asks if asked_id(ask.native_id) is not None]
        new = [ask for ask in valid if ask.birth is None]
        unsure = [ask for ask in valid if ask.birth is not None and self._unsure(ask, now)]
        if not new and (not unsure or self._memory.found_since is not None):
            return Window(start)
        named = valid if len(valid) <= self._max_named else [*new, *unsure][: self._max_named]
        ids = (asked_id(ask.native_id) for ask in named)
        return Named(tuple(dict.fromkeys(one.master for one in ids if one)))

    def _unsure(self, ask: Ask, now: datetime) -> bool:
        """Whether the last sweep left `ask` open, or it runs although its time is over."""
        started, limit_s = ask.facts.started_at, ask.facts.time_limit_s
        overdue = bool(started and limit_s) and ask.state is State.RUNNING
        if overdue and started and limit_s:
            overdue = now - started > timedelta(seconds=limit_s) + self._terms.grace
        return overdue or ask.native_id in self._memory.unsettled

    def _others(self, asks: Sequence[Ask]) -> tuple[str, ...]:
        """Owners of tracked jobs beside the configured users."""
        users = {ask.facts.user for ask in asks if ask.facts.user}
        return tuple(sorted(u for u in users - set(self._users) if _USER.fullmatch(u)))

    def _owed(
        self,
        seen: Picture,
        asks: Sequence[Ask],
        sightings: Mapping[str, Sighting],
        found: Sequence[tuple[str, Seen]],
    ) -> list[Owed]:
        """The scontrol calls that would tell something, the most urgent first."""
        waited = self._memory.passed_over
        mine = [one for ask in asks if (one := seen.owed(ask, sightings[ask.native_id]))]
        mine.sort(
            key=lambda o: (not o.urgent, -waited.get(o.ask.native_id, 0), -o.submit, o.target)
        )
        if not self._discover:
            return mine
        news = [
            one
            for native, job in found
            if (one := seen.owed(Ask(native_id=native, birth=None, added_at=seen.now), job))
        ]
        return mine + sorted(news, key=lambda o: (not o.urgent, -o.submit, o.target))

    async def _details(
        self, seen: Picture, owed: Sequence[Owed], timeout_s: float
    ) -> tuple[dict[str, Detail], str | None]:
        asked = owed[: self._max_scontrol]
        if not asked:
            return {}, None
        nonce = Nonce.of(secrets.token_hex(32))
        script = details(
            nonce,
            list(dict.fromkeys(one.target for one in asked)),
            each_s=max(2, int(timeout_s * 0.15)),
            bin_dir=self._bin_dir,
        )
        try:
            answer = await self._transport.run(
                script, timeout_s=max(timeout_s * 0.25, 5), max_bytes=self._max_bytes
            )
        except (NeedsPersonError, TransientTransportError) as error:
            return {}, f"scontrol could not be asked: {error}"
        answers = sections(answer.stdout, nonce)
        return {
            one.ask.native_id: record.read(
                answers[one.target], name=seen.name_of(one.ask.native_id)
            )
            for one in asked
            if one.target in answers
        }, None

    def _remember(
        self,
        sweep: _Sweep,
        seen: Picture,
        sightings: Mapping[str, Sighting],
        passed_over: Sequence[Owed],
    ) -> None:
        memory = self._memory
        unsettled = [ask for ask in sweep.asks if isinstance(sightings[ask.native_id], Unreachable)]
        memory.unsettled = {ask.native_id for ask in unsettled}
        memory.passed_over = {
            one.ask.native_id: memory.passed_over.get(one.ask.native_id, 0) + 1
            for one in passed_over
        }
        lost = [(ask.native_id, ask.birth) for ask in sweep.asks if seen.left_queue(ask)]
        memory.missing = {key: memory.missing.get(key, sweep.now) for key in lost}
        kept = seen.accounting
        looked = isinstance(sweep.mode, Window) and isinstance(kept, accounting.Accounts)
        memory.found_since = None if looked or sweep.mode is None else sweep.since
        if isinstance(kept, accounting.AccountingFailed) and kept.field_refused:
            memory.submit_line = False


def _queue_failure(parts: Mapping[str, Section], answer: Answer) -> str | None:
    """Why the queue's answer cannot be used at all, on one line."""
    section = parts.get("squeue")
    if section is None:
        who = parts.get("who")
        said = last_line(who.err if who else answer.stderr)
        return f"squeue's answer did not arrive whole{': ' + said if said else ''}"
    if section.rc == 0:
        return None
    if section.rc in _TOO_SLOW:
        return "squeue did not answer in time"
    if section.rc == 127:
        return "squeue was not found on PATH there; set bin_dir to the directory that holds it"
    return last_line(section.err) or f"squeue ended with {section.rc}"


def _nothing(
    asks: Sequence[Ask],
    why: str,
    *,
    needs_login: bool = False,
    remedy: str | None = None,
    calls: Mapping[str, int] | None = None,
) -> Poll:
    return Poll(
        sightings={ask.native_id: Unreachable(why) for ask in asks},
        trouble=why,
        needs_login=needs_login,
        remedy=remedy,
        calls=calls or {},
    )


@backends.plugin("slurm")
def slurm(transport: Transport, **options: object) -> SlurmBackend:
    """The backend of one cluster; `options` are those of `SlurmBackend`."""
    return SlurmBackend(transport, **options)  # type: ignore[arg-type] # checked by the settings
