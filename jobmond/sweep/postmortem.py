"""What the log adds to an end: the cause, the entry about it, and for how long to look."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from jobmond import __version__
from jobmond.analysis.benign import NOTHING, Benign
from jobmond.analysis.failures import History, failure_of
from jobmond.analysis.logscan import Scan, tail_evidence
from jobmond.analysis.mask import mask
from jobmond.analysis.visible import visible
from jobmond.analysis.witnesses import believed, witnesses
from jobmond.model.job import Job, LogEvidence
from jobmond.model.observation import Absent, LogTail, NotApplicable, Read, Reading, Unavailable
from jobmond.model.outcome import Failure, Transition
from jobmond.model.state import PostMortem
from jobmond.reports.entry import Told, entry, entry_path

_LAST_LINE_CHARS = 200
_ALIKE = 10  # earlier failures that an entry names
_UNKNOWN = "unknown"
_RECORD_GONE = "record-gone"  # the reason of sources that forget what is over


@dataclass(frozen=True, slots=True)
class Autopsy:
    """A job after its end was looked into.

    `entry` is the text of the failure entry where it has to be written (again). `cause_changed`
    says that a failure told earlier now has another class of cause.
    """

    job: Job
    entry: str | None = None
    cause_changed: bool = False


@dataclass(frozen=True, slots=True)
class Story:
    """What the store knows beside a job: the cluster's failures, what the job went through."""

    history: History = field(default_factory=History)
    transitions: tuple[Transition, ...] = ()

    def compared(self, job: Job, now: datetime) -> tuple[Job, tuple[Failure, ...]]:
        """`job` with how its failure stands among those before it, and the earlier ones to look
        at. It is part of the history from then on.
        """
        failed = failure_of(job, now)
        if failed is None or job.diagnosis is None:
            return job, ()
        standing, alike = self.history.standing(failed), self.history.alike(failed)
        before = self.history.before(failed)
        self.history.add(failed)
        earlier = dict.fromkeys((*alike[:_ALIKE], *([before] if before else [])))
        return replace(job, diagnosis=replace(job.diagnosis, recurrence=standing)), tuple(earlier)


def autopsy(
    job: Job,
    reading: Reading[LogTail],
    *,
    ended_now: bool,
    agent_logs: str,
    sweeps: int,
    now: datetime,
    benign: Benign = NOTHING,
    story: Story | None = None,
) -> Autopsy:
    """Look into an end that was seen in this sweep, or whose log was still wanted.

    The first look writes the entry whether there is a log or not; later ones, up to `sweeps`
    more, rewrite it when they find something. A sweep that could not ask is no look. What is found
    becomes part of the story's history.
    """
    due = job.post_mortem is PostMortem.PENDING and not isinstance(reading, NotApplicable)
    if not ended_now and not due:
        return Autopsy(job)
    heard = witnesses(reading.value, benign) if isinstance(reading, Read) else ()
    scan = heard[0].scan if heard else None
    found, teller = believed(job, heard)
    facts = job.facts
    tries = 0 if ended_now else job.post_mortem_tries + 1
    known = None if ended_now else job.diagnosis
    if scan is not None and scan.size_bytes:
        stage = PostMortem.DONE
    else:
        stage = PostMortem.PENDING if tries < sweeps else PostMortem.GIVEN_UP
    told = known.cause if known else _UNKNOWN
    # Of a record that is gone nobody can say more: that is no diagnosis.
    mute = found.cause == _UNKNOWN and facts.reason == _RECORD_GONE and known is None
    better = ended_now or (not mute and (known is None or found.cause != told))
    better = better or stage is PostMortem.DONE
    after = replace(
        job,
        post_mortem=stage,
        post_mortem_tries=tries,
        diagnosis=None if mute else found if better else known,
    )
    if not better:
        return Autopsy(after)
    after = replace(after, log=evidence(after.log, reading, now=now))
    after = replace(after, agent_log=f"{agent_logs}/{entry_path(after, now=now)}")
    story = story or Story()
    after, earlier = story.compared(after, now)
    looked = reading.looked if isinstance(reading, Absent) else ()
    told_of = Told(looked, story.transitions, earlier, agent_logs, heard, teller)
    _, text = entry(after, now=now, scan=scan, version=__version__, told=told_of)
    return Autopsy(after, text, cause_changed=not ended_now and found.cause != told)


def scanned(reading: Reading[LogTail], benign: Benign = NOTHING) -> Scan | None:
    """What a log's end shows; None where it could not be read."""
    if not isinstance(reading, Read):
        return None
    tail = reading.value
    offset = None if tail.joined else tail.offset
    return tail_evidence(tail.tail, at_start=offset == 0, offset=offset, benign=benign)


def evidence(known: LogEvidence, reading: Reading[LogTail], *, now: datetime) -> LogEvidence:
    """The log as the last look found it. A look that failed keeps what was known before."""
    if isinstance(reading, Read):
        tail = reading.value
        scan = scanned(reading)
        last = scan.last_line if scan else None
        return LogEvidence(
            status="read" if tail.size_bytes else "empty",
            path=tail.path,
            size_bytes=tail.size_bytes,
            inode=tail.inode,
            mtime_at=tail.mtime_at,
            read_at=now,
            last_line=visible(mask(last.strip()))[:_LAST_LINE_CHARS] if last else None,
            changed_at=_changed_at(known, tail, now),
            rested_at=known.rested_at,
        )
    if isinstance(reading, Absent):
        where = ", ".join(reading.looked)
        return replace(known, status="absent", error=f"looked for {where}" if where else None)
    if isinstance(reading, Unavailable):
        return replace(known, status="unavailable", error=reading.why)
    return known


def _changed_at(known: LogEvidence, tail: LogTail, now: datetime) -> datetime:
    """By our own clock; only what happened before the first look is taken from the file's."""
    if known.mtime_at is None:
        return min(tail.mtime_at, now)
    same = (known.size_bytes, known.mtime_at) == (tail.size_bytes, tail.mtime_at)
    return min(known.changed_at or known.mtime_at, now) if same else now  # clocks are set back
