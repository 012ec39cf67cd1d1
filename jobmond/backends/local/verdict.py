"""From what was seen of a process to what is to be said about the job."""

from dataclasses import dataclass, replace
from datetime import datetime

from jobmond.analysis.benign import NOTHING, Benign
from jobmond.analysis.logscan import tail_evidence
from jobmond.analysis.submitted import fits
from jobmond.backends.local.probe import Host, Process, Record, Stat, started_at
from jobmond.model.observation import Ask, Facts, Gone, Seen, Sighting, Unreachable
from jobmond.model.state import State

_DEAD = ("Z", "X", "x")
_STOPPED = ("T", "t")
_NAMELESS = "UNKNOWN"  # what `stat` calls a number without a name


@dataclass(frozen=True, slots=True)
class _Case:
    """`record` and `stat` are those of the incarnation `birth`, None where there are none."""

    ask: Ask
    birth: str
    process: Process
    host: Host
    now: datetime
    record: Record | None
    stat: Stat | None
    benign: Benign


def sighting(
    ask: Ask, process: Process | None, host: Host, *, now: datetime, benign: Benign = NOTHING
) -> Sighting:
    """What is known of the incarnation that `ask` means.

    An end on record wins, then life, then the wait status of a process nobody has collected yet,
    then the words its log ends with. A number that now belongs to a later process, or a start of
    the host in between, mean that the one asked about is gone.
    """
    if process is None:
        return Unreachable(f"nothing was said about {ask.native_id}")
    if process.hidden and _this_boot(ask.birth, host) and not _closed(process, ask.birth):
        return Unreachable(f"{ask.native_id}: {process.hidden}")
    birth = _birth(ask, process, host)
    if birth is None:
        return Gone(f"no process has the number {ask.native_id.removeprefix('pid-')}")
    record = next((r for r in process.records if r.birth == birth), None)
    stat = process.stat if process.stat and _birth_of(process.stat, host) == birth else None
    case = _Case(ask, birth, process, host, now, record, stat, benign)
    for look in (_recorded, _alive, _uncollected, _told_by_log):
        seen = look(case)
        if seen:
            return seen
    return Gone(_why_gone(case))


def _closed(process: Process, birth: str | None) -> bool:
    return any(record.closed and record.birth == birth for record in process.records)


def _birth(ask: Ask, process: Process, host: Host) -> str | None:
    """Whom the question is about: at the first sighting whoever has the number now, unless the
    time that people gave for its start forbids that."""
    if ask.birth is not None:
        return ask.birth
    hint = ask.submitted_at
    if process.stat and (hint is None or fits(hint, started_at(process.stat, host))):
        return _birth_of(process.stat, host)
    records = [
        r
        for r in process.records
        if _this_boot(r.birth, host)
        and (hint is None or r.started_at is None or fits(hint, r.started_at))
    ]
    return max(records, key=lambda r: int(r.birth.rpartition(":")[2])).birth if records else None


def _birth_of(stat: Stat, host: Host) -> str:
    return f"{host.boot_id}:{stat.start_ticks}"


def _this_boot(birth: str | None, host: Host) -> bool:
    return birth is None or birth.partition(":")[0] == host.boot_id


def _recorded(case: _Case) -> Seen | None:
    record = case.record
    if record is None or not record.closed:
        return None
    return _ended(case, record.exit_code, record.signal, "the record of jobmonctl run")


def _ended(case: _Case, exit_code: int | None, signal: int | None, proof: str) -> Seen:
    facts = replace(_facts(case), exit_code=exit_code, signal=signal or None)
    done = exit_code == 0 and not signal
    native = f"signal {signal}" if signal else f"exited {exit_code}"
    return Seen(State.COMPLETED if done else State.FAILED, native, case.birth, facts, proof)


def _alive(case: _Case) -> Seen | None:
    stat, process, record = case.stat, case.process, case.record
    if stat is None or stat.state in _DEAD:
        return None
    began = started_at(stat, case.host)
    out, err = _usable(process.out), _usable(process.err)
    log = (record.log if record else None) or out
    stopped = stat.state in _STOPPED
    facts = Facts(
        name=(record.name if record else None) or stat.program,
        user=process.user,
        workdir=process.workdir or (record.workdir if record else None),
        command=process.command or (record.command if record else None),
        submitted_at=began,
        started_at=began,
        elapsed_s=max(0, int((case.now - began).total_seconds())),
        nodes=case.host.name,
        log_path=log or err,
        err_path=err if log and err not in {log, out} else None,
        suspended=stopped,
    )
    native = "stopped" if stopped else "running"
    return Seen(State.RUNNING, native, case.birth, facts, "/proc")


def _usable(path: str | None) -> str | None:
    """A path that leads to the file still; the kernel marks one that was removed."""
    return path if path and path.startswith("/") and not path.endswith(" (deleted)") else None


def _uncollected(case: _Case) -> Seen | None:
    """The end of a zombie. To others than its user and root the kernel shows a wait status of 0."""
    stat = case.stat
    if stat is None or stat.wait_status is None:
        return None
    if not (case.host.root or case.process.user == case.host.user):
        return None
    signal = stat.wait_status & 0x7F
    code = None if signal else stat.wait_status >> 8
    return _ended(case, code, signal, "/proc, not yet collected by its parent")


def _told_by_log(case: _Case) -> Seen | None:
    log = case.process.log
    facts = _facts(case)
    # A file that is somebody else's was put there later.
    if log is None or log.owner != facts.user or log.owner == _NAMELESS:
        return None
    start = max(0, log.size_bytes - len(log.tail))
    scan = tail_evidence(log.tail, at_start=start == 0, offset=start, benign=case.benign)
    facts = replace(facts, log_path=facts.log_path or log.path)
    said = scan.proves_failure or scan.proves_end
    if said is None:
        return None
    state = State.FAILED if scan.proves_failure else State.COMPLETED
    return Seen(state, "gone", case.birth, facts, f"gone; its log ends with: {said[:200]}")


def _facts(case: _Case) -> Facts:
    """What was known while it lived, completed from its record."""
    record = case.record
    facts = replace(case.ask.facts, suspended=False, exit_code=None, signal=None)
    if record is None:
        return facts
    began = facts.started_at or record.started_at
    elapsed = facts.elapsed_s
    if began and record.ended_at:
        elapsed = max(0, int((record.ended_at - began).total_seconds()))
    return replace(
        facts,
        name=facts.name or record.name,
        user=facts.user or record.user,
        workdir=facts.workdir or record.workdir,
        command=facts.command or record.command,
        submitted_at=facts.submitted_at or began,
        started_at=began,
        ended_at=record.ended_at,
        elapsed_s=elapsed,
        log_path=facts.log_path or record.log,
    )


def _why_gone(case: _Case) -> str:
    now = case.process.stat
    if not _this_boot(case.birth, case.host):
        return "the host was restarted since, and no end is on record"
    if now and case.stat is None:
        return "its number belongs to a later process, and no end is on record"
    if now:
        return "it has ended, and nobody here knows how"
    return "no such process, and no end is on record"
