"""Back-off, needs-login and what is said about a cluster."""

from datetime import timedelta

from jobmond.analysis.health import changed, health_after, may_contact
from jobmond.model.state import ClusterStatus
from tests.unit.builders import NOW, at

MINUTE = timedelta(minutes=1)


def after(before, status, now=NOW, error="refused"):
    ok = status is ClusterStatus.OK
    return health_after(
        before,
        name="lab",
        kind="slurm",
        notes=None,
        status=status,
        error=None if ok else error,
        remedy=None,
        backoff=MINUTE,
        backoff_max=timedelta(minutes=60),
        now=now,
    )


def test_the_pause_doubles_up_to_its_limit_and_ends_with_an_answer():
    health = None
    waits = []
    for _ in range(8):
        health = after(health, ClusterStatus.UNREACHABLE)
        waits.append((health.retry_at - NOW) / MINUTE)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    health = after(health, ClusterStatus.OK)
    assert (health.failures, health.retry_at) == (0, None)


def test_since_is_when_the_status_began():
    first = after(None, ClusterStatus.UNREACHABLE)
    later = after(first, ClusterStatus.UNREACHABLE, now=at(5))
    assert (later.since, later.last_ok_at) == (NOW, None)
    ok = after(later, ClusterStatus.OK, now=at(6))
    assert (ok.since, ok.last_ok_at) == (at(6), at(6))


def test_a_cluster_backed_off_is_left_alone_until_then_or_until_asked():
    health = after(None, ClusterStatus.UNREACHABLE)
    assert not may_contact(health, now=NOW, asked=False)
    assert may_contact(health, now=NOW, asked=True)
    assert may_contact(health, now=at(1), asked=False)


def test_one_that_needs_a_person_is_never_tried_unasked():
    health = after(None, ClusterStatus.NEEDS_LOGIN)
    assert not may_contact(health, now=at(10**6), asked=False)
    assert may_contact(health, now=NOW, asked=True)


def test_a_clock_set_back_does_not_lengthen_the_pause_to_years():
    health = after(None, ClusterStatus.UNREACHABLE)
    assert may_contact(health, now=NOW - timedelta(days=400), asked=False)


def test_trouble_is_news_once_and_so_is_its_end():
    ok = after(None, ClusterStatus.OK)
    bad = after(ok, ClusterStatus.UNREACHABLE)
    worse = after(bad, ClusterStatus.UNREACHABLE)
    again = after(worse, ClusterStatus.OK)
    assert [changed(None, ok), changed(ok, bad), changed(bad, worse), changed(worse, again)] == [
        False,
        True,
        False,
        True,
    ]


def test_switching_a_cluster_off_is_no_news_but_trouble_at_first_contact_is():
    ok = after(None, ClusterStatus.OK)
    assert not changed(ok, after(ok, ClusterStatus.INACTIVE))
    assert changed(None, after(None, ClusterStatus.NEEDS_LOGIN))


def test_a_cluster_that_was_switched_off_is_asked_at_once_when_it_is_on_again():
    failed = after(None, ClusterStatus.UNREACHABLE)
    off = after(failed, ClusterStatus.INACTIVE)
    assert (off.failures, off.retry_at) == (0, None)
    assert may_contact(off, now=NOW, asked=False)
