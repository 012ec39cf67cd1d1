"""Values as JSON objects, the same in documents, news and answers."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobmond.analysis.instants import instant
from jobmond.analysis.mask import mask
from jobmond.analysis.visible import visible
from jobmond.model.outcome import Diagnosis, Recurrence, Signal


def signal_object(signal: Signal) -> dict[str, Any]:
    """A signal in the interface's words; `recovered_at` only where it has recovered."""
    shown = {
        "rule": signal.rule,
        "severity": signal.severity.value,
        "title": visible(signal.title),
        "step": signal.step,
        "last_step": signal.last_step,
        "evidence": plain(signal.evidence),
        "action": signal.action,
    }
    if signal.recovered_at is None:
        return shown
    return {**shown, "recovered_at": instant(signal.recovered_at)}


def diagnosis_object(diagnosis: Diagnosis | None) -> dict[str, Any] | None:
    """A diagnosis in the interface's words; `recurrence` only where earlier failures were looked
    for, `log` only where it is not the job's own.
    """
    if diagnosis is None:
        return None
    shown = {
        "cause": diagnosis.cause,
        "summary": diagnosis.summary,
        "line": diagnosis.line,
        "first_line": diagnosis.first_line,
        "offset": diagnosis.offset,
        "excerpt": list(diagnosis.excerpt),
        "fingerprint": diagnosis.fingerprint,
        "victims": diagnosis.victims,
    }
    if diagnosis.log is not None:
        shown["log"] = visible(mask(diagnosis.log))
    if diagnosis.recurrence is None:
        return shown
    return {**shown, "recurrence": recurrence_object(diagnosis.recurrence)}


def recurrence_object(recurrence: Recurrence | None) -> dict[str, Any] | None:
    """How a failure stands among those before it."""
    if recurrence is None:
        return None
    return {
        "count": recurrence.count,
        "dates": [instant(at) for at in recurrence.dates],
        "interval_s": recurrence.interval_s,
        "fixed_s": recurrence.fixed_s,
        "transient": recurrence.transient,
        "previous": recurrence.previous,
        "elsewhere": recurrence.elsewhere,
        "words": recurrence.words,
    }


def plain(value: Any) -> Any:
    """Values that JSON knows: instants as text, NaN and infinities as words."""
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    return value
