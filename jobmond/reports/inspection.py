"""What a log says by itself, as the interface's JSON object and as a few lines."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobmond.analysis.logstate import LogState
from jobmond.analysis.replay import Firing
from jobmond.analysis.track import POINTS, thinned
from jobmond.analysis.visible import visible
from jobmond.model.metrics import CANONICAL, Column
from jobmond.model.outcome import Diagnosis, Signal
from jobmond.model.state import Bucket


@dataclass(frozen=True, slots=True)
class Inspection:
    """One log (or several that are lives of one run), read to its end.

    `firings` is what a replay of the rules gave, None where none was asked for; `signals` what
    stands at the end. `events` are those of a launcher's output file.
    """

    path: str
    dialect: str
    bucket: Bucket
    size_bytes: int
    lines: int
    phase: str
    state: LogState
    signals: Sequence[Signal] = ()
    firings: Sequence[Firing] | None = None
    diagnosis: Diagnosis | None = None
    all_series: bool = False
    events: Sequence[Mapping[str, Any]] | None = None


def document(seen: Inspection) -> dict[str, Any]:
    """The object of `inspect --json`."""
    state = seen.state
    found = {
        "schema": 1,
        "path": seen.path,
        "bucket": str(seen.bucket),
        "dialect": seen.dialect,
        "bytes": seen.size_bytes,
        "lines": seen.lines,
        "life": state.life,
        "resumed_from": state.resumed_from,
        "phase": seen.phase,
        "step": state.step,
        "max_step": state.max_step,
        "metrics": {n: _plain(v) for n, v in sorted({**state.last, **state.canonical}.items())},
        "series": _series(seen),
        "rate_s_per_step": _rounded(state.rate_s_per_step),
        "eta_s": None if seen.phase in ("done", "failed") else _rounded(state.eta_s),
        "checkpoints": sorted(state.checkpoints),
        "signals": _signals(seen),
        "diagnosis": _diagnosis(seen.diagnosis),
    }
    return found if seen.events is None else {**found, "events": list(seen.events)}


def text(seen: Inspection) -> list[str]:
    """The same for a person."""
    state = seen.state
    at = "—" if state.step is None else str(state.step)
    most = "" if state.max_step is None else f"/{state.max_step}"
    resumed = "" if state.resumed_from is None else f", resumed from {state.resumed_from}"
    said = [
        f"{visible(seen.path)}: {seen.dialect}, {seen.bucket}, {seen.phase}",
        f"  step {at}{most}, life {state.life}{resumed}; {seen.size_bytes} bytes, "
        f"{seen.lines} lines",
    ]
    metrics = [f"{n} {v:.4g}" for n, v in sorted(state.canonical.items())]
    if metrics:
        said.append("  " + ", ".join(metrics))
    if state.rate_s_per_step is not None:
        eta = "" if state.eta_s is None else f", {state.eta_s:.0f} s to go"
        said.append(f"  {state.rate_s_per_step:.3g} s/step{eta}")
    if state.checkpoints:
        said.append("  checkpoints " + ", ".join(map(str, sorted(state.checkpoints))))
    for signal in _signals(seen):
        span = f"steps {signal['step']}-{signal['last_step']}"
        said.append(f"  {signal['severity']} {signal['rule']}: {visible(signal['title'])} ({span})")
    for event in seen.events or ():
        told = ", ".join(f"{key} {value}" for key, value in event.items() if key != "event")
        said.append(visible(f"  {event['event']}: {told}"))
    if seen.diagnosis is not None:
        said.append(f"  {seen.diagnosis.cause}: {visible(seen.diagnosis.summary)}")
    return said


def _series(seen: Inspection) -> dict[str, list[list[Any]]]:
    track = seen.state.track
    columns = track.columns(None if seen.all_series else CANONICAL)
    protected = track.protected
    return {
        name: [[step, _plain(value)] for step, value in _points(column, seen.all_series, protected)]
        for name, column in columns.items()
    }


def _points(
    column: Column, everything: bool, protected: Collection[int]
) -> list[tuple[int, float]]:
    points = dict(zip(column.steps, column.values, strict=True))
    return list((points if everything else thinned(points, POINTS, protected)).items())


def _signals(seen: Inspection) -> list[dict[str, Any]]:
    if seen.firings is None:
        return [_signal(signal) for signal in seen.signals]
    return [{**_signal(f.signal), "replayed": True, "life": f.life} for f in seen.firings]


def _signal(signal: Signal) -> dict[str, Any]:
    return {
        "rule": signal.rule,
        "severity": str(signal.severity),
        "title": signal.title,
        "step": signal.step,
        "last_step": signal.last_step,
        "evidence": {name: _plain(value) for name, value in signal.evidence.items()},
        "action": signal.action,
    }


def _diagnosis(found: Diagnosis | None) -> Mapping[str, Any] | None:
    if found is None:
        return None
    return {
        "cause": found.cause,
        "summary": found.summary,
        "line": found.line,
        "first_line": found.first_line,
        "offset": found.offset,
        "excerpt": list(found.excerpt),
        "fingerprint": found.fingerprint,
        "victims": found.victims,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
