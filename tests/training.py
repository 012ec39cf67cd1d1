"""The stored training logs and the ways in which tests read them."""

import gzip
import json
import math
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from jobmond.analysis.bookmark import put_down
from jobmond.analysis.logstate import LogState
from jobmond.analysis.reading import Candidate, LogReader
from jobmond.analysis.replay import Firing, Replay
from jobmond.model.state import Bucket
from jobmond.registry import parsers, rules

HERE = Path(__file__).parent / "transcripts"
LOGS = sorted(path.name.removesuffix(".out.gz") for path in (HERE / "training").glob("*.out.gz"))
PARSERS = {name: parsers[name]() for name in parsers}
STEP_RULES = ("rl-collapse", "rl-watch", "nan-loss", "grad-explosion", "dead-run")


@cache
def log(name: str) -> bytes:
    """A stored log of a whole run."""
    return gzip.decompress((HERE / "training" / f"{name}.out.gz").read_bytes())


@cache
def truth(name: str) -> dict[str, Any]:
    """What a recorder inside that run saw."""
    return json.loads(gzip.decompress((HERE / "training" / f"{name}.truth.json.gz").read_bytes()))


def lines_of(name: str) -> bytes:
    """A stored piece of a log, by its path below `dialects`."""
    return (HERE / "dialects" / name).read_bytes()


def reader(dialect: str | None = None, **options: Any) -> LogReader:
    chosen = [PARSERS[dialect]] if dialect else PARSERS.values()
    return LogReader(chosen, **options)


def read(raw: bytes, dialect: str | None = None, *, cuts: tuple[int, ...] = ()) -> Candidate:
    """A log read to its end, in the pieces between `cuts`."""
    following = fed(raw, dialect, cuts=cuts)
    found = following.finish()
    assert found is not None
    return found


def fed(raw: bytes, dialect: str | None = None, *, cuts: tuple[int, ...] = ()) -> LogReader:
    following = reader(dialect)
    edges = [0, *sorted(cuts), len(raw)]
    for start, stop in pairwise(edges):
        following.feed(raw[start:stop])
    return following


def state(raw: bytes, dialect: str | None = None) -> LogState:
    return read(raw, dialect).state


def everything(following: LogReader) -> str:
    """All that a reader knows, comparable."""
    return json.dumps(put_down(following), sort_keys=True)


def firings(raw: bytes, *labels: str, bucket: Bucket | None = None) -> list[Firing]:
    """Every rule over every step."""
    replay = Replay([rules[name]() for name in STEP_RULES], frozenset(labels), bucket)
    following = reader(judge=replay.judge)
    following.feed(raw)
    following.finish()
    return replay.firings


def fired_at(found: list[Firing], rule: str) -> list[int]:
    """The steps in which a rule's runs begin and end, and those between them."""
    spans = [(f.signal.step, f.signal.last_step) for f in found if f.signal.rule == rule]
    return [step for first, last in spans for step in range(first, last + 1)]


def near(got: float | None, want: Any) -> bool:
    """Equal as far as four significant digits or four decimals can tell."""
    if got is None:
        return False
    want = float(want)
    if math.isnan(want):
        return math.isnan(got)
    return got == want or abs(got - want) <= max(6e-4 * abs(want), 6e-5)
