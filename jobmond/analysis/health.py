"""How a cluster stands after a sweep, and whether the next one may contact it."""

from dataclasses import replace
from datetime import datetime, timedelta

from jobmond.model.job import ClusterHealth
from jobmond.model.state import ClusterStatus


def may_contact(health: ClusterHealth | None, *, now: datetime, asked: bool) -> bool:
    """Whether a sweep may contact the cluster.

    One that waits for a person is left alone until asked by name; one that failed is left alone
    until its back-off has passed. `asked` overrides both.
    """
    if asked or health is None:
        return True
    if health.status == ClusterStatus.NEEDS_LOGIN:
        return False
    # A clock that was set back must not turn a back-off of an hour into one of a year.
    return health.retry_at is None or not (now < health.retry_at <= now + timedelta(days=1))


def health_after(
    before: ClusterHealth | None,
    *,
    name: str,
    kind: str,
    notes: str | None,
    status: ClusterStatus,
    error: str | None,
    remedy: str | None,
    backoff: timedelta,
    backoff_max: timedelta,
    now: datetime,
) -> ClusterHealth:
    """The cluster's record after an answer or a failure."""
    ok = status is ClusterStatus.OK
    # Who switches a cluster on again wants it asked at once, whatever was before.
    afresh = ok or status is ClusterStatus.INACTIVE
    failures = 0 if afresh or before is None else before.failures
    if status is ClusterStatus.UNREACHABLE:
        failures += 1
    same = before is not None and before.status == status
    known = before or ClusterHealth(name, kind, active=True, status=status, since=now)
    return replace(
        known,
        kind=kind,
        active=status is not ClusterStatus.INACTIVE,
        status=status.value,
        since=known.since if same else now,
        last_ok_at=now if ok else known.last_ok_at,
        error=error,
        remedy=remedy,
        notes=notes,
        failures=failures,
        retry_at=now + _wait(failures, backoff, backoff_max) if failures else None,
    )


def _wait(failures: int, backoff: timedelta, backoff_max: timedelta) -> timedelta:
    return min(backoff * float(2 ** min(failures - 1, 20)), backoff_max)


def changed(before: ClusterHealth | None, after: ClusterHealth) -> bool:
    """Whether the status is news: trouble, or its end. Switching a cluster off or on is not."""
    was = before.status if before else ClusterStatus.OK.value
    quiet = {ClusterStatus.OK.value, ClusterStatus.INACTIVE.value}
    return was != after.status and not (was in quiet and after.status in quiet)
