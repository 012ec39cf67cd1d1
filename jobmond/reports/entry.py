"""The failure entry: one Markdown file about one incarnation that failed.

The front matter is for machines (YAML whose values are JSON), the rest for people.
"""

import hashlib
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jobmond import __version__
from jobmond.analysis.diagnose import diagnose
from jobmond.analysis.faults.catalogue import advice
from jobmond.analysis.logscan import Scan
from jobmond.analysis.mask import mask
from jobmond.analysis.objects import recurrence_object
from jobmond.analysis.ruled import ruled_out
from jobmond.analysis.visible import visible
from jobmond.analysis.witnesses import Witness
from jobmond.model.job import Job
from jobmond.model.outcome import Diagnosis, Failure, Transition
from jobmond.model.state import State
from jobmond.reports.markdown import code, fence, span, time, yaml_value
from jobmond.reports.timeline import timeline

_NAME_CHARS = 160  # of a file name without its suffix; file systems allow 255 bytes
_PART_CHARS = 60
_ENTRY = re.compile(r"[0-9-]{10}/[A-Za-z0-9._-]+\.md")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+|\.{2,}")

_NEXT_UNKNOWN = "Nothing proves a cause: read the whole log, from its end upwards."


@dataclass(frozen=True, slots=True)
class Told:
    """What an entry tells beside the job and its log.

    `looked` says where a log was looked for that was not there. `transitions` are what the job
    went through, `earlier` the failures to look at as well, whose entries are below `agent_logs`.
    `heard` are the logs that were read, `believed` is the one that tells the cause.
    """

    looked: Sequence[str] = ()
    transitions: Sequence[Transition] = ()
    earlier: Sequence[Failure] = ()
    agent_logs: str = ""
    heard: Sequence[Witness] = ()
    believed: Witness | None = None


NOTHING_ELSE = Told()


def entry(
    job: Job,
    *,
    now: datetime,
    scan: Scan | None,
    version: str = __version__,
    told: Told = NOTHING_ELSE,
) -> tuple[str, str]:
    """Path below the folder of entries, and text.

    `now` dates an entry whose job has no end. `scan` is None where no log could be read. The same
    values give the same text.
    """
    diagnosis = job.diagnosis or diagnose(
        scan,
        state=job.state,
        exit_code=job.facts.exit_code,
        signal=job.facts.signal,
        reason=job.facts.reason,
        message=job.facts.message,
    )
    parts = [
        "---",
        *_front_matter(job, diagnosis, scan, now, version),
        f"states: {yaml_value(_states(job, told.transitions))}",
        f"logs: {yaml_value(_read(told.heard))}",
        "---",
        "",
        f"# {job.state.value}: {code(job.name)} ({code(job.ref)})",
        "",
        *_in_short(diagnosis),
        *_what(job, diagnosis, now),
        *timeline(job, told.transitions),
        *_evidence(diagnosis, scan),
        *_ruled_out(diagnosis, told.believed.scan if told.believed else scan),
        *_log(job, scan, told),
        *_before(diagnosis, told),
        "## Next",
        "",
        *_next(job, diagnosis),
    ]
    return entry_path(job, now=now), "\n".join(parts) + "\n"


def entry_path(job: Job, *, now: datetime) -> str:
    """`YYYY-MM-DD/<cluster>-<id>-<name>.md`, the day being that of the job's end in UTC.

    A requeue keeps the native id: its entry gets `-restart<N>` so that none covers another.
    Where the id had to be changed to be a safe name, part of its hash tells it from its like.
    """
    day = (job.ended_at or now).astimezone(UTC).strftime("%Y-%m-%d")
    cluster, native = safe(job.cluster, _PART_CHARS), safe(job.native_id, _PART_CHARS)
    stem = f"{cluster}-{native}-{safe(job.name, _PART_CHARS)}"[:_NAME_CHARS]
    if native != job.native_id or cluster != job.cluster:
        stem += "-" + hashlib.sha256(job.ref.encode("utf-8", "replace")).hexdigest()[:8]
    if job.facts.restarts:
        stem += f"-restart{job.facts.restarts}"
    return f"{day}/{stem}.md"


def safe(text: str, limit: int) -> str:
    """`text` as part of a file name: only `[A-Za-z0-9._-]`, no `..`, no leading dot or dash."""
    return _UNSAFE.sub("_", mask(text))[:limit].strip("._-") or "job"


def _front_matter(
    job: Job, diagnosis: Diagnosis, scan: Scan | None, now: datetime, version: str
) -> Iterable[str]:
    facts = job.facts
    window = None
    if scan is not None and scan.offset is not None:
        window = [scan.offset, scan.offset + scan.size_bytes]
    values = {
        "schema": 1,
        "jobmond": version,
        "written_for": "failure",
        "ref": job.ref,
        "birth": job.birth,
        "cluster": job.cluster,
        "kind": job.kind.value,
        "native_id": job.native_id,
        "name": job.name,
        "user": facts.user,
        "bucket": job.bucket.value,
        "state": job.state.value,
        "native": job.native,
        "exit_code": facts.exit_code,
        "signal": facts.signal,
        "reason": facts.reason,
        "submitted_at": time(facts.submitted_at),
        "started_at": time(facts.started_at),
        "ended_at": time(job.ended_at or facts.ended_at or now),
        "elapsed_s": facts.elapsed_s,
        "nodes": facts.nodes,
        "log_path": job.log.path or facts.log_path,
        "log_status": job.log.status,
        "log_bytes": job.log.size_bytes,
        "log_window": window,
        "cause": diagnosis.cause,
        "cause_log": diagnosis.log,
        "line": diagnosis.line,
        "offset": diagnosis.offset,
        "fingerprint": diagnosis.fingerprint,
        "victims": diagnosis.victims,
        "summary": diagnosis.summary,
        "recurrence": recurrence_object(diagnosis.recurrence),
        "run": job.run,
        "life": job.life,
    }
    return [f"{name}: {yaml_value(value)}" for name, value in values.items()]


def _states(job: Job, transitions: Sequence[Transition]) -> list[str]:
    """The states it went through, as far as they were seen."""
    seen = [step.before for step in transitions[:1] if step.before]
    seen += [step.after for step in transitions]
    return [state.value for state in seen or [job.state]]


def _read(heard: Sequence[Witness]) -> dict[str, list[list[int]]]:
    """The byte ranges that were read of each log."""
    return {
        visible(mask(one.path)): [[p.offset, p.offset + len(p.data)] for p in one.examined.parts]
        for one in heard
        if one.examined is not None
    }


def _in_short(diagnosis: Diagnosis) -> Iterable[str]:
    """What broke, where it is proved and whether it was there before, in one line."""
    line = f"{diagnosis.cause}: {code(diagnosis.summary)}{_place(diagnosis.line, None)}"
    if diagnosis.recurrence is not None:
        line += f"; {diagnosis.recurrence.words}"
    return line, ""


def _what(job: Job, diagnosis: Diagnosis, now: datetime) -> Iterable[str]:
    facts = job.facts
    exited = "not known" if facts.exit_code is None else str(facts.exit_code)
    if facts.signal:
        exited += f", signal {facts.signal}"
    rows = (
        ("Cause", f"**{diagnosis.cause}**: {code(diagnosis.summary)}"),
        ("Victims", _victims(diagnosis)),
        ("Before", diagnosis.recurrence.words if diagnosis.recurrence else ""),
        ("State", f"{job.state.value} ({code(job.native)})"),
        ("Exit code", exited),
        ("Reason", code(facts.reason) if facts.reason else "none given"),
        ("Message", code(facts.message) if facts.message else ""),
        ("Where", f"{code(job.cluster)}, nodes {code(facts.nodes or 'not known')}"),
        ("Who", code(facts.user or "not known")),
        ("Submitted", time(facts.submitted_at) or "not known"),
        ("Started", time(facts.started_at) or "not known"),
        ("Ended", time(job.ended_at or facts.ended_at or now) or ""),
        ("Elapsed", "not known" if facts.elapsed_s is None else span(facts.elapsed_s)),
        ("Run", f"{code(job.run)}, life {job.life}"),
        ("Parts", _parts(job)),
        ("Work directory", code(facts.workdir) if facts.workdir else ""),
        ("Command", code(facts.command) if facts.command else ""),
        ("Proved by", code(job.proof or "nothing recorded")),
    )
    return [
        "## What happened",
        "",
        *(f"- {title}: {text}" for title, text in rows if text),
        "",
    ]


def _victims(diagnosis: Diagnosis) -> str:
    if not diagnosis.victims:
        return ""
    return f"{diagnosis.victims} other processes went down because of it"


def _parts(job: Job) -> str:
    tasks = job.facts.tasks
    if tasks is None:
        return ""
    counts = ", ".join(f"{count} {state.value}" for state, count in tasks.by_state.items())
    failed = f"; failed first: {code(', '.join(tasks.failed))}" if tasks.failed else ""
    return f"{tasks.total} ({counts}){failed}"


def _log(job: Job, scan: Scan | None, told: Told) -> Iterable[str]:
    path = job.log.path or job.facts.log_path
    yield from ("## Log", "")
    yield f"- Path: {code(path) if path else 'not known'}"
    size = job.log.size_bytes
    yield f"- Status: {job.log.status}" + ("" if size is None else f", {size} bytes")
    if job.log.error:
        yield f"- Error: {code(job.log.error)}"
    yield f"- Looked at: {scan.looked if scan else 'nothing'}"
    for place in told.looked:
        yield f"- Looked in: {code(place)}"
    for one in told.heard[1:]:
        yield f"- Looked at {code(one.path)} as well: {one.scan.looked}"
    yield ""
    if scan and scan.last_lines:
        yield from ("Last lines:", "", *fence(scan.last_lines), "")


def _evidence(diagnosis: Diagnosis, scan: Scan | None) -> Iterable[str]:
    if diagnosis.excerpt:
        where = f" in {code(diagnosis.log)}" if diagnosis.log else ""
        yield from (f"## Evidence{where}{_place(diagnosis.line, diagnosis.offset)}", "")
        yield from (*fence(diagnosis.excerpt), "")
    quote = scan.traceback if scan else None
    if quote and quote.excerpt != diagnosis.excerpt:
        yield from (f"## First traceback{_place(quote.line, quote.offset)}", "")
        yield from (*fence(quote.excerpt), "")


def _ruled_out(diagnosis: Diagnosis, scan: Scan | None) -> Iterable[str]:
    """What looks bad in the log and is not the cause."""
    found = ruled_out(scan.evidence, diagnosis) if scan and scan.evidence else ()
    if not found:
        return
    yield from ("## Ruled out", "")
    for each in found:
        times = f" ({each.count} times)" if each.count > 1 else ""
        yield f"- {code(each.text)}{times}{_place(each.line, None)}: {each.why}"
    yield ""


def _before(diagnosis: Diagnosis, told: Told) -> Iterable[str]:
    """The earlier failures of its kind, and the one before it, with their entries."""
    if not told.earlier:
        return
    yield from ("## Earlier failures", "")
    for failure in told.earlier:
        same = failure.fingerprint is not None and failure.fingerprint == diagnosis.fingerprint
        after = "" if failure.elapsed_s is None else f" after {span(failure.elapsed_s)}"
        what = "the same" if same else f"{failure.cause}: {code(failure.summary)}"
        yield f"- {time(failure.at)} {_link(failure, told.agent_logs)}{after}: {what}"
    yield ""


def _link(failure: Failure, agent_logs: str) -> str:
    """A failure by its ref, which leads to its entry where that is below the same folder."""
    path = failure.entry or ""
    relative = path.removeprefix(f"{agent_logs}/")
    if not agent_logs or relative == path or not _ENTRY.fullmatch(relative):
        return code(failure.ref)
    return f"[{code(failure.ref)}](../{relative})"


def _place(line: int | None, offset: int | None) -> str:
    words = [] if line is None else [f"line {line}"]
    words += [] if offset is None else [f"byte {offset}"]
    return f" ({', '.join(words)})" if words else ""


def _next(job: Job, diagnosis: Diagnosis) -> Iterable[str]:
    yield f"- {_NEXT_UNKNOWN if diagnosis.cause == 'unknown' else _advice(diagnosis)}"
    if job.successor:
        yield f"- Continued by {code(job.successor)}."
    if job.state in (State.FAILED, State.OUT_OF_MEMORY, State.NODE_FAIL, State.LOST):
        yield f"- The log: {code(f'jobmonctl logs {shlex.quote(job.ref)} -n 500')}"


def _advice(diagnosis: Diagnosis) -> str:
    fault_id, _, _ = (diagnosis.fingerprint or "").partition(":")
    return advice(fault_id, diagnosis.cause)
