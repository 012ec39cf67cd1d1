"""The desk over a double of the store."""

import asyncio
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
    LocalExit,
    LocalStart,
    LogRequest,
    SweepRequest,
    Wish,
)
from jobmond.desk.shelf import Found
from jobmond.errors import ConfigError, Refused, TransientTransportError
from jobmond.model.job import Choices
from jobmond.model.observation import Facts, Seen
from jobmond.model.outcome import Followup, Transition
from jobmond.model.state import Bucket, Kind, State
from tests.doubles_desk import BARE_LOCAL, JURECA, LEONARDO, ME, Scene
from tests.doubles_store import NOW, health, job, news

BOOT = "0b9c6a3e-2f2e-4c55-9e0a-5b1b3f1f6c11"
DAEMON = 500
SHARED = Rights(daemon_uid=DAEMON, socket_gid=50)
ALICE = Peer(1000, 1000, 7, frozenset({50}))
BOB = Peer(1001, 1001, 8, frozenset({50}))


def seen(**facts):
    return Seen(State.RUNNING, "RUNNING", "1764434999", Facts(**facts), "squeue")


def entry(**over):
    plain = Followup(3, "kill-verdict", "leonardo/4711", "kill it?", NOW)
    return replace(plain, **over)


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


# looking


async def test_status_shows_configured_clusters_and_only_those():
    scene = Scene(clusters=[LEONARDO, replace(JURECA, active=False)])
    scene.store.healths = [health("forgotten")]
    document = await scene.desk().status(ME)
    assert [(c["name"], c["status"], c["error"]) for c in document["clusters"]] == [
        ("jureca", "inactive", None),
        ("leonardo", "unreachable", "not asked yet"),
    ]
    assert document["daemon"]["running"] is True


async def test_status_keeps_what_ended_lately():
    over = {"tracked": False, "state": State.COMPLETED}
    late = job("leonardo/1", id=1, ended_at=NOW - timedelta(hours=3), **over)
    early = job("leonardo/2", id=2, ended_at=NOW - timedelta(hours=5), **over)
    scene = Scene()
    scene.store.rows = [late, early]
    document = await scene.desk(recent=timedelta(hours=4)).status(ME)
    assert [j["ref"] for j in document["jobs"]] == ["leonardo/1"]


async def test_show_tells_everything():
    scene = Scene()
    first = job(id=1, life=1, birth="1", tracked=False, state=State.TIMEOUT, agent_log="/a/1.md")
    second = job(
        "leonardo/4712",
        id=2,
        life=2,
        proof="squeue",
        facts=Facts(name="train", command="run --token=hf_abcdefghijklmnopqrstuvwxyz012345"),
        choices=Choices(description="the big one"),
    )
    scene.store.rows = [first, second]
    scene.store.steps = {2: [Transition(NOW, None, State.RUNNING, "RUNNING")]}
    scene.store.owed = [entry(ref="leonardo/4712"), entry(id=4)]
    shown = await scene.desk().show("4712", ME)
    assert shown["description"] == "the big one"
    assert shown["proof"] == "squeue"
    assert shown["transitions"] == [
        {"at": "2026-11-29T18:00:00Z", "before": None, "after": "RUNNING", "native": "RUNNING",
         "correction": False}
    ]  # fmt: skip
    assert [(x["ref"], x["life"], x["shown"]) for x in shown["lives"]] == [
        ("leonardo/4711", 1, False),
        ("leonardo/4712", 2, True),
    ]
    assert shown["entries"] == ["/a/1.md"]
    assert [f["id"] for f in shown["followups"]] == [3]
    assert "hf_abcdefghij" not in shown["command"]


async def test_an_earlier_incarnation_shows_its_birth():
    scene = Scene()
    over = {"tracked": False, "state": State.NODE_FAIL, "ended_at": NOW}
    scene.store.rows = [job(id=1, birth="1", **over), job(id=2, birth="2")]
    desk = scene.desk()
    assert [j["ref"] for j in await desk.history(HistoryRequest(), ME)] == ["leonardo/4711@1"]
    assert (await desk.show("leonardo/4711@1", ME))["ref"] == "leonardo/4711@1"
    assert (await desk.show("leonardo/4711", ME))["state"] == "RUNNING"


async def test_history_of_all_and_of_one():
    over = {"tracked": False, "state": State.FAILED, "ended_at": NOW}
    scene = Scene()
    scene.store.rows = [job("leonardo/1", id=1, **over), job("leonardo/2", id=2, **over)]
    desk = scene.desk()
    assert len(await desk.history(HistoryRequest(), ME)) == 2
    assert [j["ref"] for j in await desk.history(HistoryRequest(job="2"), ME)] == ["leonardo/2"]
    assert await desk.history(HistoryRequest(since=NOW + timedelta(seconds=1)), ME) == []


# events


async def test_events_go_on_from_a_key():
    scene = Scene()
    scene.store.told = [news("k1"), news("k2")]
    desk = scene.desk()
    first = await desk.events(EventsRequest(limit=1), ME)
    assert ([e["key"] for e in first["events"]], first["last"]) == (["k1"], "k1")
    second = await desk.events(EventsRequest(after="k1"), ME)
    assert ([e["key"] for e in second["events"]], second["last"]) == (["k2"], "k2")
    third = await desk.events(EventsRequest(after="k2"), ME)
    assert third == {"events": [], "last": "k2"}


async def test_a_long_poll_wakes_when_news_is_committed():
    scene = Scene()
    desk = scene.desk()
    poll = asyncio.create_task(desk.events(EventsRequest(wait_s=300), ME))
    await asyncio.sleep(0)
    desk.notify()  # nothing new: it goes on waiting
    await asyncio.sleep(0)
    assert not poll.done()
    scene.store.told.append(news("k1"))
    desk.notify()
    assert (await poll)["last"] == "k1"


async def test_news_between_the_look_and_the_wait_is_not_missed():
    scene = Scene()
    looked = 0

    async def call(fn, /, *args, **kw):
        nonlocal looked
        looked += 1
        answer = fn(*args, **kw)
        if looked == 1:
            scene.store.told.append(news("k1"))
            desk.notify()
        return answer

    desk = scene.desk(call=call)
    async with asyncio.timeout(5):
        assert (await desk.events(EventsRequest(wait_s=300), ME))["last"] == "k1"


async def test_closing_ends_every_long_poll_now_and_later():
    desk = Scene().desk()
    polls = [asyncio.create_task(desk.events(EventsRequest(wait_s=300), ME)) for _ in range(3)]
    await asyncio.sleep(0)
    desk.close()
    async with asyncio.timeout(5):
        assert [(await p)["events"] for p in polls] == [[], [], []]
        assert (await desk.events(EventsRequest(after="x", wait_s=300), ME))["last"] == "x"


# logs


async def test_log_is_asked_for_the_job_meant():
    scene = Scene()
    scene.store.rows = [job()]
    answer = await scene.desk().log(LogRequest("train", 5, 10), ME)
    assert answer["text"] == "x"
    assert scene.logs == [("leonardo/4711", 5, 10)]


async def test_a_hanging_cluster_is_not_asked_for_logs_by_everybody():
    scene = Scene()
    scene.store.rows = [job()]
    release, reading, most = asyncio.Event(), 0, 0

    async def slow(job, *, n, after):
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        await release.wait()
        reading -= 1
        return {}

    desk = scene.desk(read_log=slow)
    asks = [asyncio.create_task(desk.log(LogRequest("4711"), ME)) for _ in range(10)]
    for _ in range(5):
        await asyncio.sleep(0)
    release.set()
    answers = await asyncio.gather(*asks, return_exceptions=True)
    assert sum(isinstance(a, Refused) for a in answers) == 6
    assert most == 1
    assert await desk.log(LogRequest("4711"), ME) == {}


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


# sweeps


async def test_a_named_cluster_is_asked_even_if_it_needed_a_login():
    scene = Scene()
    scene.store.healths = [health("leonardo", status="needs-login")]
    [row] = await scene.desk().sweep(SweepRequest("leonardo", True), ME)
    assert row["changes"] == 2
    assert scene.sweeps == [("leonardo", True)]


async def test_a_sweep_of_all_leaves_alone_what_needs_a_person():
    scene = Scene(clusters=[LEONARDO, JURECA, replace(BARE_LOCAL, active=False)])
    scene.store.healths = [
        health("jureca", status="needs-login", error="key refused", remedy="ssh jureca")
    ]
    rows = await scene.desk().sweep(SweepRequest(None, True), ME)
    assert scene.sweeps == [("leonardo", True)]
    assert [(r["name"], r["status"]) for r in rows] == [
        ("leonardo", "ok"), ("jureca", "needs-login"), ("local", "inactive")
    ]  # fmt: skip
    assert rows[1]["remedy"] == "ssh jureca"


async def test_beyond_the_budget_the_last_answer_with_its_age():
    scene = Scene()
    scene.store.rows = [job()]
    scene.store.healths = [health("leonardo")]
    scene.store.swept = {"leonardo": NOW - timedelta(seconds=90)}
    desk = scene.desk()
    for _ in range(10):
        await desk.sweep(SweepRequest("leonardo", True), ME)
    [row] = await desk.sweep(SweepRequest("leonardo", True), ME)
    assert len(scene.sweeps) == 10
    assert row == {
        "name": "leonardo", "status": "ok", "jobs": 1, "changes": None, "error": None,
        "remedy": None, "age_s": 90,
    }  # fmt: skip
    scene.clock.move(120)
    [row] = await desk.sweep(SweepRequest("leonardo", True), ME)
    assert row["age_s"] == 0


async def test_beyond_the_budget_what_the_daemon_remembers_of_the_last_sweep():
    scene = Scene()
    scene.store.swept = {"leonardo": NOW - timedelta(seconds=5)}
    desk = scene.desk(
        budget=SweepBudget(burst=0), last_answer=lambda name: {"status": "ok", "changes": 7}
    )
    [row] = await desk.sweep(SweepRequest("leonardo", True), ME)
    assert (row["status"], row["changes"], row["age_s"]) == ("ok", 7, 5)
    assert scene.sweeps == []


async def test_sweep_of_an_unknown_cluster():
    with pytest.raises(ConfigError, match="nearest: 'leonardo'"):
        await Scene().desk().sweep(SweepRequest("lenardo", False), ME)


# follow-ups


async def test_followups_open_and_all():
    scene = Scene()
    scene.store.owed = [entry(), entry(id=4, state="closed")]
    desk = scene.desk()
    assert [f["id"] for f in await desk.followups(ME, every=False)] == [3]
    assert [f["id"] for f in await desk.followups(ME, every=True)] == [3, 4]


async def test_close_once():
    scene = Scene()
    scene.store.rows, scene.store.owed = [job()], [entry()]
    desk = scene.desk()
    assert await desk.close_followup(3, CloseRequest("kill", "sure"), ME) == {
        "id": 3,
        "state": "closed",
    }
    assert (scene.store.owed[0].verdict, scene.store.owed[0].note) == ("kill", "sure")
    with pytest.raises(Refused, match="closed already"):
        await desk.close_followup(3, CloseRequest(), ME)
    with pytest.raises(UnknownJob, match="unknown follow-up 99"):
        await desk.close_followup(99, CloseRequest(), ME)


async def test_members_close_what_is_owed_for_their_own_jobs():
    scene = Scene(rights=SHARED)
    scene.store.rows = [job()]
    scene.store.owed = [entry(), entry(id=4, ref="leonardo/gone")]
    desk = scene.desk()
    for number in (3, 4):
        with pytest.raises(NotYours):
            await desk.close_followup(number, CloseRequest(), BOB)
    await desk.close_followup(3, CloseRequest(), ALICE)


# local processes

START = LocalStart(4711, 99, BOOT, "sh -c x", "/w", NOW, Wish(name="sh", log_path="/w/jobmond.log"))


async def test_announce_and_exit():
    scene = Scene(clusters=[LEONARDO, BARE_LOCAL])
    desk = scene.desk()
    row = await desk.announce(START, ME)
    assert row == {"ref": "local/pid-4711", "created": True, "note": None}
    [kept] = scene.store.rows
    assert (kept.kind, kept.birth, kept.choices.log_path) == (
        Kind.LOCAL, f"{BOOT}:99", "/w/jobmond.log"
    )  # fmt: skip
    how = LocalExit("local/pid-4711", 3, None, NOW)
    assert await desk.local_ended(how, ME) == {"ref": "local/pid-4711"}
    assert scene.exits == [("local/pid-4711", how)]
    assert scene.sweeps == [("local", False), ("local", False)]


async def test_an_announced_pid_used_again_is_another_job():
    scene = Scene(clusters=[BARE_LOCAL])
    desk = scene.desk()
    await desk.announce(START, ME)
    assert (await desk.announce(START, ME))["created"] is False
    scene.store.untrack(1, by="x", now=NOW)
    again = await desk.announce(replace(START, start_ticks=100), ME)
    assert again["created"] is True


async def test_a_members_process_is_tracked_without_its_log():
    scene = Scene(clusters=[BARE_LOCAL], rights=SHARED)
    row = await scene.desk().announce(START, BOB)
    assert "not read" in row["note"]
    assert scene.store.rows[0].choices.log_path is None


async def test_no_local_cluster():
    with pytest.raises(Refused, match="kind local"):
        await Scene().desk().announce(START, ME)


async def test_an_exit_of_something_that_is_no_process():
    scene = Scene()
    scene.store.rows = [job()]
    with pytest.raises(Refused, match="no process of this host"):
        await scene.desk().local_ended(LocalExit("leonardo/4711", 0, None, NOW), ME)
    assert scene.exits == []


async def test_whoever_shows_the_state_hears_of_every_change():
    scene = Scene(clusters=[LEONARDO, BARE_LOCAL])
    heard = []
    desk = scene.desk(changed=lambda: heard.append(len(heard)))
    await desk.add(AddRequest(("4711",)), ME)
    await desk.change("4711", Wish(run="r"), ME)
    await desk.announce(START, ME)
    await desk.remove("4711", ME)
    assert len(heard) == 4
    await desk.status(ME)
    with pytest.raises(UnknownJob):
        await desk.remove("nobody", ME)
    assert len(heard) == 4


async def test_a_secret_on_a_command_line_is_not_kept():
    scene = Scene(clusters=[BARE_LOCAL])
    start = replace(START, command="train --api-key hunter2hunter2")
    await scene.desk().announce(start, ME)
    assert "hunter2" not in scene.store.rows[0].facts.command


async def test_strangers_get_nothing_at_all():
    desk = Scene(rights=Rights(daemon_uid=DAEMON)).desk()
    for attempt in (
        desk.status(BOB),
        desk.show("x", BOB),
        desk.history(HistoryRequest(), BOB),
        desk.events(EventsRequest(), BOB),
        desk.log(LogRequest("x"), BOB),
        desk.add(AddRequest(("1",)), BOB),
        desk.change("x", Wish(run="r"), BOB),
        desk.remove("x", BOB),
        desk.discover(BOB),
        desk.track_found(("x",), BOB),
        desk.sweep(SweepRequest(), BOB),
        desk.followups(BOB, every=True),
        desk.close_followup(1, CloseRequest(), BOB),
        desk.announce(START, BOB),
        desk.take_up([START], BOB),
        desk.local_ended(LocalExit("x", 0, None, NOW), BOB),
    ):
        with pytest.raises(NotYours):
            await attempt
