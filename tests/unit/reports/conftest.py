"""Jobs and views to report on."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from jobmond.model.job import Choices, Job
from jobmond.model.observation import Facts
from jobmond.model.state import Bucket, Kind, State
from jobmond.reports.view import View

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)

MakeJob = Callable[..., Job]


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def view() -> View:
    """One hour east of Greenwich, any width."""
    return View(now=NOW, tz=timezone(timedelta(hours=1)))


@pytest.fixture
def make_job() -> MakeJob:
    """A running job of the cluster leonardo, changed by keyword; facts by `facts={...}`."""

    def make(
        native_id: str = "4711", *, facts: dict[str, Any] | None = None, **changes: Any
    ) -> Job:
        known: dict[str, Any] = {
            "name": "tokenise",
            "user": "alice",
            "submitted_at": NOW - timedelta(hours=3),
            "started_at": NOW - timedelta(hours=1),
            **(facts or {}),
        }
        job = Job(
            id=1,
            cluster="leonardo",
            kind=Kind.SLURM,
            native_id=native_id,
            birth="1764400000",
            run="tokenise",
            life=1,
            bucket=Bucket.OTHER,
            type="batch",
            labels=frozenset(),
            choices=Choices(),
            facts=Facts(**known),
            state=State.RUNNING,
            native="RUNNING",
            added_at=NOW - timedelta(hours=3),
            seen_at=NOW - timedelta(minutes=5),
        )
        return replace(job, **changes)

    return make
