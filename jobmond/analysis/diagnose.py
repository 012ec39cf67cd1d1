"""Why a job failed, from what the scheduler says and what its log shows.

The chain below is asked in order and the first answer stands, so a new way of knowing is one
function at its place in `_CHAIN`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from jobmond.analysis.loglines import clipped
from jobmond.analysis.logscan import Quote, Scan
from jobmond.model.outcome import Diagnosis
from jobmond.model.state import State

_SAID_CHARS = 300
_BY_STATE = {
    State.OUT_OF_MEMORY: ("host-oom", "the job was killed for its memory"),
    State.TIMEOUT: ("walltime", "the job reached its time limit"),
    State.NODE_FAIL: ("node-failure", "a node of the job failed"),
    State.PREEMPTED: ("preempted", "the job was preempted"),
}
_SIGNALS = {
    7: ("segfault", "SIGBUS"),
    9: ("sigkill", "SIGKILL"),
    11: ("segfault", "SIGSEGV"),
    15: ("sigterm", "SIGTERM"),
}


@dataclass(frozen=True, slots=True)
class _Evidence:
    scan: Scan | None
    state: State
    exit_code: int | None
    signal: int | None

    def mark(self, cause: str) -> Quote | None:
        marks = self.scan.marks if self.scan else ()
        return next((mark for mark in marks if mark.cause == cause), None)


@dataclass(frozen=True, slots=True)
class _Finding:
    cause: str
    said: str
    quote: Quote | None = None


def diagnose(
    scan: Scan | None,
    *,
    state: State,
    exit_code: int | None = None,
    signal: int | None = None,
) -> Diagnosis:
    """The cause of a job that ended in `state`, as far as it is proved; else `unknown`.

    `scan` is None where no log could be read. Where nothing is proved the summary says what was
    looked at.
    """
    evidence = _Evidence(scan, state, exit_code, signal)
    found = next((f for f in (ask(evidence) for ask in _CHAIN) if f), None)
    if found is None:
        found = _Finding("unknown", _nothing(evidence))
    looked = f"Looked at {scan.looked}." if scan else "No log was read."
    quote = found.quote
    return Diagnosis(
        cause=found.cause,
        summary=clipped(found.said, _SAID_CHARS)
        + (f". {looked}" if found.cause == "unknown" else ""),
        line=quote.line if quote else None,
        first_line=quote.first_line if quote else None,
        offset=quote.offset if quote else None,
        excerpt=quote.excerpt if quote else (),
    )


def _state(evidence: _Evidence) -> _Finding | None:
    known = _BY_STATE.get(evidence.state)
    if known is None:
        return None
    cause, said = known
    return _Finding(cause, _sentence(said), evidence.mark(cause))


def _signal(evidence: _Evidence) -> _Finding | None:
    number = evidence.signal
    if not number and evidence.exit_code and 128 < evidence.exit_code < 160:
        number = evidence.exit_code - 128
    known = _SIGNALS.get(number or 0)
    if known is None:
        return None
    cause, name = known
    said = f"The job was ended by {name}, sender unknown"
    if cause == "segfault":
        said = f"The program crashed with {name}"
    if evidence.scan and evidence.scan.traceback:
        said += f"; the log also holds: {evidence.scan.traceback.text.rstrip('.')}"
    return _Finding(cause, said, evidence.mark(cause))


def _exception(evidence: _Evidence) -> _Finding | None:
    quote = evidence.scan.traceback if evidence.scan else None
    return _Finding("python-exception", quote.text.rstrip("."), quote) if quote else None


def _last_mark(evidence: _Evidence) -> _Finding | None:
    """A kill line that ends the log of a process whose exit nobody recorded."""
    scan = evidence.scan
    if scan is None or not scan.proves_failure or not scan.marks:
        return None
    mark = scan.marks[-1]
    return _Finding(mark.cause, f"The log ends with: {mark.text.strip().rstrip('.')}", mark)


_CHAIN: tuple[Callable[[_Evidence], _Finding | None], ...] = (
    _state,
    _signal,
    _exception,
    _last_mark,
)


def _nothing(evidence: _Evidence) -> str:
    how = evidence.state.value
    if evidence.exit_code is not None:
        how += f" with exit code {evidence.exit_code}"
    if evidence.signal:
        how += f" and signal {evidence.signal}"
    if evidence.scan is None or not evidence.scan.size_bytes:
        return f"{how}; nothing says why"
    return f"{how}; the log holds no traceback and no kill line"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
