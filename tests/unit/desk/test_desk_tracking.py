"""Add, label, stop tracking, discover."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jobmond.desk.peer import Peer
from jobmond.desk.refusals import NotYours, UnknownJob
from jobmond.desk.requests import (
    AddRequest,
    LocalExit,
    Wish,
)
from jobmond.desk.shelf import Found
from jobmond.errors import ConfigError, Refused, TransientTransportError
from jobmond.model.job import Choices
from jobmond.model.state import Bucket, Kind, State
from tests.doubles_desk import ALICE, BOB, JURECA, LEONARDO, ME, SHARED, Scene, seen
from tests.doubles_store import NOW, health, job

# add


async def test_add_guesses_says_so_tracks_and_asks_for_a_sweep():
    scene = Scene()
    wish = Wish(name="grid", labels_add=frozenset({"no-kill"}))
    [row] = await scene.desk().add(AddRequest(("4711",), wish=wish), ME)
    assert row["ref"] == "leonardo/4711"
    assert row["created"] is True
    assert row["error"] is None
    assert "cluster leonardo" in row["guessed"]
    [kept] = scene.store.rows
    assert kept.choices.owner_uid == ME.uid
    assert kept.labels == {"no-kill"}
    assert scene.sweeps == [("leonardo", False)]
    assert scene.woken == 1
    assert scene.store.audited == [
        (ME.uid, "add", "leonardo/4711",
         {"name": "grid", "labels_add": ["no-kill"], "created": True})
    ]  # fmt: skip


async def test_adding_twice_changes_only_what_was_given():
    old = Choices(name="mine", bucket=Bucket.RL, owner="alice", owner_uid=1000)
    scene = Scene()
    scene.store.rows = [job(choices=old)]
    wish = Wish(bucket=Bucket.SFT)
    [row] = await scene.desk().add(AddRequest(("leonardo/4711",), wish=wish), ME)
    assert (row["created"], row["note"]) == (False, "leonardo/4711 was tracked already")
    assert scene.store.rows[0].choices == replace(old, bucket=Bucket.SFT)


async def test_what_is_surely_not_there_is_refused_unless_it_is_tracked():
    asked = []

    async def missing(target, submitted_at):
        asked.append((target.ref, submitted_at))
        return "no process has the number 4711"

    scene = Scene()
    desk = scene.desk(missing=missing)
    with pytest.raises(Refused, match=r"^leonardo/4711: no process has .*; nothing was added$"):
        await desk.add(AddRequest(("4711",), submitted_at=NOW), ME)
    assert asked == [("leonardo/4711", NOW)]
    assert scene.store.rows == []
    rows = await desk.add(AddRequest(("4711", "4712")), ME)
    assert [row["exit_code"] for row in rows] == [1, 1]
    scene.store.rows = [job()]
    [row] = await desk.add(AddRequest(("4711",)), ME)
    assert row["note"] == "leonardo/4711 was tracked already"


async def test_adding_twice_with_nothing_new_changes_nothing():
    scene = Scene()
    scene.store.rows = [job()]
    await scene.desk().add(AddRequest(("4711",)), ME)
    assert scene.store.rows == [job()]
    assert scene.store.audited == []


async def test_one_bad_id_does_not_stop_the_others():
    scene = Scene()
    rows = await scene.desk().add(AddRequest(("4711", "x;y", "4712")), ME)
    assert [row["ref"] for row in rows] == ["leonardo/4711", None, "leonardo/4712"]
    assert (rows[1]["word"], rows[1]["exit_code"]) == ("x;y", 2)
    assert "SLURM id" in rows[1]["error"]
    assert scene.sweeps == [("leonardo", False)]


async def test_an_unknown_cluster_refuses_the_whole_request():
    scene = Scene()
    with pytest.raises(ConfigError, match="nearest: 'leonardo'"):
        await scene.desk().add(AddRequest(("4711",), cluster="leonard"), ME)
    assert scene.store.rows == []


async def test_an_ambiguous_id_is_refused_and_asks_for_no_sweep():
    scene = Scene(clusters=[LEONARDO, JURECA])
    with pytest.raises(Refused, match="can mean leonardo/4711"):
        await scene.desk().add(AddRequest(("4711",)), ME)
    rows = await scene.desk().add(AddRequest(("4711", "4712")), ME)
    assert [row["exit_code"] for row in rows] == [1, 1]
    assert scene.sweeps == []
    assert scene.woken == 0


@pytest.mark.parametrize(
    "state",
    [
        health("leonardo", status="needs-login", remedy="ssh leonardo"),
        health("leonardo", status="unreachable", retry_at=NOW + timedelta(minutes=5)),
    ],
)
async def test_adding_knocks_at_no_cluster_that_wants_to_be_left_alone(state):
    scene = Scene()
    scene.store.healths = [state]
    [row] = await scene.desk().add(AddRequest(("4711",)), ME)
    assert row["created"] is True
    assert scene.sweeps == []
    assert scene.woken == 1


async def test_adding_works_when_the_sweep_cannot_be_asked_for():
    async def broken(cluster, wait):
        raise TransientTransportError("no route")

    [row] = await Scene().desk(request_sweep=broken).add(AddRequest(("4711",)), ME)
    assert row["created"] is True


async def test_many_single_adds_stay_in_the_budget_but_always_wake_the_schedule():
    scene = Scene()
    desk = scene.desk()
    for number in range(40):
        await desk.add(AddRequest((str(100 + number),)), ME)
    assert len(scene.sweeps) == 10
    assert scene.woken == 40


async def test_a_member_cannot_make_the_daemon_read_a_file():
    scene = Scene(rights=SHARED)
    with pytest.raises(NotYours, match="name a log"):
        await scene.desk().add(AddRequest(("4711",), wish=Wish(log_path="/etc/shadow")), BOB)
    assert scene.store.rows == []


async def test_a_member_cannot_change_anothers_job_by_adding_it():
    scene = Scene(rights=SHARED)
    scene.store.rows = [job()]
    wish = Wish(labels_add=frozenset({"x"}))
    with pytest.raises(NotYours, match="belongs to alice"):
        await scene.desk().add(AddRequest(("4711",), wish=wish), BOB)
    assert scene.store.rows == [job()]


async def test_a_member_cannot_take_up_again_what_its_owner_dropped():
    scene = Scene(rights=SHARED)
    scene.store.rows = [job(tracked=False)]
    with pytest.raises(NotYours, match="belongs to alice"):
        await scene.desk().add(AddRequest(("4711",)), BOB)


async def test_a_member_may_add_an_id_used_again():
    scene = Scene(rights=SHARED)
    scene.store.rows = [job(tracked=False, state=State.COMPLETED, ended_at=NOW)]
    [row] = await scene.desk().add(AddRequest(("4711",)), BOB)
    assert row["created"] is True


async def test_adding_a_discovered_job_makes_it_ones_own():
    scene = Scene()
    scene.store.rows = [job(choices=Choices(), discovered=True)]
    [row] = await scene.desk().add(AddRequest(("4711",)), ME)
    assert row["created"] is False
    assert scene.store.rows[0].choices.owner_uid == ME.uid


async def test_a_member_does_not_get_hold_of_a_discovered_job_by_adding_it():
    scene = Scene(rights=SHARED)
    scene.store.rows = [job(choices=Choices(), discovered=True)]
    await scene.desk().add(AddRequest(("4711",)), BOB)
    assert scene.store.rows[0].choices.owner_uid is None


async def test_one_name_of_two_live_jobs_of_a_run_drops_neither():
    class OneOfARun(type(Scene().store)):
        def find(self, word):
            return [j for j in self.rows if j.name == word][-1:]

    scene = Scene(store=OneOfARun())
    scene.store.rows = [job("leonardo/1", id=1), job("leonardo/2", id=2, life=2)]
    with pytest.raises(UnknownJob, match="leonardo/1, leonardo/2"):
        await scene.desk().remove("train", ME)


# label, rm


async def test_label_adds_and_removes():
    scene = Scene()
    scene.store.rows = [job(choices=Choices(labels_added=frozenset({"smoke"})))]
    wish = Wish(labels_add=frozenset({"no-kill"}), labels_remove=frozenset({"smoke"}), run="r")
    shown = await scene.desk().change("4711", wish, ME)
    kept = scene.store.rows[0].choices
    assert (kept.labels_added, kept.labels_removed) == ({"no-kill"}, {"smoke"})
    assert (shown["ref"], shown["run"], shown["labels"]) == ("leonardo/4711", "r", ["no-kill"])
    assert scene.store.audited[0][:3] == (ME.uid, "label", "leonardo/4711")


async def test_a_label_added_again_is_no_longer_removed():
    scene = Scene()
    scene.store.rows = [job(choices=Choices(labels_removed=frozenset({"a", "b"})))]
    await scene.desk().change("4711", Wish(labels_add=frozenset({"a"})), ME)
    assert scene.store.rows[0].choices.labels_removed == {"b"}


async def test_rm_stops_tracking_once():
    scene = Scene()
    scene.store.rows = [job()]
    assert await scene.desk().remove("leonardo/4711", ME) == {"ref": "leonardo/4711"}
    assert not scene.store.rows[0].tracked
    with pytest.raises(Refused, match="not tracked any more"):
        await scene.desk().remove("leonardo/4711", ME)
    assert [a[1] for a in scene.store.audited] == ["rm"]


async def test_members_change_only_their_own():
    scene = Scene(rights=SHARED)
    scene.store.rows = [job()]
    desk = scene.desk()
    for attempt in (
        desk.remove("4711", BOB),
        desk.change("4711", Wish(run="x"), BOB),
        desk.local_ended(LocalExit("leonardo/4711", 0, None, NOW), Peer(9, 9, 9)),
    ):
        with pytest.raises(NotYours):
            await attempt
    assert scene.store.rows == [job()]
    assert (await desk.status(BOB))["summary"]["tracked"] == 1
    await desk.remove("4711", ALICE)


async def test_unknown_words_name_the_nearest():
    scene = Scene()
    scene.store.rows = [job()]
    with pytest.raises(UnknownJob, match="nearest: 'leonardo/4711'"):
        await scene.desk().show("leonardo/4710", ME)


# discover


def found(native_id="5000", name="orphan"):
    return Found("leonardo", Kind.SLURM, native_id, seen(name=name, user="alice"), NOW)


async def test_discover_lists_what_nobody_tracks():
    scene = Scene(found=[found("4711"), found("5000")])
    scene.store.rows = [job()]
    [row] = await scene.desk().discover(ME)
    assert (row["ref"], row["name"], row["state"], row["user"]) == (
        "leonardo/5000", "orphan", "RUNNING", "alice"
    )  # fmt: skip


async def test_tracking_what_was_discovered_keeps_what_was_seen():
    scene = Scene(found=[found()])
    good, bad = await scene.desk().track_found(("leonardo/5000", "leonardo/5001"), ME)
    assert (good["ref"], good["created"], good["name"]) == ("leonardo/5000", True, "orphan")
    assert "nearest: 'leonardo/5000'" in bad["error"]
    [kept] = scene.store.rows
    assert (kept.birth, kept.facts.name) == ("1764434999", "orphan")
    assert scene.sweeps == [("leonardo", False)]


async def test_a_recycled_id_is_not_the_tracked_job():
    scene = Scene(found=[found("4711")])
    scene.store.rows = [job(birth="1")]
    [row] = await scene.desk().track_found(("leonardo/4711",), ME)
    assert "still tracked as an earlier job" in row["error"]
    scene.store.untrack(1, by="x", now=NOW)
    [row] = await scene.desk().track_found(("leonardo/4711",), ME)
    assert row["created"] is True


# launchers


async def test_a_launcher_that_knows_where_its_jobs_run_is_asked():
    scene = Scene(clusters=[LEONARDO, JURECA])
    desk = scene.desk()
    asked = []

    async def locate(word, request):
        asked.append((word, request.kind))
        return "jureca"

    desk.locate = locate
    [row] = await desk.add(AddRequest(("4711",)), ME)
    assert row["ref"] == "jureca/4711"
    assert row["guessed"] == "'4711' taken as jureca/4711: cluster jureca, kind slurm"
    [row] = await desk.add(AddRequest(("4712",), cluster="leonardo"), ME)
    assert (row["ref"], asked) == ("leonardo/4712", [("4711", None)])


@pytest.mark.parametrize("wish", [Wish(nel_command=("/tmp/nel",)), Wish(nel_home="/home/bob")])
async def test_only_those_over_all_name_a_program_to_call(wish):
    scene = Scene(rights=SHARED)
    with pytest.raises(NotYours, match="name a program to call"):
        await scene.desk().add(AddRequest(("4711",), wish=wish), ALICE)
    assert scene.store.rows == []
    scene = Scene()
    await scene.desk().add(AddRequest(("4711",), wish=wish), ME)
    assert scene.store.rows[0].choices.nel_command == wish.nel_command
    assert scene.store.rows[0].choices.nel_home == wish.nel_home
