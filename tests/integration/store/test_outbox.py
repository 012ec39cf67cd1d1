"""What is owed to sinks: in order, until it stands."""

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
    assert shed(store, make, keep=3) == 0
    assert shed(store, make, keep=1) == 2
    assert keys(store, make.noon) == ["d"]
    assert keys(store, make.noon, "team") == ["x"]
    assert shed(store, make, keep=0) == 1
