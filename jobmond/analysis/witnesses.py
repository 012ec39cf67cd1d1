"""The logs of one job that speak of its end, and which of them is believed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobmond.analysis.benign import NOTHING, Benign
from jobmond.analysis.diagnose import diagnose
from jobmond.analysis.diagnoser import Evidence
from jobmond.analysis.faults.catalogue import BY_ID
from jobmond.analysis.faults.fault import Role
from jobmond.analysis.logscan import Scan, tail_evidence
from jobmond.analysis.proof import proved
from jobmond.analysis.windows import Window, windowed
from jobmond.model.job import Job
from jobmond.model.observation import Examined, LogTail
from jobmond.model.outcome import Diagnosis

_ROLES = {Role.VERDICT: 0, Role.ROOT: 0, Role.SYMPTOM: 1, Role.CONSEQUENCE: 2, Role.CONFIRMATION: 2}
_LEAST = 3
# What a client sees of a server that died, and what any process may be sent.
_SEEN_BY_CLIENTS = frozenset({"network", "engine-dead", "python-exception", "nccl-timeout"})
_SENT = frozenset({"sigterm", "sigkill"})


@dataclass(frozen=True, slots=True)
class Witness:
    """One log and what it shows. `own` is the log that the job is known by."""

    path: str
    scan: Scan
    examined: Examined | None = None
    own: bool = False


def witnesses(tail: LogTail, benign: Benign = NOTHING) -> tuple[Witness, ...]:
    """The job's own log first. Where its parts were not read its end has to do."""
    offset = None if tail.joined else tail.offset
    own = tail_evidence(tail.tail, at_start=offset == 0, offset=offset, benign=benign)
    looked = [one for one in tail.examined if one.parts]
    if tail.joined or not looked or looked[0].path != tail.path:
        return (Witness(tail.path, own, own=True), *(_beside(one, benign) for one in looked))
    first, *others = looked
    evidence = replace(own, evidence=_evidence(first, benign), parts=_parts(first))
    mine = Witness(tail.path, evidence, first, own=True)
    return (mine, *(_beside(one, benign) for one in others))


def believed(job: Job, heard: Sequence[Witness]) -> tuple[Diagnosis, Witness | None]:
    """The cause, and the log that tells it; None where none was read."""
    found = [(_told_by(job, one), one) for one in heard]
    if not found:
        return _of(job, None), None
    return min(found, key=lambda pair: _weight(*pair))


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


def _weight(found: Diagnosis, witness: Witness) -> tuple[object, ...]:
    """The least is believed: what is proved, and a server before the client that lost it."""
    fault = BY_ID.get((found.fingerprint or "").partition(":")[0])
    name = witness.path.rpartition("/")[2].lower()
    return (
        found.cause == "unknown",
        found.line is None and not found.excerpt,
        found.cause in _SENT,
        _ROLES.get(fault.role, _LEAST) if fault else _LEAST,
        "client" in name and found.cause in _SEEN_BY_CLIENTS,
        found.cause == "python-exception",
        not witness.own,
        "server" not in name,
    )


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
