"""What is old goes; what is owed stays."""

from dataclasses import replace
from datetime import timedelta

from sqlalchemy import func, select

from jobmond.model.commit import JobChange
from jobmond.model.outcome import Followup, Signal
from jobmond.model.state import PostMortem, Severity, State
from jobmond.model.training import Bookmark, Place
from jobmond.store import schema

DAY = timedelta(days=1)


def count(store, table):
    with store._engine.begin() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar()


def gone(make, native_id, **changes):
    held = {"state": State.FAILED, "tracked": False, "ended_at": make.noon}
    return make.job(native_id, run=f"r{native_id}", **(held | changes))


def test_old_history_goes_with_all_that_hangs_on_it(store, make):
    signal = Signal("stall", Severity.WATCH, "t", {})
    store.commit(
        make.sweep(JobChange(gone(make, "1", signals=(signal,)), (make.step(State.FAILED),)))
    )
    (old,) = store.history()
    store.commit(make.sweep(make.job("2", predecessor=old.id, run="r2")))
    assert store.expire(make.noon + DAY, history_keep=DAY).jobs == 0
    assert store.expire(make.noon + 2 * DAY, history_keep=DAY).jobs == 1
    (left,) = store.jobs(recent_since=make.at(-99))
    assert (left.native_id, left.predecessor) == ("2", None)
    for table, rows in ((schema.transitions, 0), (schema.signals, 0), (schema.runs, 1)):
        assert count(store, table) == rows, table.name


def test_history_that_is_tracked_looked_into_or_owed_for_stays(store, make):
    owed = (
        Followup(0, "cleanup", "leo/3", "t", make.noon),
        Followup(0, "cleanup", "leo/4@1764400000", "t", make.noon),
    )
    store.commit(
        make.sweep(
            make.job("1", run="r1"),
            gone(make, "2", post_mortem=PostMortem.PENDING),
            gone(make, "3"),
            gone(make, "4"),
            gone(make, "5"),
            opened=owed,
        )
    )
    assert store.expire(make.noon + 99 * DAY, history_keep=DAY).jobs == 1
    assert [job.native_id for job in store.jobs(recent_since=make.noon)] == ["1", "2", "3", "4"]


def test_a_job_dropped_alive_goes_when_it_was_dropped_long_ago(store, make):
    store.commit(make.sweep(make.job("1")))
    store.untrack(1, by="alice", now=make.noon + 5 * DAY)
    assert store.expire(make.noon + 6 * DAY, history_keep=DAY).jobs == 0
    assert store.expire(make.noon + 7 * DAY, history_keep=DAY).jobs == 1


def test_history_is_kept_for_good_where_nobody_says_otherwise(store, make):
    store.commit(make.sweep(gone(make, "1"), news=(make.news("a"),)))
    store.audit(at=make.noon, uid=0, action="x")
    expired = store.expire(make.noon + 9999 * DAY)
    assert (expired.jobs, expired.events, expired.audit) == (0, 0, 0)
    assert len(store.history()) == 1


def test_only_settled_deliveries_go(store, make):
    owed = tuple(make.delivery(key) for key in "abc")
    store.commit(make.sweep(deliveries=owed))
    store.delivered([1], make.noon)
    store.give_up([2], "no", make.noon)
    late = make.noon + 99 * DAY
    assert store.expire(late, outbox_keep=DAY).deliveries == 2
    assert [one.key for one in store.due("news", late, 9)] == ["c"]
    assert store.expire(late, outbox_keep=DAY).deliveries == 0


def test_old_events_calls_and_audit_lines_go(store, make):
    store.commit(make.sweep(news=(make.news("a"), make.news("b", 60)), calls={"squeue": 1}))
    store.audit(at=make.noon, uid=0, action="x")
    store.audit(at=make.at(60), uid=0, action="y")
    expired = store.expire(make.noon + DAY + timedelta(minutes=1), events_keep=DAY, audit_keep=DAY)
    assert (expired.events, expired.calls, expired.audit) == (1, 1, 1)
    assert [news.key for news in store.events()] == ["b"]
    assert [line.action for line in store.audit_trail()] == ["y"]


def read_log(job):
    return JobChange(job, bookmark=Bookmark(Place("/x.out", {"offset": 7}, (b"loss",)), b"packed"))


def test_readings_of_logs_whose_job_ended_long_ago_go(store, make):
    pending = {"post_mortem": PostMortem.PENDING}
    store.commit(
        make.sweep(
            read_log(make.job("1", run="r1")),
            read_log(gone(make, "2")),
            read_log(gone(make, "3", **pending)),
        )
    )
    ids = {job.native_id: job.id for job in store.jobs(recent_since=make.noon)}
    assert store.expire(make.noon + 9 * DAY).readings == 0
    assert store.expire(make.noon + DAY, readings_keep=DAY).readings == 0
    assert store.expire(make.noon + DAY * 1.1, readings_keep=DAY).readings == 1
    assert sorted(store.readings(list(ids.values()))) == sorted([ids["1"], ids["3"]])
    assert len(ids) == 3  # the job itself stays in the history


def test_a_reading_that_a_waiting_job_goes_on_from_stays(store, make):
    store.commit(make.sweep(read_log(gone(make, "1"))))
    (old,) = store.history()
    waiting = make.job("2", run="r1", life=2, predecessor=old.id, state=State.PENDING)
    store.commit(make.sweep(waiting))
    late = make.noon + 99 * DAY
    assert store.expire(late, readings_keep=DAY).readings == 0
    (later,) = store.find("2")
    store.commit(make.sweep(read_log(replace(later, state=State.RUNNING))))
    assert store.expire(late, readings_keep=DAY).readings == 1
    assert sorted(store.readings([old.id, later.id])) == [later.id]


def test_one_call_removes_a_bounded_number(lite, make):
    lite.commit(make.sweep(news=tuple(make.news(str(n)) for n in range(2500))))
    late = make.noon + 2 * DAY
    assert lite.expire(late, events_keep=DAY, batches=2).events == 2000
    assert lite.expire(late, events_keep=DAY, batches=2).events == 500
    assert lite.expire(late, events_keep=DAY, batches=2).events == 0


def test_ids_are_never_given_twice(store, make):
    store.commit(make.sweep(gone(make, "1")))
    (old,) = store.history()
    store.expire(make.noon + 9 * DAY, history_keep=DAY)
    store.commit(make.sweep(replace(gone(make, "2"))))
    (new,) = store.history()
    assert new.id > old.id
