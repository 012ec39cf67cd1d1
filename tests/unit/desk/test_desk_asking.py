"""Sweeps, follow-ups, local processes; and strangers."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from jobmond.desk.budget import SweepBudget
from jobmond.desk.failed import FailuresRequest, failures
from jobmond.desk.peer import Rights
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
from jobmond.errors import ConfigError, Refused
from jobmond.model.outcome import Diagnosis
from jobmond.model.state import Kind, State
from tests.doubles_desk import (
    ALICE,
    BARE_LOCAL,
    BOB,
    BOOT,
    DAEMON,
    JURECA,
    LEONARDO,
    ME,
    SHARED,
    Scene,
)
from tests.doubles_store import NOW, health, job, owed

# sweeps


async def test_a_named_cluster_is_asked_even_if_it_needed_a_login():
    scene = Scene()
    scene.store.healths = [health("leonardo", status="needs-login")]
    [row] = await scene.desk().sweep(SweepRequest("leonardo", True), ME)
    assert row["changes"] == 2
    assert scene.sweeps == [("leonardo", True)]


async def test_a_sweep_of_all_leaves_alone_what_needs_a_person():
    scene = Scene(clusters=[LEONARDO, JURECA])
    scene.store.healths = [
        health("jureca", status="needs-login", error="key refused", remedy="ssh jureca")
    ]
    rows = await scene.desk().sweep(SweepRequest(None, True), ME)
    assert scene.sweeps == [("leonardo", True)]
    assert [(r["name"], r["status"]) for r in rows] == [
        ("leonardo", "ok"), ("jureca", "needs-login")
    ]  # fmt: skip
    assert rows[1]["remedy"] == "ssh jureca"


async def test_a_cluster_that_is_switched_off_is_swept_to_see_whether_it_still_is():
    scene = Scene(clusters=[replace(BARE_LOCAL, active=False)])
    desk = scene.desk()
    for _ in range(40):
        await desk.sweep(SweepRequest(None, True), ME)
    assert scene.sweeps == [("local", True)] * 40  # it contacts nobody: no budget is spent


async def test_who_goes_away_cancels_no_sweep():
    begun, release, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def long(cluster, wait):
        begun.set()
        await release.wait()
        done.set()
        return []

    ask = asyncio.create_task(
        Scene().desk(request_sweep=long).sweep(SweepRequest("leonardo", True), ME)
    )
    await begun.wait()
    ask.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ask
    release.set()
    async with asyncio.timeout(5):
        await done.wait()


async def test_a_sweep_that_failed_is_answered_with_what_is_known():
    async def failing(cluster, wait):
        return []

    scene = Scene()
    scene.store.healths = [health("leonardo", status="unreachable", error="no route")]
    [row] = await scene.desk(request_sweep=failing).sweep(SweepRequest("leonardo", True), ME)
    assert (row["status"], row["error"]) == ("unreachable", "no route")


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


async def test_failures_by_signature():
    scene = Scene()
    disk = Diagnosis("disk-full", "no space", fingerprint="disk-full:OSError:-:0a")
    for nth in (1, 2):
        over = job(f"leonardo/{nth}", id=nth, state=State.FAILED, diagnosis=disk)
        scene.store.rows.append(replace(over, ended_at=NOW - timedelta(hours=nth), agent_log="/a"))
    scene.store.rows.append(job("leonardo/3", id=3))
    answer = await failures(scene.desk(), FailuresRequest(), ME)
    [row] = answer["failures"]
    assert (row["count"], row["cause"], row["jobs"]) == (
        2,
        "disk-full",
        ["leonardo/1", "leonardo/2"],
    )
    assert (row["first_at"], row["last_at"]) == ("2026-11-29T16:00:00Z", "2026-11-29T17:00:00Z")
    assert row["last"]["agent_log"] == "/a"
    recent = FailuresRequest(since=NOW - timedelta(minutes=90))
    [row] = (await failures(scene.desk(), recent, ME))["failures"]
    assert (row["count"], row["recurrence"]["words"]) == (1, "first time")


async def test_followups_open_and_all():
    scene = Scene()
    scene.store.owed = [owed(), owed(id=4, state="closed")]
    desk = scene.desk()
    assert [f["id"] for f in await desk.followups(ME, every=False)] == [3]
    assert [f["id"] for f in await desk.followups(ME, every=True)] == [3, 4]


async def test_close_once():
    scene = Scene()
    scene.store.rows, scene.store.owed = [job()], [owed()]
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


async def test_a_deep_probe_is_closed_with_its_verdict():
    scene = Scene()
    scene.store.rows, scene.store.owed = [job()], [owed(kind="deep-probe")]
    desk = scene.desk()
    with pytest.raises(Refused, match=r"deep probe: say what it came to, --verdict kill or"):
        await desk.close_followup(3, CloseRequest(None, "looked"), ME)
    await desk.close_followup(3, CloseRequest("no-kill", "looked"), ME)
    (row,) = await desk.followups(ME, every=True)
    assert (row["state"], row["verdict"], row["note"]) == ("closed", "no-kill", "looked")


async def test_a_cleanup_that_must_wait_is_shown_as_held():
    scene = Scene()
    scene.store.rows, scene.store.owed = [job()], [owed(evidence={"held": "90 of 100 steps"})]
    (row,) = await scene.desk().followups(ME, every=False)
    assert row["state"] == "held"


async def test_members_close_what_is_owed_for_their_own_jobs():
    scene = Scene(rights=SHARED)
    scene.store.rows = [job()]
    scene.store.owed = [owed(), owed(id=4, ref="leonardo/gone")]
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
        failures(desk, FailuresRequest(), BOB),
        desk.followups(BOB, every=True),
        desk.close_followup(1, CloseRequest(), BOB),
        desk.announce(START, BOB),
        desk.take_up([START], BOB),
        desk.local_ended(LocalExit("x", 0, None, NOW), BOB),
    ):
        with pytest.raises(NotYours):
            await attempt
