"""Firings of which it is not known yet whether they are this job's, and of its newest life.

A log that was not read to its end may go on with another start, after which nothing of what was
read counts; and the first lines that a successor finds in its predecessor's log may be the
predecessor's. Such firings wait in the reading: said too early they would be false alarms, or
worse, reasons to cancel.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jobmond.analysis.logstate import LogState
from jobmond.model.outcome import Signal
from jobmond.model.state import Severity

_FIELDS = ("severity", "title", "evidence", "action", "step", "last_step")


def withhold(state: LogState, fired: Mapping[str, Signal]) -> None:
    """Keep `fired` (by rule) for a later look at the same life."""
    whole = _joined(_withheld(state), fired)
    state.withheld = {
        rule: {name: _plain(getattr(one, name)) for name in _FIELDS} for rule, one in whole.items()
    }


def released(state: LogState, fired: Mapping[str, Signal]) -> dict[str, Signal]:
    """`fired` and what waited for a look that is sure."""
    whole = _joined(_withheld(state), fired)
    state.withheld = {}
    return whole


def _joined(first: Mapping[str, Signal], then: Mapping[str, Signal]) -> dict[str, Signal]:
    """One a rule, from its first firing to its last."""
    later = {
        rule: replace(first[rule], last_step=one.last_step) if rule in first else one
        for rule, one in then.items()
    }
    return {**first, **later}


def _withheld(state: LogState) -> dict[str, Signal]:
    return {
        rule: Signal(rule=rule, **{**kept, "severity": Severity(kept["severity"])})
        for rule, kept in state.withheld.items()
    }


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
