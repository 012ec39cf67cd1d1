"""The rows that answer an `add`, and whether there is such a job at all."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from jobmond.desk.aim import Target
from jobmond.errors import JobmondError
from jobmond.model.commit import Added

# Why the source is sure that there is no such job, given when it is said to have begun; None where
# it is not sure, or cannot be asked at once.
Missing = Callable[[Target, datetime | None], Awaitable[str | None]]


async def nobody_asked(target: Target, submitted_at: datetime | None) -> str | None:
    """Of nothing one can be sure."""
    return None


def row_of(word: str) -> dict[str, Any]:
    empty = dict.fromkeys(("ref", "guessed", "note", "error"))
    return {"word": word, **empty, "created": False, "exit_code": 0}


def row_added(added: Added) -> dict[str, Any]:
    job, note = added.job, None
    if not job.tracked:
        note = f"{job.ref} ended already as {job.state}: nothing is left to track"
    elif not added.created:
        note = f"{job.ref} was tracked already"
    return {"ref": job.ref, "created": added.created, "note": note}


def row_refused(refusal: JobmondError) -> dict[str, Any]:
    return {"error": str(refusal), "exit_code": refusal.exit_code}
