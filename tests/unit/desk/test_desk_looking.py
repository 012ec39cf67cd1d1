"""Status, one job, history, events, logs."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from jobmond.desk.requests import (
    AddRequest,
    EventsRequest,
    HistoryRequest,
    LogRequest,
    SweepRequest,
)
from jobmond.errors import Refused
from jobmond.model.job import Choices
from jobmond.model.observation import Facts
from jobmond.model.outcome import Signal, Transition
from jobmond.model.state import Severity, State
from jobmond.reports.times import instant
from tests.doubles_desk import JURECA, LEONARDO, ME, Scene
from tests.doubles_store import NOW, health, job, news, owed

# looking


async def test_status_shows_configured_clusters_and_only_those():
    scene = Scene(clusters=[LEONARDO, replace(JURECA, active=False)])
    scene.store.healths = [health("unused")]
    document = await scene.desk().status(ME)
    assert [(c["name"], c["status"], c["error"]) for c in document["clusters"]] == [
        ("jureca", "inactive", None),
        ("leonardo", "unreachable", "not asked yet"),
    ]
    assert document["daemon"]["running"] is True


@pytest.mark.parametrize(
    ("active", "before", "shown"),
    [
        (True, "ok", ("ok", None)),
        (False, "ok", ("inactive", None)),
        (False, "inactive", ("inactive", None)),
        (True, "inactive", ("unreachable", "not asked yet")),
    ],
)
async def test_a_cluster_switched_off_or_on_since_its_last_sweep(active, before, shown):
    scene = Scene(clusters=[replace(LEONARDO, active=active)])
    scene.store.healths = [health("leonardo", status=before)]
    [cluster] = (await scene.desk().status(ME))["clusters"]
    assert (cluster["status"], cluster["error"]) == shown


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
    scene.store.owed = [owed(ref="leonardo/4712"), owed(id=4)]
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


async def test_after_closing_no_sweep_begins_but_people_are_still_heard():
    scene = Scene()
    desk = scene.desk()
    desk.close()
    with pytest.raises(Refused, match="stopping"):
        await desk.sweep(SweepRequest(None, True), ME)
    [row] = await desk.add(AddRequest(("4711",)), ME)
    assert row["created"] is True
    assert (scene.sweeps, scene.woken) == ([], 0)


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
    asks = [asyncio.create_task(desk.log(LogRequest("4711"), ME)) for _ in range(22)]
    for _ in range(5):
        await asyncio.sleep(0)
    release.set()
    answers = await asyncio.gather(*asks, return_exceptions=True)
    assert sum(isinstance(a, Refused) for a in answers) == 6
    assert most == 1
    assert await desk.log(LogRequest("4711"), ME) == {}


async def test_a_number_that_is_no_id_is_the_process_of_that_number():
    scene = Scene()
    scene.store.rows = [job("local/pid-4711", id=1), job("leonardo/12", id=2), job("local/pid-12")]
    assert (await scene.desk().show("4711", ME))["ref"] == "local/pid-4711"
    assert (await scene.desk().show("12", ME))["ref"] == "leonardo/12"
    with pytest.raises(Refused, match="unknown job '13'"):
        await scene.desk().show("13", ME)


async def test_a_job_in_full_is_stale_where_its_cluster_is_configured_no_more():
    scene = Scene(clusters=[LEONARDO])
    scene.store.rows = [job("jureca/1", id=1), job("leonardo/2", id=2)]
    left, ours = [await scene.desk().show(ref, ME) for ref in ("jureca/1", "leonardo/2")]
    assert (left["stale"], left["asked_about"]) == (True, False)
    assert (ours["stale"], ours["asked_about"]) == (False, True)


async def test_signals_that_were_cleared_are_told_apart():
    scene = Scene()
    signals = (
        Signal("rl-watch", Severity.WATCH, "clip ratio", {}, opened_at=NOW, cleared_at=NOW),
        Signal("rl-collapse", Severity.ALARM, "collapse", {}, opened_at=NOW),
    )
    scene.store.rows = [replace(job("leonardo/1", id=1), signals=signals)]
    shown = await scene.desk().show("1", ME)
    assert [signal["rule"] for signal in shown["signals"]] == ["rl-collapse"]
    [past] = shown["past_signals"]
    assert (past["rule"], past["cleared_at"]) == ("rl-watch", instant(NOW))
