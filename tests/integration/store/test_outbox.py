"""What is owed to sinks: in order, until it stands."""

from dataclasses import replace
from datetime import timedelta

from jobmond.model.outcome import SinkStanding


def keys(store, now, sink="news", limit=10):
    return [one.key for one in store.due(sink, now, limit)]


def fill(store, make, *names, sink="news", minute=0):
    owed = tuple(make.delivery(name, sink, minute) for name in names)
    store.commit(make.sweep(deliveries=owed))


def test_deliveries_come_in_the_order_they_were_committed(store, make):
    fill(store, make, "b", "a")
    fill(store, make, "x", sink="team")
    fill(store, make, "c")
    assert keys(store, make.noon) == ["b", "a", "c"]
    assert keys(store, make.noon, limit=2) == ["b", "a"]
    assert keys(store, make.noon, "team") == ["x"]
    assert keys(store, make.noon, "nobody") == []


def test_nothing_overtakes_a_delivery_that_waits_for_its_next_try(store, make):
    fill(store, make, "a", "b", "c")
    first = store.due("news", make.noon, 1)[0]
    store.retry_later([first.id], "503", make.at(10))
    assert keys(store, make.at(9)) == []
    assert keys(store, make.at(10)) == ["a", "b", "c"]
    again = store.due("news", make.at(10), 1)[0]
    assert (again.attempts, again.last_error) == (1, "503")
    store.retry_later([again.id], "504", make.at(20))
    assert store.due("news", make.at(20), 1)[0].attempts == 2


def test_another_sink_does_not_wait(store, make):
    fill(store, make, "a")
    fill(store, make, "a", sink="team")
    store.retry_later([store.due("news", make.noon, 1)[0].id], "down", make.at(60))
    assert keys(store, make.at(1), "team") == ["a"]


def test_what_waits_behind_a_later_try_in_the_middle(store, make):
    fill(store, make, "a", "b", "c")
    second = store.due("news", make.noon, 3)[1]
    store.retry_later([second.id], "503", make.at(10))
    assert keys(store, make.noon) == ["a"]


def test_a_delivery_given_up_holds_back_nothing(store, make):
    fill(store, make, "a", "b")
    store.give_up([store.due("news", make.noon, 1)[0].id], "410 gone", make.noon)
    assert keys(store, make.noon) == ["b"]
    assert store.undelivered("news") == 1


def test_delivered_is_delivered_for_good(store, make):
    fill(store, make, "a", "b")
    ids = [one.id for one in store.due("news", make.noon, 10)]
    store.delivered(ids[:1], make.noon)
    store.retry_later(ids, "late error of the same batch", make.at(99))
    assert store.undelivered("news") == 1
    assert store.outbox_sinks() == ("news",)
    store.delivered(ids, make.noon)
    assert store.undelivered("news") == 0
    assert store.outbox_sinks() == ()
    store.delivered([], make.noon)


def test_a_clock_set_back_does_not_hold_news_for_years(store, make):
    future = 60 * 24 * 365 * 4
    fill(store, make, "a", minute=future)
    assert keys(store, make.noon) == ["a"]
    store.retry_later([store.due("news", make.noon, 1)[0].id], "503", make.at(future))
    assert keys(store, make.noon) == ["a"]
    store.retry_later([1], "503", make.noon + timedelta(hours=23))
    assert keys(store, make.noon) == []


def test_how_far_each_sink_has_come(store, make):
    assert store.standings() == ()
    fill(store, make, "a", "b", "c", "d")
    fill(store, make, "x", sink="team")
    assert store.standings() == (
        SinkStanding("news", undelivered=4),
        SinkStanding("team", undelivered=1),
    )
    a, b, c, d = store.due("news", make.noon, 4)
    store.delivered([a.id], make.at(1))
    store.give_up([b.id], "404", make.at(2))
    assert store.standings()[0] == SinkStanding(
        "news", undelivered=2, given_up=1, given_up_at=make.at(2), last_error="404"
    )
    store.retry_later([c.id], "503", make.at(9))
    assert store.standings()[0] == SinkStanding(
        "news",
        undelivered=2,
        retry_at=make.at(9),
        given_up=1,
        given_up_at=make.at(2),
        last_error="503",
    )
    store.delivered([c.id, d.id], make.at(3))
    assert store.standings()[0] == SinkStanding(
        "news", given_up=1, given_up_at=make.at(2), last_error="404"
    )


def shed(store, make, *, before=0, keep=99):
    return store.shed(
        "news", created_before=make.at(before), keep=keep, error="late", now=make.at(5)
    )


def test_what_is_too_old_is_given_up(store, make):
    fill(store, make, "a", "b", minute=0)
    fill(store, make, "c", minute=2)
    fill(store, make, "x", sink="team")
    assert shed(store, make, before=0) == 0
    assert shed(store, make, before=1) == 2
    assert shed(store, make, before=1) == 0
    assert keys(store, make.at(2)) == ["c"]
    assert keys(store, make.noon, "team") == ["x"]
    news = store.standings()[0]
    assert (news.given_up, news.given_up_at, news.last_error) == (2, make.at(5), "late")


def test_what_is_too_much_is_given_up_oldest_first(store, make):
    fill(store, make, "a", "b", "c")
    fill(store, make, "x", sink="team")
    fill(store, make, "d")
    store.delivered([store.due("news", make.noon, 1)[0].id], make.noon)
    assert shed(store, make, before=-1, keep=3) == 0
    assert shed(store, make, before=-1, keep=1) == 2
    assert keys(store, make.noon) == ["d"]
    assert keys(store, make.noon, "team") == ["x"]
    assert shed(store, make, before=-1, keep=0) == 1


def test_where_something_was_taken_only_what_fails_is_too_old(store, make):
    store.commit(make.sweep(deliveries=about(make, "a1", "a2", "b1", "c1")))
    fail(store, make)
    taken = store.due("news", make.noon, 1, aside=3)[0]
    store.delivered([taken.id], make.at(3))
    assert taken.key == "b1"
    assert shed(store, make, before=3) == 1
    assert keys(store, make.at(60)) == ["a2", "c1"]
    assert shed(store, make, before=4) == 2


def fail(store, make, times=5, minute=0):
    """The first that is due fails so many times; its next try is an hour later."""
    for _ in range(times):
        first = store.due("news", make.at(minute), 1, aside=3)[0]
        store.retry_later([first.id], "500", make.at(minute))
    store.retry_later([first.id], "500", make.at(minute + 60))


def about(make, *names):
    """Deliveries about the job that the first letter of their name says; `-` is about none."""
    bodies = {n: {"key": n, "job": {"ref": n[0]} if n[0] != "-" else None} for n in names}
    return tuple(replace(make.delivery(n, "news"), body=bodies[n]) for n in names)


def waiting(store, make, aside, limit=99):
    return [d.key for d in store.due("news", make.noon, limit, aside=aside)]


def test_what_fails_again_and_again_holds_up_its_own_job_only(store, make):
    store.commit(make.sweep(deliveries=about(make, "a1", "a2", "b1", "-1", "a3", "c1", "b2")))
    fail(store, make, times=3)
    assert waiting(store, make, aside=3) == []  # four failures can be anybody's
    fail(store, make, times=1, minute=60)
    assert waiting(store, make, aside=0) == []
    assert waiting(store, make, aside=3) == ["b1", "-1", "c1", "b2"]
    assert waiting(store, make, aside=3, limit=2) == ["b1", "-1"]
    assert keys(store, make.at(120)) == ["a1", "a2", "b1", "-1", "a3", "c1", "b2"]


def test_with_more_of_them_it_is_the_receiver_that_fails(store, make):
    store.commit(make.sweep(deliveries=about(make, "a1", "b1", "c1", "d1", "e1")))
    for _ in range(3):
        fail(store, make)
    assert waiting(store, make, aside=3) == ["d1", "e1"]
    fail(store, make, times=1)
    assert waiting(store, make, aside=3) == []
