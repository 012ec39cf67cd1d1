"""Cells of numbers."""

from collections.abc import Mapping
from typing import Any

from jobmond.analysis.figures import figure


def metric(job: Mapping[str, Any], name: str, decimals: int) -> str | None:
    """A last value with so many decimals; None where the trainer never printed it."""
    value = (job.get("metrics") or {}).get(name)
    return None if value is None else figure(value, decimals)


def progress(done: object, total: object) -> str | None:
    """`15/80`; without a total only `15`, without both nothing."""
    if done is None:
        return None if total is None else f"—/{total}"
    return str(done) if total is None else f"{done}/{total}"
