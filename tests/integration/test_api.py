"""The interface over a real Unix socket: uvicorn in this process, http.client at the other end."""

import asyncio
import json
import os
import threading
import urllib.parse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobmond.api import wire
from jobmond.api.server import ApiServer
from jobmond.desk.peer import Rights
from jobmond.errors import StoreError
from tests.doubles_api import Served, ask_now
from tests.doubles_desk import LOCAL, ME, Scene
from tests.doubles_store import job, news


@pytest.fixture
def path(tmp_path):
    return tmp_path / "socket"


# the whole interface once


async def test_every_address(path):
    scene = Scene(clusters=[LOCAL])
    scene.store.told = [news("k1")]
    async with Served(scene, path) as served:
        status, health = await served.ask("GET", "/v1/health")
        assert (status, health["pid"], health["schema"]) == (200, os.getpid(), 1)
        status, answer = await served.ask("POST", "/v1/jobs", {"ids": ["4711"], "labels": ["a"]})
        assert (status, answer["jobs"][0]["ref"]) == (200, "local/4711")
        status, document = await served.ask("GET", "/v1/status")
        assert (status, document["schema"]) == (200, 1)
        assert document["jobs"][0]["labels"] == ["a"]
        word = urllib.parse.quote("local/4711", safe="")
        status, shown = await served.ask("GET", f"/v1/job?job={word}")
        assert (status, shown["job"]["ref"]) == (200, "local/4711")
        status, changed = await served.ask("PATCH", f"/v1/job?job={word}", {"run": "r"})
        assert (status, changed["job"]["run"]) == (200, "r")
        status, log = await served.ask("GET", f"/v1/job/log?job={word}&n=3&after=0")
        assert (status, log["text"]) == (200, "x")
        assert scene.logs == [("local/4711", 3, 0)]
        assert await served.ask("DELETE", f"/v1/job?job={word}") == (200, {"ref": "local/4711"})
        assert await served.ask("GET", "/v1/history") == (200, {"jobs": []})
        status, events = await served.ask("GET", "/v1/events")
        assert (status, events["last"], events["events"][0]["after"]) == (200, "k1", "FAILED")
        assert await served.ask("GET", "/v1/discover") == (200, {"jobs": []})
        status, tracked = await served.ask("POST", "/v1/discover", {"refs": ["local/1"]})
        assert (status, tracked["jobs"][0]["exit_code"]) == (200, 1)
        status, swept = await served.ask("POST", "/v1/sweeps", {"wait": True})
        assert (status, swept["clusters"][0]["name"]) == (200, "local")
        status, failed = await served.ask("GET", "/v1/failures?since=2026-11-01T00:00:00Z")
        assert (status, failed["failures"]) == (200, [])
        assert (await served.ask("GET", "/v1/failures?since=yesterday"))[0] == 400
        assert await served.ask("GET", "/v1/followups?all=1") == (200, {"followups": []})
        status, closed = await served.ask("POST", "/v1/followups/1/close", {})
        assert (status, closed["exit_code"]) == (404, 1)
        start = {"pid": 5, "birth": 9, "boot_id": "0" * 32, "log": "/l", "workdir": "/w"}
        status, local = await served.ask("POST", "/v1/local", start)
        assert (status, local["ref"]) == (200, "local/pid-5")
        end = {"ref": "local/pid-5", "exit_code": 3, "ended_at": "2026-11-29T18:00:00Z"}
        assert await served.ask("POST", "/v1/local/exit", end) == (200, {"ref": "local/pid-5"})
        assert scene.exits[0][1].exit_code == 3


# what goes wrong


@pytest.mark.parametrize(
    ("request_", "code", "said"),
    [
        (("POST", "/v1/jobs", b"{"), (400, 2), "no JSON"),
        (("POST", "/v1/jobs", b"\xff\xfe"), (400, 2), "no JSON"),
        (("POST", "/v1/jobs", b'{"ids": NaN}'), (400, 2), "no JSON"),
        (("POST", "/v1/jobs", b"[" * 200_000), (400, 2), "no JSON"),
        (("POST", "/v1/jobs", b"1" * 10_000), (400, 2), "no JSON"),
        (("POST", "/v1/jobs", b"[]"), (400, 2), "must be a JSON object"),
        (("POST", "/v1/jobs", b""), (400, 2), "ids is missing"),
        (("POST", "/v1/jobs", b'{"ids": ["a\\ud800"]}'), (400, 2), "control character"),
        (("POST", "/v1/jobs", b'{"ids": ["$(touch p)"]}'), (400, 2), "SLURM id"),
        (("POST", "/v1/jobs", b'{"ids": ["lenardo/4711"]}'), (400, 2), "nearest: 'leonardo'"),
        (("POST", "/v1/jobs", b'{"ids": ["1"], "cluser": "x"}'), (400, 2), "nearest: 'cluster'"),
        (("POST", "/v1/sweeps", b'{"wait": "yes"}'), (400, 2), "true or false"),
        (("POST", "/v1/sweeps", b'{"cluster": "x"}'), (400, 2), "unknown cluster 'x'"),
        (("PATCH", "/v1/job?job=4711", b'{"bucket": "rll"}'), (400, 2), "nearest: 'rl'"),
        (("PATCH", "/v1/job", b'{"bucket": "rl"}'), (400, 2), "job is missing"),
        (("GET", "/v1/job?job=nope", None), (404, 1), "unknown job 'nope'"),
        (("GET", "/v1/job?job=%1b%5b2J", None), (400, 2), "control character"),
        (("GET", "/v1/job?job=4711&x=1", None), (400, 2), "unknown key 'x'"),
        (("GET", "/v1/status?x=1", None), (400, 2), "unknown key 'x'"),
        (("GET", "/v1/job/log?job=4711&n=99999", None), (400, 2), "between 0 and 10000"),
        (("GET", "/v1/history?since=now", None), (400, 2), "must be a time like"),
        (("GET", "/v1/events?wait_s=-1", None), (400, 2), "whole number"),
        (("POST", "/v1/followups/0/close", b"{}"), (400, 2), "between 1"),
        (("POST", "/v1/followups/x/close", b"{}"), (400, 2), "whole number"),
        (("POST", f"/v1/followups/{'9' * 5000}/close", b"{}"), (400, 2), "whole number"),
        (("GET", "/v2/status", None), (404, 2), "the daemon has no '/v2/status'"),
        (("POST", "/v1/status", b"{}"), (405, 2), "does not take 'POST'"),
    ],
)
async def test_bad_requests_get_one_line(path, request_, code, said):
    method, target, raw = request_
    scene = Scene()
    scene.store.rows = [job()]
    async with Served(scene, path) as served:
        got, answer = await served.ask(method, target, raw=raw)
        assert (got, answer["exit_code"]) == code
        assert said in answer["error"]
        assert "\n" not in answer["error"]
        assert len(answer["error"]) < 600
        assert (await served.ask("GET", "/v1/health"))[0] == 200
    assert scene.store.rows == [job()]


async def test_a_huge_body_is_refused(path):
    huge = b'{"ids": ["' + b"1" * wire.MAX_BODY_BYTES + b'"]}'
    async with Served(Scene(), path) as served:
        status, answer = await served.ask("POST", "/v1/jobs", raw=huge)
        assert (status, answer["exit_code"]) == (413, 2)

        def chunks():
            for _ in range(20):
                yield b" " * 65536

        status, answer = await served.ask("POST", "/v1/jobs", raw=chunks())
        assert (status, answer["exit_code"]) == (413, 2)


async def test_a_body_that_never_comes_is_given_up(path, monkeypatch):
    monkeypatch.setattr(wire, "BODY_TIMEOUT_S", 0.05)
    async with Served(Scene(), path):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        await writer.drain()
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
        writer.close()


async def test_what_is_no_http_disturbs_nobody(path):
    async with Served(Scene(), path) as served:
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"\x00\xff" * 100 + b"\r\n\r\n")
        await writer.drain()
        assert b"400" in await reader.readline()
        writer.close()
        assert (await served.ask("GET", "/v1/health"))[0] == 200


async def test_a_broken_store_is_one_line(path):
    async def broken(fn, /, *args, **kw):
        raise StoreError("the database /x is full:\nnothing was written")

    async with Served(Scene(), path, call=broken) as served:
        status, answer = await served.ask("GET", "/v1/status")
        assert status == 500
        assert answer == {"error": "the database /x is full: nothing was written", "exit_code": 1}


async def test_a_defect_is_told_once_in_the_journal_and_in_one_line_to_the_person(path, capsys):
    async def broken(fn, /, *args, **kw):
        raise ZeroDivisionError("secret detail")

    async with Served(Scene(), path, call=broken) as served:
        status, answer = await served.ask("GET", "/v1/status")
        assert (status, answer["exit_code"]) == (500, 1)
        assert "ZeroDivisionError" in answer["error"]
        assert "secret detail" not in answer["error"]
        assert (await served.ask("GET", "/v1/health"))[0] == 200
    told = capsys.readouterr()
    journal = told.out + told.err
    assert journal.count("request failed") == 1
    assert "secret detail" in journal


async def test_numbers_that_json_lacks_become_words(path):
    async def odd(job, *, n, after):
        return {"text": "", "a": float("nan"), "b": [float("inf")], "c": {"d": float("-inf")}}

    scene = Scene()
    scene.store.rows = [job()]
    async with Served(scene, path, read_log=odd) as served:
        _, answer = await served.ask("GET", "/v1/job/log?job=4711")
        assert (answer["a"], answer["b"], answer["c"]) == ("nan", ["inf"], {"d": "-inf"})


# waiting


async def test_answers_while_a_sweep_hangs(path):
    asked, release = asyncio.Event(), asyncio.Event()

    async def hanging(cluster, wait):
        asked.set()
        if wait:
            await release.wait()
        return [{"name": cluster, "status": "ok"}]

    async with Served(Scene(), path, request_sweep=hanging) as served:
        sweep = asyncio.create_task(served.ask("POST", "/v1/sweeps", {"wait": True}))
        await asked.wait()
        answers = await asyncio.gather(*(served.ask("GET", "/v1/status") for _ in range(20)))
        assert [status for status, _ in answers] == [200] * 20
        status, added = await served.ask("POST", "/v1/jobs", {"ids": ["4711"]})
        assert (status, added["jobs"][0]["created"]) == (200, True)
        assert not sweep.done()
        release.set()
        assert (await sweep)[1]["clusters"][0]["status"] == "ok"


async def test_long_poll(path):
    scene = Scene()
    async with Served(scene, path) as served:
        polls = [asyncio.create_task(served.ask("GET", "/v1/events?wait_s=300")) for _ in range(5)]
        assert (await served.ask("GET", "/v1/health"))[0] == 200
        scene.store.told.append(news("k1"))
        served.desk.notify()
        for poll in polls:
            status, answer = await poll
            assert (status, answer["last"]) == (200, "k1")


async def test_stopping_ends_long_polls_with_an_answer(path):
    looked = asyncio.Event()

    async def call(fn, /, *args, **kw):
        looked.set()
        return fn(*args, **kw)

    served = Served(Scene(), path, call=call)
    await served.server.start()
    poll = asyncio.create_task(served.ask("GET", "/v1/events?wait_s=300"))
    await looked.wait()
    await served.server.stop()
    assert await poll == (200, {"events": [], "last": None})
    assert not path.exists()


async def test_stop_twice_and_start_again(path):
    served = Served(Scene(), path)
    await served.server.stop()
    await served.server.start()
    await served.server.stop()
    await served.server.stop()
    async with Served(Scene(), path) as again:
        assert (await again.ask("GET", "/v1/health"))[0] == 200


async def test_a_server_that_cannot_start_says_so_and_leaves_no_socket(path, monkeypatch):
    async def broken(self, sockets=None):
        raise OSError("no more descriptors")

    monkeypatch.setattr("uvicorn.Server.startup", broken)
    with pytest.raises(OSError, match="no more descriptors"):
        await ApiServer(Scene().desk(), path).start()
    assert not path.exists()


async def test_the_daemon_keeps_its_signals(path):
    import signal

    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    async with Served(Scene(), path):
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


# any request at all

BODIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.just("4711"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["ids", "labels", "cluster", "wait", "refs", "run", "pid", "x"]), inner
        )
    ),
    max_leaves=10,
)
TARGETS = st.sampled_from(
    [
        ("POST", "/v1/jobs"),
        ("PATCH", "/v1/job?job=4711"),
        ("POST", "/v1/discover"),
        ("POST", "/v1/sweeps"),
        ("POST", "/v1/followups/1/close"),
        ("POST", "/v1/local"),
        ("POST", "/v1/local/exit"),
    ]
)


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    """A server in a thread of its own that stands for the whole module."""
    path = tmp_path_factory.mktemp("standing") / "socket"
    scene, loop = Scene(), asyncio.new_event_loop()
    scene.store.rows = [job()]
    server = ApiServer(scene.desk(), path)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(30)
    yield path
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(30)
    loop.close()


@settings(deadline=None, max_examples=300)
@given(TARGETS, BODIES.map(json.dumps).map(str.encode) | st.binary())
def test_any_body_gets_json_and_never_a_defect(standing, target, raw):
    status, answer = ask_now(standing, *target, raw=raw)
    assert status in (200, 400, 404, 409), answer
    assert (status == 200) == ("error" not in answer)


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from(["/v1/job", "/v1/job/log", "/v1/history", "/v1/events", "/v1/followups"]),
    st.dictionaries(
        st.sampled_from(["job", "since", "after", "limit", "n", "all", "wait_s"]),
        st.text(max_size=20) | st.integers().map(str),
        max_size=3,
    ),
)
def test_any_query_gets_json_and_never_a_defect(standing, target, query):
    query.pop("wait_s", None)
    words = urllib.parse.urlencode(query, errors="surrogatepass")
    status, answer = ask_now(standing, "GET", f"{target}?{words}")
    assert status in (200, 400, 404, 409), answer
    assert (status == 200) == ("error" not in answer)


def test_this_test_runs_as_the_owner():
    assert Rights(os.geteuid()).may_read(ME)
