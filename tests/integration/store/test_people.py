"""What people ask, against a real database."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jobmond.errors import Refused
from jobmond.model.commit import JobChange
from jobmond.model.job import Choices
from jobmond.model.observation import Facts
from jobmond.model.state import Bucket, Kind, PostMortem, State


def add(store, make, native_id="4711", *, choices=Choices(owner="alice"), **more):  # noqa: B008
    place = more.pop("classified", None) or make.classified()
    return store.add(
        more.pop("cluster", "leo"),
        more.pop("kind", Kind.SLURM),
        native_id,
        choices=choices,
        classified=place,
        now=more.pop("now", make.noon),
        **more,
    )


def ended(make, native_id="4711", *, life=1, state=State.FAILED, **changes):
    held = {"tracked": False, "ended_at": make.at(5), "state": state, "native": state.value}
    return make.job(native_id, life=life, **(held | changes))


def refs(jobs):
    return [job.ref for job in jobs]


# add


def test_a_new_job_is_pending_until_it_is_seen(store, make):
    added = add(store, make, submitted_at=make.at(-1))
    assert added.created
    job = added.job
    assert (job.state, job.native, job.first_seen_at, job.birth) == (State.PENDING, "", None, None)
    assert (job.tracked, job.life, job.run) == (True, 1, "train")
    assert job.facts.submitted_at == make.at(-1)
    assert store.snapshot("leo", correct_since=make.noon).jobs == (job,)


def test_a_submit_time_of_another_job_is_not_put_on_the_tracked_one(store, make):
    job = make.job(facts=Facts(submitted_at=make.at(0)))
    store.commit(make.sweep(job))
    with pytest.raises(Refused, match="more than a day off"):
        add(store, make, submitted_at=make.at(0) - timedelta(days=3))
    assert not add(store, make, submitted_at=make.at(0) - timedelta(hours=20)).created


def test_adding_twice_changes_only_what_was_given(store, make):
    first = add(
        store,
        make,
        choices=Choices(
            name="mine", description="d", owner="alice", owner_uid=7, labels_added=frozenset({"a"})
        ),
        classified=make.classified("cell", labels=frozenset({"a"})),
    ).job
    second = add(
        store,
        make,
        choices=Choices(
            description="new",
            bucket=Bucket.EVAL,
            owner="bob",
            owner_uid=8,
            labels_added=frozenset({"b"}),
            labels_removed=frozenset({"a"}),
        ),
        classified=make.classified("else", bucket=Bucket.EVAL, type="eval"),
    )
    assert not second.created
    job = second.job
    assert job.id == first.id
    assert (job.name, job.choices.description) == ("mine", "new")
    assert (job.choices.owner, job.choices.owner_uid) == ("alice", 7)
    assert (job.bucket, job.type, job.run, job.labels) == (Bucket.EVAL, "eval", "cell", {"b"})
    assert (job.choices.labels_added, job.choices.labels_removed) == ({"b"}, {"a"})
    assert add(store, make, choices=Choices()).job == job


def test_one_number_on_two_clusters_and_kinds_is_several_jobs(store, make):
    added = [
        add(store, make),
        add(store, make, cluster="jup"),
        add(store, make, kind=Kind.LOCAL),
    ]
    assert [one.created for one in added] == [True, True, True]
    assert len(store.jobs(recent_since=make.noon)) == 3


def test_an_ended_incarnation_is_not_tracked_again(store, make):
    store.commit(make.sweep(ended(make)))
    again = add(store, make, birth="1764400000", choices=Choices(description="late"))
    assert (again.created, again.job.tracked) == (False, False)
    assert again.job.choices.description == "late"
    assert len(store.jobs(recent_since=make.noon)) == 1


def test_a_submit_time_within_a_day_means_the_ended_incarnation(store, make):
    store.commit(make.sweep(ended(make, facts=Facts(submitted_at=make.noon))))
    near = add(store, make, submitted_at=make.noon + timedelta(hours=23))
    assert not near.created
    far = add(store, make, submitted_at=make.noon + timedelta(hours=25))
    assert far.created
    assert far.job.id != near.job.id


def test_an_id_given_without_birth_after_its_end_is_a_new_question(store, make):
    store.commit(make.sweep(ended(make)))
    again = add(store, make)
    assert (again.created, again.job.tracked, again.job.life) == (True, True, 2)


def test_a_job_somebody_dropped_alive_is_tracked_again(store, make):
    store.commit(make.sweep(make.job()))
    (job,) = store.jobs(recent_since=make.noon)
    store.untrack(job.id, by="alice", now=make.at(1))
    again = add(store, make)
    assert (again.created, again.job.id, again.job.tracked) == (True, job.id, True)
    store.commit(make.sweep(again.job))
    assert store.job(job.id).tracked


def test_an_id_tracked_with_another_birth_is_refused(store, make):
    add(store, make, birth="old", kind=Kind.LOCAL)
    with pytest.raises(Refused, match="sweep leo first"):
        add(store, make, birth="new", kind=Kind.LOCAL)


def test_a_birth_that_is_stored_means_that_row_whatever_waits_under_the_id(store, make):
    store.commit(make.sweep(ended(make)))
    (old,) = store.history()
    waiting = add(store, make).job
    named = add(store, make, birth="1764400000", choices=Choices(description="late"))
    assert (named.created, named.job.id, named.job.tracked) == (False, old.id, False)
    assert store.job(waiting.id) == waiting


def test_a_birth_and_facts_given_later_are_taken(store, make):
    add(store, make)
    job = add(store, make, birth="b", facts=Facts(name="n")).job
    assert (job.birth, job.facts, job.name) == ("b", Facts(name="n"), "n")


# find


def test_find_reads_refs_births_ids_and_names(store, make):
    store.commit(
        make.sweep(
            ended(make, birth="1"),
            make.job(birth="2", life=2),
            make.job("ns/pod-1", kind=Kind.KUBERNETES, run="k", facts=Facts(name="pod")),
        )
    )
    assert [job.birth for job in store.find("leo/4711")] == ["2"]
    assert [job.birth for job in store.find("4711")] == ["2"]
    assert [job.birth for job in store.find("leo/4711@1")] == ["1"]
    assert [job.birth for job in store.find("4711@1")] == ["1"]
    assert refs(store.find("leo/ns/pod-1")) == ["leo/ns/pod-1"]
    assert refs(store.find("ns/pod-1")) == ["leo/ns/pod-1"]
    assert refs(store.find("pod")) == ["leo/ns/pod-1"]
    assert [job.birth for job in store.find("train")] == ["2"]


@pytest.mark.parametrize(
    "word", ["", "/", "@", "leo/", "/4711", "4711@", "leo/4711@9", "jup/4711", "%", "4711\x00"]
)
def test_find_knows_nothing_of(store, make, word):
    store.commit(make.sweep(make.job()))
    assert store.find(word) == ()


def test_a_bare_id_on_two_clusters_is_ambiguous_while_both_are_tracked(store, make):
    store.commit(make.sweep(make.job()))
    store.commit(replace(make.sweep(make.job(cluster="jup")), cluster="jup"))
    assert refs(store.find("4711")) == ["leo/4711", "jup/4711"]
    (other,) = store.find("jup/4711")
    store.untrack(other.id, by="alice", now=make.noon)
    assert refs(store.find("4711")) == ["leo/4711"]


def test_a_name_means_the_latest_life_of_its_run(store, make):
    store.commit(make.sweep(ended(make, "1"), ended(make, "2", life=2)))
    assert refs(store.find("train")) == ["leo/2"]
    store.commit(make.sweep(make.job("9", run="other")))
    assert refs(store.find("train")) == ["leo/9"]
    store.commit(make.sweep(make.job("10", run="third")))
    assert refs(store.find("train")) == ["leo/9", "leo/10"]


def test_a_tracked_incarnation_owns_its_ref_though_an_ended_one_was_stored_later(store, make):
    store.commit(make.sweep(make.job(birth="2", life=2)))
    store.commit(make.sweep(ended(make, birth="1")))
    (owner,) = store.find("leo/4711")
    assert owner.birth == "2"
    (older,) = store.history()
    assert store.superseded([owner, older]) == {older.id}


# choose, untrack, lists


def test_a_job_that_changes_its_run_becomes_its_next_life(store, make):
    store.commit(make.sweep(make.job("1"), make.job("2", run="b")))
    (second,) = store.find("leo/2")
    job = store.choose(second.id, Choices(run="train", name="n"), make.classified("train"))
    assert (job.run, job.life, job.name) == ("train", 2, "n")
    assert store.find("n") == (job,)
    same = store.choose(job.id, Choices(run="train"), make.classified("train"))
    assert same.life == 2


def test_what_does_not_exist_is_refused_in_one_line(store, make):
    for ask in (
        lambda: store.choose(9, Choices(), make.classified()),
        lambda: store.untrack(9, by="a", now=make.noon),
        lambda: store.close_followup(9, by="a", verdict=None, note=None, now=make.noon),
        lambda: store.events(after_key="gone"),
    ):
        with pytest.raises(Refused) as refused:
            ask()
        assert "\n" not in str(refused.value)
    assert store.job(9) is None


def test_jobs_lists_what_is_tracked_or_ended_lately(store, make):
    store.commit(
        make.sweep(
            make.job("1"),
            ended(make, "2", life=2),
            ended(make, "3", life=3, ended_at=make.at(-9)),
            make.job("4", life=4),
        )
    )
    (dropped,) = store.find("leo/4")
    store.untrack(dropped.id, by="alice", now=make.noon)
    assert refs(store.jobs(recent_since=make.noon)) == ["leo/1", "leo/2"]


def test_what_a_person_dropped_keeps_no_cluster_watched(store, make):
    pending = {"post_mortem": PostMortem.PENDING}
    store.commit(
        make.sweep(make.job("1"), make.job("2", life=2), ended(make, "3", life=3, **pending))
    )
    loaded = store.snapshot("leo", correct_since=make.noon).jobs
    assert store.watched_clusters() == {"leo"}
    for job in loaded:
        store.untrack(job.id, by="alice", now=make.noon)
    assert store.watched_clusters() == frozenset()
    failed = replace(loaded[0], tracked=False, state=State.FAILED, ended_at=make.noon, **pending)
    store.commit(make.sweep(failed))
    assert store.job(loaded[0].id).post_mortem is PostMortem.GIVEN_UP
    assert store.watched_clusters() == frozenset()


def test_history_tells_what_ended(store, make):
    store.commit(
        make.sweep(
            make.job("1", run="a"),
            ended(make, "2", run="b", ended_at=make.at(3)),
            ended(make, "3", run="b", life=2, ended_at=make.at(1)),
            ended(make, "4", run="c", ended_at=make.at(2)),
        )
    )
    assert refs(store.history()) == ["leo/3", "leo/4", "leo/2"]
    assert refs(store.history(limit=2)) == ["leo/4", "leo/2"]
    assert refs(store.history(since=make.at(2))) == ["leo/4", "leo/2"]
    (job,) = store.find("leo/2")
    assert refs(store.history(job_id=job.id)) == ["leo/3", "leo/2"]


def test_the_audit_trail_is_kept_in_order(store, make):
    store.audit(at=make.noon, uid=2**32 - 2, action="rm", subject="leo/1", detail={"a": 1})
    store.audit(at=make.at(1), uid=None, action="expire")
    first, second = store.audit_trail()
    assert (first.uid, first.subject, first.detail) == (2**32 - 2, "leo/1", {"a": 1})
    assert (second.at, second.uid, second.subject, second.detail) == (make.at(1), None, None, {})
    assert store.audit_trail(limit=1) == (second,)


def test_followups_are_closed_once_by_a_person(store, make):
    from jobmond.model.outcome import Followup

    store.commit(make.sweep(opened=(Followup(0, "deep-probe", "leo/1", "t", make.noon),)))
    closed = store.close_followup(1, by="alice", verdict="kill", note="n", now=make.at(1))
    assert (closed.state, closed.closed_by, closed.verdict) == ("closed", "alice", "kill")
    assert store.followups() == ()
    assert store.followups(all=True) == (closed,)
    with pytest.raises(Refused, match="closed by alice"):
        store.close_followup(1, by="bob", verdict=None, note=None, now=make.at(2))


def test_sweep_times(store, make):
    assert store.sweep_times() == {}
    store.set_sweep_times(make.noon, None)
    assert store.sweep_times() == {"last_sweep_at": make.noon}
    store.set_sweep_times(make.noon, make.at(15))
    assert store.sweep_times() == {"last_sweep_at": make.noon, "next_sweep_at": make.at(15)}


def test_events_page_by_key_and_time(store, make):
    keys = [str(n) for n in range(5)]
    store.commit(make.sweep(news=tuple(make.news(k, minute=int(k)) for k in keys)))

    def got(**ask):
        return "".join(n.key for n in store.events(**ask))

    assert got() == "01234"
    assert got(limit=2) == "34"
    assert got(after_key="1", limit=2) == "23"
    assert got(after_key="4") == ""
    assert got(since=make.at(3)) == "34"
    assert got(after_key="3", since=make.noon) == "4"
    store.publish((make.news("5"), make.news("1")), (make.delivery("5"),))
    assert got() == "012345"
    assert store.undelivered("news") == 1


def test_transitions_of_nothing(store):
    assert store.transitions(1) == ()


def test_a_change_and_its_transitions_belong_to_one_job(store, make):
    store.commit(
        make.sweep(
            JobChange(make.job("1"), (make.step(State.RUNNING),)),
            JobChange(make.job("2", life=2), (make.step(State.PENDING),)),
        )
    )
    first, second = store.jobs(recent_since=make.noon)
    assert store.transitions(first.id) == (make.step(State.RUNNING),)
    assert store.transitions(second.id) == (make.step(State.PENDING),)


# a launcher's job, before and after its experiment is known


def test_a_launchers_job_is_found_under_the_name_of_its_file_after_it_has_another(store, make):
    choices = Choices(owner="alice", log_path="/home/alice/out/ptq.log")
    added = add(store, make, "file:ptq.log", kind=Kind.LAUNCHER, choices=choices).job
    renamed = replace(
        added, native_id="cicd_7", birth="cicd_7", state=State.RUNNING, first_seen_at=make.at(1)
    )
    store.commit(make.sweep(JobChange(renamed)))
    for word in ("leo/cicd_7", "cicd_7", "leo/file:ptq.log", "file:ptq.log"):
        assert [(job.id, job.ref) for job in store.find(word)] == [(added.id, "leo/cicd_7")]
    assert store.find("file:other.log") == ()
    assert store.find("juwels/file:ptq.log") == ()


def test_two_names_of_one_experiment_become_one_job(store, make):
    choices = Choices(log_path="/home/alice/ptq.log")
    by_file = add(store, make, "file:ptq.log", kind=Kind.LAUNCHER, choices=choices).job
    by_id = add(store, make, "cicd_7", kind=Kind.LAUNCHER, birth="cicd_7").job
    seen = replace(by_file, native_id="cicd_7", birth="cicd_7", state=State.RUNNING)
    store.commit(make.sweep(JobChange(seen)))
    (kept,) = [job for job in store.jobs(recent_since=make.noon) if job.tracked]
    assert kept.id == by_id.id
    assert kept.choices.log_path == "/home/alice/ptq.log"
