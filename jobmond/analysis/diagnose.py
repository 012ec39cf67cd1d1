"""Why a job failed, from what the scheduler says and what the end of its log shows."""

import re
from dataclasses import replace

from jobmond.analysis.choosing import Word, choose
from jobmond.analysis.diagnoser import Evidence
from jobmond.analysis.faults.catalogue import match_exception
from jobmond.analysis.faults.fault import Role
from jobmond.analysis.fingerprint import fingerprint
from jobmond.analysis.loglines import clipped
from jobmond.analysis.logscan import Quote, Scan, tail_evidence
from jobmond.model.outcome import Diagnosis
from jobmond.model.state import State

_SAID_CHARS = 300
_NOTHING = Evidence(
    events=(), marks=0, sections=0, born=0, benign=0, victims=None, tail=b"", size_bytes=0
)


def diagnose(
    scan: Scan | None,
    *,
    state: State,
    exit_code: int | None = None,
    signal: int | None = None,
    reason: str | None = None,
    message: str | None = None,
) -> Diagnosis:
    """The cause of a job that ended in `state`, as far as it is proved; else `unknown`.

    `scan` is None where no log could be read. `message` is what the source says of the end, often
    the last words of the program: they count where the log proves nothing. Where nothing is
    proved the summary says what was looked at.
    """
    found = _diagnosed(scan, Word(state, exit_code, signal, reason))
    if found.cause != "unknown":
        return found
    told = _by_message(message, Word(state, exit_code, signal, reason)) if message else None
    told = told or _by_reason(reason)
    if told is not None or not message or found.excerpt:
        return told or found
    said = " ".join(f"{reason or state.value}: {message}".split())
    return replace(found, summary=clipped(said, _SAID_CHARS))


# Native words for an end that alone name a class. Source: the container runtimes of Kubernetes.
_NAMED = {"StartError": "container", "ContainerCannotRun": "container"}


def _by_reason(reason: str | None) -> Diagnosis | None:
    cause = _NAMED.get(reason or "")
    if cause is None:
        return None
    said = f"The container could not be started ({reason})"
    return Diagnosis(cause, said, fingerprint=f"scheduler:-:-:{reason}")


_EXCEPTION = re.compile(r"[A-Za-z_][\w.]{0,120}(?:Error|Exception|Exit|Interrupt|Warning)(?::|$)")


def _by_message(message: str, word: Word) -> Diagnosis | None:
    said = tail_evidence(message.encode("utf-8", "replace"), at_start=True)
    found = _diagnosed(said, word)
    if found.cause == "unknown":
        last = next((x for x in reversed(message.splitlines()) if x.strip()), "").strip()
        if not _EXCEPTION.match(last):
            return None
        fault = match_exception(last)
        if fault.role in (Role.BENIGN, Role.CONFIRMATION):
            return None
        signature = fingerprint(fault.id, last, None)
        found = Diagnosis(fault.cause, clipped(last, _SAID_CHARS), fingerprint=signature)
    # Its places are those of the message, and not of any file.
    return replace(found, line=None, first_line=None, offset=None)


def _diagnosed(scan: Scan | None, word: Word) -> Diagnosis:
    evidence = scan.evidence if scan and scan.evidence else _NOTHING
    found = choose(evidence, word)
    if found is None or found.cause == "unknown":
        found = _headless(scan) or found
    looked = f"Looked at {scan.looked}." if scan else "No log was read."
    if found is None or (found.cause == "unknown" and found.line is None and not found.excerpt):
        summary = clipped(f"{_nothing(word, scan)}. {looked}", _SAID_CHARS)
        signature = found.fingerprint if found else None
        victims = found.victims if found else None
        return Diagnosis("unknown", summary, fingerprint=signature, victims=victims)
    if scan is not None and scan.offset is None:
        found = replace(found, offset=None)
    return found


def _headless(scan: Scan | None) -> Diagnosis | None:
    """A traceback whose header lies before the window."""
    quote = scan.traceback if scan else None
    if quote is None:
        return None
    fault = match_exception(quote.text)
    if fault.role in (Role.BENIGN, Role.CONFIRMATION):
        return None
    return _quoted(fault.cause, fault.id, quote)


def _quoted(cause: str, fault_id: str, quote: Quote) -> Diagnosis:
    return Diagnosis(
        cause=cause,
        summary=clipped(quote.text.rstrip("."), _SAID_CHARS),
        line=quote.line,
        first_line=quote.first_line,
        offset=quote.offset,
        excerpt=quote.excerpt,
        fingerprint=fingerprint(fault_id, quote.text, None),
    )


def _nothing(word: Word, scan: Scan | None) -> str:
    how = word.state.value if word.state else "Failed"
    if word.exit_code is not None:
        how += f" with exit code {word.exit_code}"
    if word.signal:
        how += f" and signal {word.signal}"
    if scan is None or not scan.size_bytes:
        return f"{how}; nothing says why"
    expected = scan.evidence.benign if scan.evidence else 0
    also = f" ({expected} lines that look bad are expected)" if expected else ""
    return f"{how}; the log holds no traceback and no kill line{also}"
