"""Entries of registry files in the database: what they mean, and what is owed to their files."""

from dataclasses import replace

import pytest
from alembic import command

from jobmond.model.commit import JobChange
from jobmond.model.job import Choices
from jobmond.model.registered import Stage, WatchedFile
from jobmond.model.state import Kind, PostMortem, State
from jobmond.store import Store, migrate
from jobmond.store.engine import engine, writing
from jobmond.store.registries import sink_name

FILE, OTHER = "/home/alice/.claude/active_jobs.json", "/srv/active_jobs.json"


@pytest.fixture
def enter(store, make):
    """Track what an entry means."""

    def add(native_id="4711", *, path=FILE, key=None, last_status=None, submitted_at=None):
        return store.registries.add(
            path,
            key or native_id,
            "leo",
            Kind.SLURM,
            native_id,
            choices=Choices(owner="alice", owner_uid=1000),
            classified=make.classified(native_id),
            submitted_at=submitted_at,
            last_status=last_status,
            now=make.noon,
        )

    return add


def owed(store, make, path=FILE):
    return [d.body for d in store.due(sink_name(path), make.at(999), 10)]


def seen(store, make, added, state=State.RUNNING, **changes):
    """A sweep in which the job turned up so."""
    over = state not in (State.RUNNING, State.PENDING)
    job = replace(
        added.job, birth="1764400000", state=state, native=state.value, tracked=not over,
        first_seen_at=make.noon, ended_at=make.noon if over else None, **changes,
    )  # fmt: skip
    store.commit(make.sweep(JobChange(job, (make.step(state),))))


def test_an_entry_is_tracked_and_remembered(store, make, enter):
    added = enter(last_status="PENDING")
    assert (added.created, added.job.ref, added.job.tracked) == (True, "leo/4711", True)
    [kept] = store.registries.entries(FILE)
    assert (kept.key, kept.stage, kept.sole, kept.last_status) == (
        "4711", Stage.PRESENT, True, "PENDING",
    )  # fmt: skip
    assert kept.job == added.job
    assert store.registries.wanted(FILE) == {}  # no source has named it yet
    assert owed(store, make) == []


def test_a_new_word_of_the_source_is_owed_to_every_file_in_the_same_transaction(store, make, enter):
    added = enter(last_status="PENDING")
    enter(path=OTHER, last_status="RUNNING")
    seen(store, make, added)
    assert owed(store, make) == [{"path": FILE}]
    assert owed(store, make, OTHER) == []  # says so already
    assert store.registries.wanted(FILE) == {"4711": "RUNNING"}


def test_what_ended_is_to_go_and_is_remembered(store, make, enter):
    seen(store, make, enter(), State.FAILED, post_mortem=PostMortem.DONE)
    assert store.registries.wanted(FILE) == {"4711": None}
    store.registries.stood(FILE, {"4711": None}, make.at(1))
    [kept] = store.registries.entries(FILE)
    assert (kept.stage, kept.since) == (Stage.GONE, make.at(1))
    # Who brings it back gets it taken out again.
    assert store.registries.wanted(FILE) == {"4711": None}


def test_one_write_is_owed_however_often_a_file_could_not_be_written(store, make, enter):
    added = enter()
    seen(store, make, added)
    [first] = store.due(sink_name(FILE), make.at(999), 10)
    store.retry_later([first.id], "read-only file system", make.at(60))
    seen(store, make, added, State.FAILED)
    [second] = store.due(sink_name(FILE), make.at(1), 10)
    assert second.id > first.id
    store.delivered([first.id], make.noon)  # a write that was in hand meanwhile
    assert len(owed(store, make)) == 1


def test_a_file_that_says_something_else_is_owed_once(store, make, enter):
    enter()
    for minute in (1, 2):
        store.registries.owe(FILE, make.at(minute))
    assert owed(store, make) == [{"path": FILE}]


def test_a_requeued_job_keeps_its_entry(store, make, enter):
    added = enter(last_status="RUNNING")
    seen(store, make, added)
    [job] = store.jobs(recent_since=make.noon)
    ended = replace(job, state=State.NODE_FAIL, native="NODE_FAIL", tracked=False)
    again = replace(
        make.job("4711"), birth="1764500000", predecessor=job.id, state=State.PENDING,
        native="PENDING", run=job.run, life=2,
    )  # fmt: skip
    store.commit(make.sweep(JobChange(ended, (make.step(State.NODE_FAIL),)), JobChange(again)))
    [kept] = store.registries.entries(FILE)
    assert (kept.job.birth, kept.stage) == ("1764500000", Stage.PRESENT)
    assert store.registries.wanted(FILE) == {"4711": "PENDING"}
    assert owed(store, make) == [{"path": FILE}]


def test_an_entry_without_a_hint_that_turns_out_to_mean_an_ended_job_goes(store, make, enter):
    over = make.job(state=State.FAILED, native="FAILED", tracked=False, ended_at=make.noon)
    store.commit(make.sweep(over))
    added = enter()
    assert added.created  # nobody can tell yet
    job = replace(
        added.job, birth="1764400000", state=State.FAILED, native="FAILED", tracked=False,
        ended_at=make.noon,
    )  # fmt: skip
    store.commit(make.sweep(job, minute=1))
    [kept] = store.registries.entries(FILE)
    assert kept.job.birth == "1764400000"
    assert store.registries.wanted(FILE) == {"4711": None}
    assert owed(store, make) == [{"path": FILE}]


def test_who_else_asked_for_a_job(store, make, enter):
    added = enter()
    number = added.job.id
    assert store.registries.needed(number)
    store.registries.move(FILE, ["4711"], Stage.GONE, make.noon)
    assert not store.registries.needed(number)
    assert not enter(path=OTHER).created
    assert [one.sole for one in store.registries.entries(OTHER)] == [True]
    assert store.registries.needed(number)  # another file
    store.registries.move(OTHER, ["4711"], Stage.GONE, make.noon)
    assert not store.registries.needed(number)
    store.registries.hold(number)  # a person
    assert store.registries.needed(number)


def test_a_job_that_a_person_added_first_is_not_the_file_s(store, make, enter):
    known = store.add(
        "leo", Kind.SLURM, "4711", choices=Choices(owner="bob"), classified=make.classified(),
        now=make.noon,
    )  # fmt: skip
    store.registries.join(FILE, "4711", known.job.id, last_status=None, now=make.noon)
    [kept] = store.registries.entries(FILE)
    assert (kept.sole, kept.job.choices.owner) == (False, "bob")


def test_files_to_watch(store, make):
    store.registries.watch(FILE, by="alice", now=make.noon)
    store.registries.watch(FILE, by="bob", now=make.at(1))
    assert store.registries.files() == (WatchedFile(FILE, make.at(1), "bob"),)


def test_history_keeps_what_a_file_still_lists(store, make, enter):
    seen(store, make, enter(), State.COMPLETED)
    keep = make.at(1) - make.noon
    assert store.expire(make.at(100), history_keep=keep).jobs == 0
    store.registries.stood(FILE, {"4711": None}, make.at(1))
    assert store.expire(make.at(100), history_keep=keep).jobs == 1
    assert store.registries.entries(FILE) == ()


def test_the_migration_keeps_every_row_and_the_children_of_each(tmp_path, make):
    path = tmp_path / "jobmond.db"
    old = Store.open(f"sqlite:///{path}")
    old.commit(make.sweep(JobChange(make.job(), (make.step(State.RUNNING),))))
    old.close()
    made = engine(f"sqlite:///{path}", exclusive=False)
    with writing(made) as connection:
        command.downgrade(migrate._config(connection), "0001")
    made.dispose()
    new = Store.open(f"sqlite:///{path}")
    [job] = new.jobs(recent_since=make.noon)
    assert len(new.transitions(job.id)) == 1
    assert new.registries.entries(FILE) == ()
    new.close()
    assert (tmp_path / f"jobmond.db.before-{migrate.head()}").exists()
