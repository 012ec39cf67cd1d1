"""The experiment launcher: its output files and its map lead to jobs in SLURM.

A launcher that ended, or was killed, says nothing about its jobs; its file is colour as soon as
their ids are known.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobmond.analysis.launcher import Launched, launched
from jobmond.analysis.launcher_lines import take
from jobmond.analysis.segments import Cutter
from jobmond.backends._same_host import SameHost
from jobmond.backends.launcher import script
from jobmond.backends.launcher.jobs_map import EXPERIMENT, Mapped, mapped
from jobmond.backends.launcher.verdict import Known, began_at, sighting
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.model.metrics import Memory
from jobmond.model.observation import Ask, Poll, Seen, Sighting, Unreachable
from jobmond.model.state import State
from jobmond.ports import Offload, Transport, inline
from jobmond.registry import backends

_FILE = re.compile(r"file:[^/\0\r\n]{1,200}")
_MOST_BYTES = 8 << 20  # of one file in one sweep
_MAP_BYTES = 4 << 20
_RECENT = timedelta(days=1)
_FOUND = 20
_QUICK_S = 15.0


@dataclass(slots=True)
class _Reading:
    """How far an output file was read, and what it has said. Lost at the end of the program: it is
    then read again."""

    path: str
    inode: int = 0
    cutter: Cutter = field(default_factory=Cutter)
    memory: Memory = field(default_factory=dict)
    mtime_at: datetime | None = None
    read_to: int = 0

    def feed(self, more: script.More) -> None:
        if more.inode != self.inode or more.offset != self.read_to:
            self.inode, self.cutter, self.memory, self.read_to = more.inode, Cutter(), {}, 0
        for segment in self.cutter.feed(more.data):
            take(segment, self.memory)
        self.read_to = more.offset + len(more.data)
        self.mtime_at = more.mtime_at

    def said(self) -> Launched:
        """What it says with its open end, which is read again when more has come."""
        memory = deepcopy(self.memory)
        take(self.cutter.open(), memory)
        return launched(memory)


@backends.plugin("launcher")
class LauncherBackend:
    """Reads files of this host about experiments whose jobs run on one cluster.

    `hosts` are the names, in lower case, under which the launcher may know the cluster,
    `real_name` resolves another. `maps` are the places of `.slurm_jobs`. An output that names no
    job and has not grown for `silent_s` is that of a launcher which is gone.
    """

    kind = "launcher"
    discovers = True

    def __init__(
        self,
        here: Transport,
        *,
        hosts: frozenset[str] = frozenset(),
        real_name: Callable[[str], str | None] = lambda host: None,
        maps: Sequence[str] = ("$NEMORUN_HOME/.slurm_jobs",),
        silent_s: float = 3600,
        offload: Offload = inline,
    ) -> None:
        self._here = here
        self._same = SameHost(hosts, real_name, offload)
        self._maps = tuple(maps)
        self._silent = timedelta(seconds=silent_s)
        self._offload = offload
        self._readings: dict[str, _Reading] = {}

    def valid_id(self, native_id: str) -> str | None:
        """None for `cicd_1795968996253503257` and `file:ptq.log`; else what is wrong."""
        if EXPERIMENT.fullmatch(native_id) or _FILE.fullmatch(native_id):
            return None
        return (
            f"{native_id!r} is no launcher's experiment (cicd_1795968996253503257);"
            f" before that is known, name its output file with --log"
        )

    async def poll(
        self, asks: Sequence[Ask], *, since: datetime, now: datetime, timeout_s: float
    ) -> Poll:
        """One script for all output files and the map."""
        valid = [ask for ask in asks if self.valid_id(ask.native_id) is None]
        readings = self._followed(valid)
        files = [reading for reading in readings.values() if reading.path]
        answer = await self._read(files, timeout_s)
        sightings: dict[str, Sighting] = {
            ask.native_id: Unreachable(self.valid_id(ask.native_id) or "") for ask in asks
        }
        if isinstance(answer, str):
            sightings |= {ask.native_id: Unreachable(answer) for ask in valid}
            return Poll(sightings)
        lacking = await self._offload(lambda: _fed(files, answer))
        jobs = mapped(answer.map)
        told = {r.path: r.said() for r in files if r.mtime_at is not None}
        hosts = await self._hosts(told.values(), jobs)
        for ask in valid:
            reading = readings[ask.native_id]
            known = Known(
                said=told.get(reading.path),
                path=reading.path or None,
                mtime_at=reading.mtime_at,
                lacking=lacking.get(reading.path) if reading.path else None,
                jobs=jobs,
                hosts=hosts,
            )
            sightings[ask.native_id] = sighting(ask, known, now=now, silent=self._silent)
        return Poll(sightings, found=self._found(valid, jobs, hosts, now))

    async def knows(self, ask: Ask) -> bool:
        """Whether its output, or the map, says that its jobs run here."""
        readings = [_Reading(ask.facts.log_path)] if ask.facts.log_path else []
        answer = await self._read(readings, _QUICK_S)
        if isinstance(answer, str):
            return False
        _fed(readings, answer)
        said = [reading.said() for reading in readings]
        jobs = mapped(answer.map)
        experiment = next((one.experiment for one in said if one.experiment), ask.native_id)
        hosts = await self._hosts(said, jobs)
        named = {one.host.lower() for one in said if one.host}
        named |= {one.host for one in jobs.get(experiment, ()) if one.host}
        return bool(named) and named <= hosts

    def _followed(self, asks: Sequence[Ask]) -> dict[str, _Reading]:
        """By native id, the reading of its file (an empty path: it has none)."""
        before, self._readings = self._readings, {}
        found: dict[str, _Reading] = {}
        for ask in asks:
            path = ask.facts.log_path or ""
            reading = before.get(path) or self._readings.get(path) or _Reading(path)
            found[ask.native_id] = reading
            if path:
                self._readings[path] = reading
        return found

    async def _read(self, readings: Sequence[_Reading], timeout_s: float) -> script.Answered | str:
        mark = secrets.token_hex(16)
        wanted = [script.Wanted(one.path, one.inode, one.read_to) for one in readings]
        asked = script.ask(wanted, self._maps, mark=mark, most=_MOST_BYTES, map_bytes=_MAP_BYTES)
        room = len(wanted) * (_MOST_BYTES + 4096) + _MAP_BYTES * len(self._maps) + 65536
        try:
            answer = await self._here.run(asked, timeout_s=timeout_s, max_bytes=room)
        except (NeedsPersonError, TransientTransportError) as error:
            return str(error)
        return script.answered(answer.stdout, mark) or "output files did not come whole"

    async def _hosts(
        self, told: Iterable[Launched], jobs: Mapping[str, Sequence[Mapped]]
    ) -> frozenset[str]:
        named = {said.host for said in told if said.host}
        named |= {one.host for some in jobs.values() for one in some if one.host}
        return await self._same.among(named)

    def _found(
        self,
        asks: Sequence[Ask],
        jobs: Mapping[str, Sequence[Mapped]],
        hosts: frozenset[str],
        now: datetime,
    ) -> tuple[tuple[str, Seen], ...]:
        """Experiments of the last day on this cluster that nobody asked about."""
        asked = {ask.native_id for ask in asks}
        asked |= {r.memory.get("experiment", "") for r in self._readings.values()}
        found = []
        for experiment in sorted(jobs, key=began_at, reverse=True):
            recent = now - began_at(experiment) < _RECENT
            ours = all(one.host in hosts for one in jobs[experiment])
            if recent and ours and experiment not in asked:
                known = Known(None, None, None, None, jobs, hosts)
                ask = Ask(experiment, None, now, state=State.UNKNOWN)
                seen = sighting(ask, known, now=now, silent=self._silent)
                if isinstance(seen, Seen):
                    found.append((experiment, seen))
        return tuple(found[:_FOUND])


def _fed(readings: Sequence[_Reading], answer: script.Answered) -> dict[str, str]:
    """Reads what has come; why there is none of a file, by path."""
    lacking: dict[str, str] = {}
    for i, reading in enumerate(readings):
        more = answer.files.get(i, "no answer came about it")
        if isinstance(more, str):
            lacking[reading.path] = more
        else:
            reading.feed(more)
    return lacking
