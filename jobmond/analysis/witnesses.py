"""The logs of one job that speak of its end, and which of them is believed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobmond.analysis import whichlog
from jobmond.analysis.benign import NOTHING, Benign
from jobmond.analysis.diagnose import diagnose
from jobmond.analysis.diagnoser import Evidence
from jobmond.analysis.logscan import Scan, tail_evidence
from jobmond.analysis.proof import proved
from jobmond.analysis.whichlog import Told, other_ranks
from jobmond.analysis.windows import Window, windowed
from jobmond.model.job import Job
from jobmond.model.observation import Examined, LogTail
from jobmond.model.outcome import Diagnosis


@dataclass(frozen=True, slots=True)
class Witness:
    """One log and what it shows. `own` is the log that the job is known by; with `joined` it is
    made of several, each of which may be a witness of its own.
    """

    path: str
    scan: Scan
    examined: Examined | None = None
    own: bool = False
    joined: bool = False


def witnesses(tail: LogTail, benign: Benign = NOTHING) -> tuple[Witness, ...]:
    """The job's own log first. Where its parts were not read its end has to do."""
    offset = None if tail.joined else tail.offset
    own = tail_evidence(tail.tail, at_start=offset == 0, offset=offset, benign=benign)
    looked = [one for one in tail.examined if one.parts]
    if tail.joined or not looked or looked[0].path != tail.path:
        mine = Witness(tail.path, own, own=True, joined=tail.joined)
        return (mine, *(_beside(one, benign) for one in looked))
    first, *others = looked
    evidence = replace(own, evidence=_evidence(first, benign), parts=_parts(first))
    mine = Witness(tail.path, evidence, first, own=True)
    return (mine, *(_beside(one, benign) for one in others))


def believed(job: Job, heard: Sequence[Witness]) -> tuple[Diagnosis, Witness | None]:
    """The cause, and the log that tells it; None where none was read."""
    heard = [one for one in heard if not one.joined] or heard
    said = [_told_by(job, one) for one in heard]
    told = [
        Told(one.path, found, one.own, _hurt(one)) for one, found in zip(heard, said, strict=True)
    ]
    chosen = whichlog.believed(told)
    if chosen is None:
        return _of(job, None), None
    found = said[chosen]
    if found.victims is None:
        found = replace(found, victims=other_ranks(told, chosen))
    return found, heard[chosen]


def _told_by(job: Job, witness: Witness) -> Diagnosis:
    found = _of(job, witness.scan)
    if witness.examined is not None:
        found = proved(found, witness.examined.parts)
    return found if witness.own else replace(found, log=witness.path)


def _of(job: Job, scan: Scan | None) -> Diagnosis:
    facts = job.facts
    return diagnose(
        scan,
        state=job.state,
        exit_code=facts.exit_code,
        signal=facts.signal,
        reason=facts.reason,
        message=facts.message,
    )


def _hurt(witness: Witness) -> bool:
    evidence = witness.scan.evidence
    return evidence is not None and any(not event.caught for event in evidence.events)


def _beside(one: Examined, benign: Benign) -> Witness:
    scan = Scan(
        offset=0, size_bytes=one.size_bytes, evidence=_evidence(one, benign), parts=_parts(one)
    )
    return Witness(one.path, scan, one)


def _evidence(one: Examined, benign: Benign) -> Evidence:
    return windowed((Window(p.offset, p.data, p.line) for p in one.parts), benign=benign)


def _parts(one: Examined) -> str | None:
    """What was looked at, for a person; None where it was all of it."""
    read = sum(len(part.data) for part in one.parts)
    if read >= one.size_bytes:
        return None
    how = (
        f"the whole of {one.size_bytes} bytes was searched"
        if one.searched
        else (f"of {one.size_bytes} bytes; what lies between was not searched to its end")
    )
    return f"{read} bytes in {len(one.parts)} parts ({how}, {one.hits} lines could matter)"
