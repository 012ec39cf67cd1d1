"""The desk over the real store: what the double takes for granted."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from jobmond.desk.budget import SweepBudget
from jobmond.desk.peer import Peer, Rights
from jobmond.desk.refusals import NotYours, UnknownJob
from jobmond.desk.requests import (
    AddRequest,
    CloseRequest,
    EventsRequest,
    HistoryRequest,
    LocalStart,
    SweepRequest,
    Wish,
)
from jobmond.errors import Refused
from jobmond.model.commit import JobChange, SweepCommit
from jobmond.model.job import Job
from jobmond.model.observation import Facts
from jobmond.model.outcome import Followup, Transition
from jobmond.model.state import Bucket, State
from jobmond.store import Store
from tests.doubles_desk import JURECA, LEONARDO, LOCAL, ME, Scene
from tests.doubles_store import NOW, health, news

BOB = Peer(1001, 1001, 8, frozenset({50}))
BOOT = "0b9c6a3e-2f2e-4c55-9e0a-5b1b3f1f6c11"


@pytest.fixture
def store(tmp_path) -> Iterator[Store]:
    made = Store.open(f"sqlite:///{tmp_path / 'jobmond.db'}")
    yield made
    made.close()


@pytest.fixture
def scene(store) -> Scene:
    return Scene(store=store, clusters=[LEONARDO, LOCAL])


def swept(store: Store, *changes: JobChange, **over) -> None:
    plain = {"cluster": "leonardo", "started_at": NOW, "at": NOW, "health": health("leonardo")}
    store.commit(SweepCommit(**{**plain, "changes": changes, **over}))


def seen(job: Job, state: State, birth: str = "100", **over) -> JobChange:
    ended_at = None if state in (State.PENDING, State.RUNNING) else NOW
    after = replace(
        job,
        birth=birth,
        state=state,
        native=state.value,
        first_seen_at=NOW,
        seen_at=NOW,
        ended_at=ended_at,
        tracked=ended_at is None,
        transitions=job.transitions + 1,
        **over,
    )
    return JobChange(after, (Transition(NOW, job.state, state, state.value),))


async def added(scene: Scene, word: str = "leonardo/4711", **over) -> Job:
    await scene.desk().add(AddRequest((word,), **over), ME)
    [job] = scene.store.find(word)
    return job


async def test_a_life_from_add_to_history(scene):
    desk = scene.desk()
    job = await added(scene, wish=Wish(name="日本 🎉", labels_add=frozenset({"no-kill"})))
    assert (job.choices.owner_uid, job.labels) == (ME.uid, {"no-kill"})
    swept(scene.store, seen(job, State.RUNNING), news=(news("k1"),))
    document = await desk.status(ME)
    [row] = document["jobs"]
    assert (row["ref"], row["state"], row["name"]) == ("leonardo/4711", "RUNNING", "日本 🎉")
    swept(scene.store, seen(scene.store.job(job.id), State.FAILED, agent_log="/a/1.md"))
    shown = await desk.show("4711", ME)
    assert [t["after"] for t in shown["transitions"]] == ["RUNNING", "FAILED"]
    assert shown["entries"] == ["/a/1.md"]
    assert [j["ref"] for j in await desk.history(HistoryRequest(), ME)] == ["leonardo/4711"]
    events = await desk.events(EventsRequest(), ME)
    assert events["last"] == "k1"
    assert await desk.events(EventsRequest(after="k1"), ME) == {"events": [], "last": "k1"}
    with pytest.raises(Refused, match="no-such-key"):
        await desk.events(EventsRequest(after="no-such-key"), ME)


async def test_adding_twice_changes_only_what_was_given(scene):
    await added(scene, wish=Wish(name="a", bucket=Bucket.RL, labels_add=frozenset({"x"})))
    [row] = await scene.desk().add(AddRequest(("leonardo/4711",), wish=Wish(name="b")), ME)
    assert row["created"] is False
    [job] = scene.store.find("leonardo/4711")
    assert (job.name, job.bucket, job.labels) == ("b", Bucket.RL, {"x"})
    assert len(scene.store.jobs(recent_since=NOW)) == 1


async def test_what_ended_is_not_tracked_again_and_says_so(scene):
    job = await added(scene)
    facts = Facts(submitted_at=NOW - timedelta(hours=1))
    swept(scene.store, seen(job, State.COMPLETED, facts=facts))
    request = AddRequest(("leonardo/4711",), submitted_at=NOW - timedelta(hours=2))
    [row] = await scene.desk().add(request, ME)
    assert row["created"] is False
    assert "ended already as COMPLETED" in row["note"]


async def test_an_id_used_again_is_a_new_incarnation(scene):
    job = await added(scene)
    swept(scene.store, seen(job, State.COMPLETED))
    again = await added(scene)
    assert again.id != job.id
    desk = scene.desk()
    assert [j["ref"] for j in await desk.history(HistoryRequest(), ME)] == ["leonardo/4711@100"]
    assert (await desk.show("leonardo/4711@100", ME))["state"] == "COMPLETED"
    assert (await desk.show("leonardo/4711", ME))["state"] == "PENDING"


async def test_rm_and_add_again(scene):
    job = await added(scene)
    swept(scene.store, seen(job, State.RUNNING))
    desk = scene.desk()
    await desk.remove("leonardo/4711", ME)
    assert (await desk.status(ME))["summary"]["tracked"] == 0
    members = replace_rights(scene)
    with pytest.raises(NotYours):
        await members.desk().add(AddRequest(("leonardo/4711",)), BOB)
    assert (await added(scene)).id == job.id


def replace_rights(scene: Scene) -> Scene:
    rights = Rights(daemon_uid=ME.uid, socket_gid=50)
    return Scene(store=scene.store, clusters=scene.clusters, rights=rights)


async def test_label_moves_between_buckets_and_runs(scene):
    await added(scene)
    wish = Wish(bucket=Bucket.SFT, run="grid", labels_add=frozenset({"smoke"}))
    shown = await scene.desk().change("4711", wish, ME)
    assert (shown["bucket"], shown["run"], shown["labels"]) == ("sft", "grid", ["smoke"])
    wish = Wish(labels_remove=frozenset({"smoke"}))
    assert (await scene.desk().change("4711", wish, ME))["labels"] == []


async def test_two_live_jobs_of_one_run_are_never_picked_from(scene):
    await added(scene, "leonardo/1", wish=Wish(name="train"))
    await added(scene, "leonardo/2", wish=Wish(name="train"))
    with pytest.raises(UnknownJob, match="leonardo/1, leonardo/2"):
        await scene.desk().remove("train", ME)
    await scene.desk().remove("leonardo/1", ME)
    assert await scene.desk().remove("train", ME) == {"ref": "leonardo/2"}


async def test_one_number_on_two_clusters(scene):
    scene.clusters.append(JURECA)
    await added(scene, "leonardo/1")
    await added(scene, "jureca/1")
    with pytest.raises(UnknownJob, match="jureca/1, leonardo/1"):
        await scene.desk().show("1", ME)


async def test_a_number_of_a_job_and_of_a_process_do_not_meet(scene):
    await added(scene, "local/4711")
    await added(scene, "local/pid-4711")
    assert (await scene.desk().show("4711", ME))["kind"] == "slurm"
    assert (await scene.desk().show("pid-4711", ME))["kind"] == "local"


async def test_announcing_twice_is_once(scene):
    start = LocalStart(7, 99, BOOT, "sh -c x", "/w", NOW, Wish(name="sh"))
    desk = scene.desk()
    assert (await desk.announce(start, ME))["created"] is True
    assert (await desk.announce(start, ME))["created"] is False
    [job] = scene.store.find("local/pid-7")
    assert (job.birth, job.facts.command) == (f"{BOOT}:99", "sh -c x")
    with pytest.raises(Refused, match="earlier job under this id"):
        await desk.announce(replace(start, start_ticks=100), ME)


async def test_the_last_answer_has_the_age_of_the_last_commit(scene):
    await added(scene)
    swept(scene.store)
    scene.clock.move(90)
    desk = scene.desk(budget=SweepBudget(burst=0))
    [row] = await desk.sweep(SweepRequest("leonardo", True), ME)
    assert (row["status"], row["jobs"], row["age_s"]) == ("ok", 1, 90)


async def test_what_is_owed_is_closed_once(scene):
    job = await added(scene)
    owed = Followup(0, "kill-verdict", job.ref, "kill it?", NOW)
    swept(scene.store, seen(job, State.RUNNING), opened=(owed,))
    desk = scene.desk()
    [row] = await desk.followups(ME, every=False)
    await desk.close_followup(row["id"], CloseRequest("no-kill", "fine"), ME)
    assert await desk.followups(ME, every=False) == []
    [row] = await desk.followups(ME, every=True)
    assert (row["state"], row["verdict"], row["note"]) == ("closed", "no-kill", "fine")


async def test_every_change_leaves_a_line_in_the_audit_trail(scene):
    desk = scene.desk()
    await added(scene)
    await desk.change("4711", Wish(run="r", labels_remove=frozenset({"x"})), ME)
    await desk.remove("4711", ME)
    trail = scene.store.audit_trail()
    assert [(line.uid, line.action, line.subject) for line in trail] == [
        (ME.uid, "add", "leonardo/4711"),
        (ME.uid, "label", "leonardo/4711"),
        (ME.uid, "rm", "leonardo/4711"),
    ]
    assert trail[1].detail == {"run": "r", "labels_remove": ["x"]}
