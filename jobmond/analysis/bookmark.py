"""A reading put down as JSON values and taken up again: nothing that was read is read twice."""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from jobmond.analysis.logstate import LogState
from jobmond.analysis.pace import Pace
from jobmond.analysis.reading import Candidate, LogReader
from jobmond.analysis.segments import Cutter
from jobmond.analysis.stepguess import StepGuess
from jobmond.analysis.track import Track
from jobmond.model.state import Bucket
from jobmond.ports import MetricParser

VERSION = 2
_LENGTH_BYTES = 4
_FAST = 1  # deflate's level: a sweep packs one of these for each log that grew


def packed(reader: LogReader) -> bytes:
    """`put_down` as deflated JSON, for a store. What no rule reaches any more is put away first and
    goes along as it is from then on, until a run goes back so far.
    """
    if reader.settled:
        reader.candidates[0].state.put_away()
    head = zlib.compress(json.dumps(put_down(reader), separators=(",", ":")).encode(), _FAST)
    away = b"".join(candidate.state.track.away for candidate in reader.candidates[:1])
    return len(head).to_bytes(_LENGTH_BYTES) + head + away


def unpacked(
    kept: bytes,
    parsers: Iterable[MetricParser],
    *,
    judge: Callable[[LogState], None] | None = None,
) -> LogReader | None:
    """The reading that `packed` made, or None as `taken_up` says; also where it is damaged."""
    until = _LENGTH_BYTES + int.from_bytes(kept[:_LENGTH_BYTES])
    head, away = kept[_LENGTH_BYTES:until], kept[until:]
    try:
        return taken_up(json.loads(zlib.decompress(head)), parsers, judge=judge, away=away)
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError):
        return None


def put_down(reader: LogReader) -> dict[str, Any]:
    """Everything `reader` knows. `offset` is the byte in the log from which to go on: what was
    not closed yet is to be read again.
    """
    return {
        "version": VERSION,
        "offset": reader.cutter.offset,
        "settled": reader.settled,
        "relatives": [parser.name for parser in reader.relatives],
        "candidates": [
            {
                "dialect": candidate.parser.name,
                "memory": candidate.memory,
                "hints": sorted(hint.decode("latin-1") for hint in candidate.hints),
                "state": _plain(candidate.state),
            }
            for candidate in reader.candidates
        ],
    }


def taken_up(
    kept: Mapping[str, Any],
    parsers: Iterable[MetricParser],
    *,
    judge: Callable[[LogState], None] | None = None,
    away: bytes = b"",
) -> LogReader | None:
    """The reading that was put down, with what was put `away`; None where this program cannot go
    on with it (another version's, or a dialect that is gone) and has to begin again.
    """
    known = {parser.name: parser for parser in parsers}
    names = [entry["dialect"] for entry in kept.get("candidates", ())]
    if kept.get("version") != VERSION or any(name not in known for name in names):
        return None
    reader = LogReader((), judge=judge)
    reader.candidates = [_candidate(entry, known, away) for entry in kept["candidates"]]
    reader.relatives = tuple(known[name] for name in kept["relatives"] if name in known)
    reader.cutter = Cutter(kept["offset"])
    reader.settle(kept["settled"])
    return reader


def _candidate(
    entry: Mapping[str, Any], known: Mapping[str, MetricParser], away: bytes
) -> Candidate:
    return Candidate(
        parser=known[entry["dialect"]],
        state=_state(entry["state"], away),
        memory=dict(entry["memory"]),
        hints={hint.encode("latin-1") for hint in entry["hints"]},
    )


def _plain(state: LogState) -> dict[str, Any]:
    values = {item.name: getattr(state, item.name) for item in fields(state)}
    return {
        **values,
        "dialect_bucket": str(state.dialect_bucket),
        "coarse": sorted(state.coarse),
        "checkpoints": sorted(state.checkpoints),
        "guess": state.guess.plain(),
        "pace": state.pace.plain(),
        "track": state.track.plain(),
    }


def _state(plain: Mapping[str, Any], away: bytes) -> LogState:
    return LogState(
        **{
            **plain,
            "dialect_bucket": Bucket(plain["dialect_bucket"]),
            "coarse": set(plain["coarse"]),
            "checkpoints": set(plain["checkpoints"]),
            "guess": StepGuess(**plain["guess"]),
            "pace": Pace(**plain["pace"]),
            "track": Track.read(plain["track"], away),
        }
    )
