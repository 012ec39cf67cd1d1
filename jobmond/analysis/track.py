"""The numbers of a run over its steps, in bounded memory."""

import json
import zlib
from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobmond.model.metrics import Column, RunSeries

CURRENT = 4096  # records of the newest life that are kept as they came
POINTS = 2000  # a metric's older points beyond twice this are thinned
AT_HAND = 64  # records at least that stay at hand where older ones are put away
LOOK_BACK = 128  # older points of each metric that stay at hand: more than rules look back
_FAST = 1  # deflate's level


@dataclass(slots=True)
class Entry:
    """One record: its step (None where the text does not prove it) and what is kept of it."""

    step: int | None
    values: dict[str, float]
    trained: bool = True  # says that its step was made
    judged: bool = False


@dataclass(slots=True)
class Track:
    """Series by metric and step; what a later life logged wins.

    `settled` holds what can no longer change, by metric and step; `current` the last records of
    the newest life. With `thin` off nothing is ever dropped.

    What a rule at step `since` or later cannot reach may be put away: `away` then holds all that
    is settled, packed, and `settled` only what is still at hand of it. `begun` is the first step
    that the newest life made, of those that are settled.
    """

    settled: dict[str, dict[int, float]] = field(default_factory=dict)
    current: list[Entry] = field(default_factory=list)
    protected: set[int] = field(default_factory=set)
    thin: bool = True
    away: bytes = b""
    since: int | None = None
    begun: int | None = None

    def put(
        self,
        step: int | None,
        values: Mapping[str, float],
        *,
        trained: bool = True,
        merge: bool = True,
    ) -> None:
        """Keep a record; with `merge`, one of the same step as the last goes into that."""
        if self.since is not None and step is not None and step < self.since:
            self._fetch()
        last = self.current[-1] if self.current else None
        if merge and last is not None and step is not None and last.step == step:
            last.values.update(values)
            last.trained |= trained
            last.judged = False
            return
        self.current.append(Entry(step, dict(values), trained))

    def settle(self, count: int) -> None:
        """Take the oldest `count` records out of what can still change."""
        self._fetch()
        for entry in self.current[:count]:
            if entry.step is not None:
                if entry.trained:
                    self.begun = min(entry.step, entry.step if self.begun is None else self.begun)
                for name, value in entry.values.items():
                    self.settled.setdefault(name, {})[entry.step] = value
        del self.current[:count]
        if self.thin:
            for name, points in self.settled.items():
                if len(points) > 2 * POINTS:
                    self.settled[name] = thinned(points, POINTS, self.protected)

    def put_away(self) -> None:
        """Pack what is settled, but for what rules still reach from the records at hand."""
        first = min((e.step for e in self.current if e.step is not None), default=None)
        if self.away or first is None or len(self.settled) == 0:
            return
        self.away = zlib.compress(json.dumps(self._points(), separators=(",", ":")).encode(), _FAST)
        self.since = first
        self.settled = {name: _near(points, first) for name, points in self.settled.items()}

    def _fetch(self) -> None:
        if self.away:
            self.settled = _read_points(json.loads(zlib.decompress(self.away)))
        self.away, self.since = b"", None

    @property
    def first_made(self) -> int | None:
        """The first step that the newest life made."""
        made = [e.step for e in self.current if e.trained and e.step is not None]
        return min([*made, *([] if self.begun is None else [self.begun])], default=None)

    def columns(self, names: Collection[str] | None = None) -> dict[str, Column]:
        """Every metric (or `names`) as a column, ascending by step; of what was put away only what
        is at hand.
        """
        merged = {
            name: dict(points)
            for name, points in self.settled.items()
            if names is None or name in names
        }
        for entry in self.current:
            if entry.step is not None:
                for name, value in entry.values.items():
                    if names is None or name in names:
                        merged.setdefault(name, {})[entry.step] = value
        return {name: _column(points) for name, points in sorted(merged.items())}

    def for_rules(self, life: int, coarse: Collection[str]) -> RunSeries:
        """What rules see; the records they have not seen count as seen from now on."""
        made = [e for e in self.current if e.step is not None and e.trained]
        fresh = {e.step for e in made if e.step is not None and not e.judged}
        for entry in made:
            entry.judged = True
        return RunSeries(
            columns=self.columns(),
            judged=sorted(fresh),
            life=life,
            first_step=self.first_made,
            coarse=frozenset(coarse),
        )

    def plain(self) -> dict[str, Any]:
        """As JSON values, but for what is put away."""
        return {
            "settled": self._points(),
            "current": [[e.step, e.values, e.trained, e.judged] for e in self.current],
            "protected": sorted(self.protected),
            "thin": self.thin,
            "since": self.since,
            "begun": self.begun,
        }

    def _points(self) -> dict[str, list[tuple[int, float]]]:
        return {name: sorted(points.items()) for name, points in self.settled.items()}

    @classmethod
    def read(cls, plain: Mapping[str, Any], away: bytes = b"") -> "Track":
        """The inverse of `plain`, with what was put away."""
        return cls(
            settled=_read_points(plain["settled"]),
            current=[Entry(s, dict(v), t, j) for s, v, t, j in plain["current"]],
            protected=set(plain["protected"]),
            thin=plain["thin"],
            away=away,
            since=plain["since"],
            begun=plain["begun"],
        )


def _read_points(plain: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    return {name: {int(step): value for step, value in points} for name, points in plain.items()}


def _near(points: Mapping[int, float], first: int) -> dict[int, float]:
    """The last ones before step `first`, and all from there on."""
    steps = sorted(points)
    return {step: points[step] for step in steps[max(0, bisect_left(steps, first) - LOOK_BACK) :]}


def thinned(
    points: Mapping[int, float], most: int, protected: Collection[int] = ()
) -> dict[int, float]:
    """At most `most` points, evenly over the steps, with the last one and the `protected`.

    Thinning what was thinned before gives the same as thinning once.
    """
    if len(points) <= most:
        return dict(points)
    steps = sorted(points)
    must = {step for step in steps if step in protected} | {steps[-1]}
    room, stride = most - len(must), 2
    while steps[-1] // stride - steps[0] // stride >= room and stride < 1 << 60:
        stride *= 2
    first: dict[int, int] = {}
    for step in steps:
        first.setdefault(step // stride, step)
    kept = must.union(first.values()) if room > 0 else must
    return {step: points[step] for step in sorted(kept)}


def _column(points: Mapping[int, float]) -> Column:
    steps = sorted(points)
    return Column(tuple(steps), tuple(points[step] for step in steps))
