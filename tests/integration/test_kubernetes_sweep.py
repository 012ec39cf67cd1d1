"""Jobs of a Kubernetes cluster over time: whole sweeps over a real store."""

import asyncio
import time
from datetime import timedelta

import pytest
from aiohttp import web

from jobmond import registry
from jobmond.backends.kubernetes.logs import KubeLogs
from jobmond.errors import TransientTransportError
from jobmond.model.job import Choices
from jobmond.model.observation import Facts
from jobmond.model.state import Kind, State
from jobmond.store import Store
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.conclude import Terms
from jobmond.sweep.sweep import Sweeper
from jobmond.transports.kube import KubeClient
from tests import kube
from tests.unit.builders import NOW, by_name

ACTIVE = {"startTime": "2026-11-29T11:00:00Z", "active": 1, "ready": 1, "terminating": 0}
WEDGED = {"startTime": "2026-11-29T11:00:00Z", "terminating": 0, "ready": 0}


class Calendar:
    def __init__(self):
        self.at = NOW

    def now(self):
        return self.at

    def monotonic(self):
        return self.at.timestamp()

    def later(self, minutes=15):
        self.at += timedelta(minutes=minutes)


class Scene:
    """A cluster `k8s` with a store in a file; every sweep may be another daemon's."""

    def __init__(self, tmp_path, api, **options):
        self.url = f"sqlite:///{tmp_path / 'db'}"
        self.clock = Calendar()
        self.store = Store.open(self.url)
        self.api = api
        self.discover = options.pop("discover", False)
        self.options = options
        self.store.close()
        self._open()

    def _open(self):
        self.store = Store.open(self.url)
        backend = registry.backends["kubernetes"](self.api, clock=self.clock, **self.options)
        logs = KubeLogs(self.api, clock=self.clock)
        kinds = {Kind.KUBERNETES: backend}
        self.cluster = Cluster(
            "k8s", "kubernetes", kinds, logs, (self.api,), discover=self.discover
        )
        self.sweeper = Sweeper(
            self.store, self._call, self.clock, by_name, Terms((), ("news",), "/agent_logs")
        )

    def restart(self):
        """Another daemon: all that is remembered is in the database."""
        self.store.close()
        self._open()

    async def _call(self, fn, /, *args, **kw):
        return fn(*args, **kw)

    def add(self, native_id="ml/train"):
        self.store.add(
            "k8s",
            Kind.KUBERNETES,
            native_id,
            choices=Choices(),
            classified=by_name(Choices(), Facts(), native_id),
            now=self.clock.now(),
        )

    async def sweep(self, *, asked=True, minutes=15):
        self.clock.later(minutes=minutes)
        return await self.sweeper.sweep(self.cluster, asked=asked)

    def job(self, word="k8s/ml/train"):
        return max(self.store.find(word), key=lambda job: job.id)

    def said(self):
        job = self.job()
        return job.state.value, job.facts.reason

    def told(self):
        return [
            (n.type, n.ref or n.cluster, n.payload["before"], n.payload["after"])
            for n in self.store.events(limit=1000)
        ]


@pytest.fixture(autouse=True)
def straight(monkeypatch):
    """Past the proxy that this environment may have."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def api():
    return kube.ApiPort()


@pytest.fixture
def scene(tmp_path, api):
    made = Scene(tmp_path, api)
    yield made
    made.store.close()


async def test_the_silent_wedge_is_lost_at_the_third_look_whoever_looks(scene, api):
    """A quota that refuses every pod: the Job says nothing at all, for ever."""
    api.state.put("jobs", kube.job(status=WEDGED))
    said = 'Error creating: pods "train-x" is forbidden: exceeded quota: q'
    api.state.put("events", kube.event("uid-train", "FailedCreate", said))
    api.state.put("events", kube.event("uid-other", "FailedCreate", "of another job"))
    scene.add()
    for misses in (1, 2):
        await scene.sweep()
        assert scene.said() == ("RUNNING", "FailedCreate")
        assert scene.job().facts.misses == misses
        scene.restart()
    await scene.sweep()
    assert scene.said() == ("LOST", "no-pods")
    assert scene.job().facts.message == said
    assert scene.told() == [("transition", "k8s/ml/train", "RUNNING", "LOST")]
    await scene.sweep()
    assert len(scene.told()) == 1


async def test_a_look_that_fails_neither_counts_nor_forgets(scene, api):
    api.state.put("jobs", kube.job(status=WEDGED))
    scene.add()
    await scene.sweep()
    await scene.sweep()
    api.fails = TransientTransportError("no connection")
    for _ in range(5):
        await scene.sweep()
    assert (scene.job().state, scene.job().facts.misses) == (State.RUNNING, 2)
    api.fails = None
    await scene.sweep()
    assert scene.said() == ("LOST", "no-pods")


async def test_a_pod_between_two_looks_starts_the_count_anew(scene, api):
    api.state.put("jobs", kube.job(status=ACTIVE))
    scene.add()
    for _ in range(2):
        await scene.sweep()
    api.state.put("pods", kube.pod(status=kube.RUNNING))
    await scene.sweep()
    assert (scene.job().state, scene.job().facts.misses) == (State.RUNNING, None)
    api.state.objects["pods", "ml"] = []
    for _ in range(2):
        await scene.sweep()
        assert scene.job().state is State.RUNNING
    await scene.sweep()
    assert scene.job().state is State.LOST


async def test_a_lost_job_whose_pods_come_after_all_is_corrected(scene, api):
    api.state.put("jobs", kube.job(status=WEDGED))
    scene.add()
    for _ in range(3):
        await scene.sweep()
    assert scene.job().state is State.LOST
    api.state.put("pods", kube.pod(status=kube.RUNNING))
    await scene.sweep()
    assert scene.job().state is State.RUNNING
    assert scene.told()[-1] == ("transition", "k8s/ml/train", "LOST", "RUNNING")
    assert [n.payload["correction"] for n in scene.store.events(limit=9)] == [False, True]


async def test_looks_in_quick_succession_are_no_patience(scene, api):
    """Somebody who asks for sweep after sweep does not make a job lost within a minute."""
    api.state.put("jobs", kube.job(status=WEDGED))
    scene.add()
    for _ in range(8):
        await scene.sweep(minutes=1)
    assert scene.job().state is not State.LOST
    for _ in range(3):
        await scene.sweep(minutes=1)
    assert scene.said() == ("LOST", "no-pods")
    scene.restart()
    await scene.sweep(minutes=1)
    assert scene.said() == ("LOST", "no-pods")  # also to a daemon that has just begun


async def test_max_misses_is_a_setting(tmp_path, api):
    scene = Scene(tmp_path, api, max_misses=1)
    api.state.put("jobs", kube.job(status=WEDGED))
    scene.add()
    await scene.sweep()
    assert scene.said() == ("LOST", "no-pods")
    scene.store.close()


async def test_a_record_that_its_time_to_live_took_is_lost_with_what_was_last_seen(scene, api):
    api.state.put("jobs", kube.job(status=ACTIVE))
    api.state.put("pods", kube.pod(status=kube.RUNNING))
    scene.add()
    await scene.sweep()
    api.state.clear()
    await scene.sweep()
    assert scene.said() == ("LOST", "record-gone")
    assert scene.job().facts.message == "last seen RUNNING"
    assert scene.job().diagnosis is None
    assert (
        scene.told()
        == [
            ("transition", "k8s/ml/train", None, "RUNNING"),
            ("transition", "k8s/ml/train", "RUNNING", "LOST"),
        ][1:]
    )
    api.state.asked.clear()
    await scene.sweep()
    assert scene.said() == ("LOST", "record-gone")
    # Lost jobs are looked for among what is listed anyway, a day long, and cost nothing more.
    asked = [path.rpartition("/ml")[2] for path in api.state.paths()]
    assert [path for path in asked if not path.endswith("/log")] == ["/jobs", "/pods", ""]


async def test_a_record_that_ended_before_it_vanished_keeps_its_end(scene, api):
    done = {"conditions": [kube.condition("Complete", reason="CompletionsReached")]}
    api.state.put("jobs", kube.job(status={**done, "succeeded": 1}))
    scene.add()
    await scene.sweep()
    api.state.clear()
    await scene.sweep()
    assert scene.said() == ("COMPLETED", "CompletionsReached")


async def test_a_record_that_one_list_forgot_is_asked_for_by_name(scene, api):
    api.state.put("jobs", kube.job(status=ACTIVE), kube.job("other", ACTIVE))
    api.state.put("pods", kube.pod(status=kube.RUNNING))
    scene.add()
    await scene.sweep()
    listed = api.state.objects["jobs", "ml"]
    api.state.objects["pods", "ml"] = []
    whole = api.state.answer

    def forgetful(path, query):
        api.state.objects["jobs", "ml"] = listed[1:] if path.endswith("/jobs") else listed
        return whole(path, query)

    api.state.answer = forgetful
    await scene.sweep()
    job = scene.job()
    assert (job.state, job.stale) == (State.RUNNING, True)


async def test_a_namespace_that_does_not_exist_moves_nothing_and_is_said(scene, api):
    api.state.put("jobs", kube.job(status=ACTIVE))
    api.state.put("pods", kube.pod(status=kube.RUNNING))
    scene.add()
    await scene.sweep()
    api.state.clear()
    api.state.namespaces.clear()
    for _ in range(5):
        result = await scene.sweep()
        assert (result.status, result.error) == ("unreachable", "namespace ml does not exist")
    job = scene.job()
    assert (job.state, job.stale) == (State.RUNNING, True)


async def test_a_namespace_that_nobody_may_read_is_not_taken_for_an_empty_one(scene, api):
    api.state.put("jobs", kube.job(status=ACTIVE))
    scene.add()
    await scene.sweep()
    api.state.clear()
    no = kube.status_body(403, "Forbidden", "namespaces is forbidden")
    api.state.fixed["/api/v1/namespaces/ml"] = (403, no)
    result = await scene.sweep()
    job = scene.job()
    assert (result.status, job.state, job.stale) == ("ok", State.RUNNING, True)
    assert "which may not exist" in job.note


async def test_of_two_namespaces_one_may_be_wrong(tmp_path, api):
    scene = Scene(tmp_path, api, namespaces=("ml", "typo"))
    api.state.put("jobs", kube.job(status=ACTIVE))
    api.state.put("pods", kube.pod(status=kube.RUNNING))
    scene.add()
    scene.add("typo/other")
    result = await scene.sweep()
    assert result.status == "ok"
    assert scene.job().state is State.RUNNING
    assert scene.job("k8s/typo/other").note == "namespace typo does not exist"
    scene.store.close()


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (
            kube.job(status={"conditions": [kube.condition("Suspended")]}, suspend=True),
            ("PENDING", "Suspended"),
        ),
        (kube.job(status={}), ("PENDING", "Unreconciled")),
        (kube.job(status={}, managedBy="kueue.x-k8s.io/multikueue"), ("PENDING", "ManagedBy")),
        (
            kube.job(status=ACTIVE, managedBy="kueue.x-k8s.io/multikueue"),
            ("RUNNING", "ManagedBy"),
        ),
        (
            kube.job(status={**WEDGED, "conditions": [kube.condition("FailureTarget")]}),
            ("RUNNING", None),
        ),
    ],
    ids=["suspended", "empty status", "managed by others", "at work elsewhere", "doomed"],
)
async def test_waiting_without_pods_lasts_as_long_as_it_lasts(scene, api, job, expected):
    api.state.put("jobs", job)
    scene.add()
    for _ in range(12):
        await scene.sweep()
        assert scene.said() == expected
    assert scene.told() == []


def gated(**conditions):
    workload = {
        "metadata": {
            "name": "job-train-1a2b3",
            "namespace": "ml",
            "uid": "uid-workload",
            "ownerReferences": [{"kind": "Job", "name": "train", "uid": "uid-train"}],
        },
        "spec": {"active": True, "queueName": "gpus"},
        "status": {"conditions": [kube.condition(k, *v) for k, v in conditions.items()]},
    }
    job = kube.job(status={"conditions": [kube.condition("Suspended")]}, suspend=True)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gpus"}
    return job, workload


QUEUED = {"QuotaReserved": ("False", "Pending", "8 more needed")}
EVICTED = {
    "QuotaReserved": ("False", "Pending", "waiting"),
    "Evicted": ("True", "Preempted", "for a job of higher priority"),
}
REQUEUED = {"Evicted": ("False", "QuotaReserved"), "Requeued": ("False", "BackoffNotFinished")}


async def test_a_job_in_kueue_from_the_queue_to_its_end(scene, api):
    api.state.kueue = True
    scene.add()
    said = []
    for conditions in (QUEUED, QUEUED, QUEUED, QUEUED, EVICTED, REQUEUED):
        api.state.clear()
        job, workload = gated(**conditions)
        api.state.put("jobs", job)
        api.state.put("workloads", workload)
        await scene.sweep()
        said.append(scene.said())
    assert said[:4] == [("PENDING", "Pending")] * 4
    assert said[4:] == [("PENDING", "Preempted"), ("PENDING", "BackoffNotFinished")]
    assert scene.job().facts.partition == "gpus"
    api.state.clear()
    api.state.put("jobs", kube.job(status=ACTIVE))
    api.state.put("pods", kube.pod(status=kube.RUNNING))
    await scene.sweep()
    assert scene.said() == ("RUNNING", None)
    assert scene.told() == [("transition", "k8s/ml/train", "PENDING", "RUNNING")]


async def test_an_outage_of_ten_sweeps_moves_nothing(scene, api):
    api.state.put("jobs", kube.job(status=ACTIVE), kube.job("wedge", WEDGED))
    api.state.put("pods", kube.pod(status=kube.RUNNING))
    scene.add()
    scene.add("ml/wedge")
    await scene.sweep()
    api.fails = TransientTransportError("no connection to the API server")
    for _ in range(10):
        result = await scene.sweep()
        assert result.status == "unreachable"
    for word in ("k8s/ml/train", "k8s/ml/wedge"):
        job = scene.job(word)
        assert (job.state, job.stale, job.tracked) == (State.RUNNING, True, True)
    api.fails = None
    await scene.sweep()
    assert [t for t in scene.told() if t[0] != "cluster"] == []
    assert [t[2:] for t in scene.told()] == [("ok", "unreachable"), ("unreachable", "ok")]


async def test_the_same_name_again_is_the_next_life(scene, api):
    api.state.put("jobs", kube.job(status=ACTIVE))
    api.state.put("pods", kube.pod(status=kube.RUNNING))
    scene.add()
    await scene.sweep()
    api.state.clear()
    second = kube.job(status={})
    second["metadata"]["uid"] = "uid-second"
    api.state.put("jobs", second)
    await scene.sweep()
    job = scene.job()
    assert (job.state, job.birth, job.life) == (State.PENDING, "uid-second", 2)
    assert [t[0] for t in scene.told()] == ["restart"]


async def test_pods_that_outlive_their_record_are_still_at_work(scene, api):
    """Deleted through the API without a propagation policy, a Job leaves its pods running."""
    api.state.put("jobs", kube.job(status=ACTIVE))
    pod = kube.pod(status=kube.RUNNING)
    api.state.put("pods", pod)
    scene.add()
    await scene.sweep()
    api.state.objects["jobs", "ml"] = []
    pod["metadata"]["ownerReferences"] = None
    await scene.sweep()
    assert scene.said() == ("RUNNING", "Orphaned")
    api.state.objects["pods", "ml"] = []
    await scene.sweep()
    assert scene.said() == ("LOST", "record-gone")


async def test_a_young_job_that_nobody_knows_yet_is_waited_for(scene, api):
    api.state.put("jobs", kube.job("other", ACTIVE))
    scene.clock.later(10)
    scene.add()
    scene.clock.later(-10)
    await scene.sweep()
    assert scene.job().first_seen_at is None
    await scene.sweep()
    assert scene.said() == ("LOST", "record-gone")


async def test_what_is_found_is_adopted_but_not_the_pods_of_jobs(tmp_path, api):
    scene = Scene(tmp_path, api, discover=True, selector="app=train")
    mine, other = kube.job(status=ACTIVE), kube.job("other", ACTIVE)
    mine["metadata"]["labels"] = {"app": "train"}
    bare = kube.pod("notebook", kube.RUNNING, of=None)
    bare["metadata"]["labels"] = {"app": "train"}
    pod = kube.pod(status=kube.RUNNING)
    pod["metadata"]["labels"]["app"] = "train"
    api.state.put("jobs", mine, other)
    api.state.put("pods", pod, bare)
    await scene.sweep(asked=False)
    tracked = sorted(j.native_id for j in scene.store.jobs(recent_since=NOW))
    assert tracked == ["ml/notebook", "ml/train"]
    scene.store.close()


# ---- faults over HTTP ------------------------------------------------------------------------


def said(status, body=b"", kind="text/plain", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(status=status, body=body, headers={"Content-Type": kind, **named})


def forbidden(code, reason):
    return said(code, kube.status_body(code, reason, f"{reason}: no"), "application/json")


FAULTS = {
    "401": lambda: forbidden(401, "Unauthorized"),
    "403": lambda: forbidden(403, "Forbidden"),
    "404 as JSON": lambda: forbidden(404, "NotFound"),
    "404 as text": lambda: said(404, b"404 page not found\n"),
    "409": lambda: forbidden(409, "AlreadyExists"),
    "410": lambda: forbidden(410, "Expired"),
    "429": lambda: said(429, b"Too many requests, please try again later.\n", Retry_After="0"),
    "500": lambda: forbidden(500, "InternalError"),
    "502 in HTML": lambda: said(502, b"<html><h1>Bad Gateway</h1></html>", "text/html"),
    "503 empty": lambda: said(503),
    "200 empty": lambda: said(200),
    "truncated JSON": lambda: said(
        200, b'{"kind": "JobList", "items": [{"meta', "application/json"
    ),
    "a list of nothing": lambda: said(200, b"[]", "application/json"),
    "items that are none": lambda: said(200, b'{"items": 3}', "application/json"),
    "deep JSON": lambda: said(200, b"[" * 100_000, "application/json"),
}


async def reset(request):
    request.transport.abort()
    return web.Response()


async def hang(request):
    await asyncio.sleep(60)


async def drip(request):
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.01)


def fault_of(name):
    if name in FAULTS:

        async def fault(request):
            return FAULTS[name]()

        return fault
    return {"reset": reset, "hang": hang, "drip": drip}[name]


@pytest.fixture
async def far(tmp_path):
    async with kube.api_server() as server:
        client = KubeClient(
            clock=Calendar(), kubeconfig=kube.kubeconfig(tmp_path, server.url), env={}
        )
        scene = Scene(
            tmp_path,
            client,
            request_timeout_s=2.0,
            namespaces=("ml",),
            offload=asyncio.to_thread,
        )
        scene.server = server
        yield scene
        scene.store.close()
        await client.close()


async def beating(beats):
    """Counts how late the loop was."""
    while True:
        before = time.perf_counter()
        await asyncio.sleep(0.005)
        beats.append(time.perf_counter() - before)


@pytest.mark.parametrize("name", [*FAULTS, "reset", "hang", "drip"])
async def test_a_fault_moves_no_job(far, name):
    state = far.server.state
    state.put("jobs", kube.job(status=ACTIVE), kube.job("wedge", WEDGED))
    state.put("pods", kube.pod(status=kube.RUNNING))
    far.add()
    far.add("ml/wedge")
    result = await far.sweep()
    assert result.status == "ok"
    before = {word: far.job(word) for word in ("k8s/ml/train", "k8s/ml/wedge")}
    far.server.fault = fault_of(name)
    beats = []
    heart = asyncio.create_task(beating(beats))
    for _ in range(3):
        result = await far.sweep()
        assert result.status == ("needs-login" if name == "401" else "unreachable")
        assert result.error
    heart.cancel()
    assert beats  # the loop went on while the far side did not
    for word, was in before.items():
        job = far.job(word)
        assert (job.state, job.stale, job.tracked) == (was.state, True, True)
        assert job.facts.misses == was.facts.misses
    far.server.fault = None
    assert (await far.sweep()).status == "ok"
    assert far.job().stale is False
    assert [t for t in far.told() if t[0] != "cluster"] == []


@pytest.mark.parametrize("name", [n for n in [*FAULTS, "reset"] if n not in ("401", "429")])
async def test_a_fault_in_the_list_of_pods_moves_no_job(far, name):
    """Half an answer: the Jobs are listed, their pods are not."""
    state = far.server.state
    state.put("jobs", kube.job(status=ACTIVE))
    state.put("pods", kube.pod(status=kube.RUNNING))
    far.add()
    await far.sweep()
    fault = fault_of(name)

    async def half(request):
        return await fault(request) if request.path.endswith("/pods") else None

    far.server.fault = half
    for _ in range(4):
        assert (await far.sweep()).status == "unreachable"
    job = far.job()
    assert (job.state, job.stale, job.facts.misses) == (State.RUNNING, True, None)


async def test_a_list_that_expires_while_it_is_read_is_read_anew(far):
    state = far.server.state
    state.put("jobs", *[kube.job(f"job-{n}", ACTIVE) for n in range(3)])
    state.put("pods", *[kube.pod(f"p{n}", kube.RUNNING, of=f"job-{n}") for n in range(3)])
    far.options["page"] = 1
    far.restart()
    far.add("ml/job-2")
    expired = [forbidden(410, "Expired")]

    async def fault(request):
        return expired.pop() if "continue" in request.query and expired else None

    far.server.fault = fault
    assert (await far.sweep()).status == "ok"
    assert far.job("k8s/ml/job-2").state is State.RUNNING


async def test_one_odd_record_is_its_own_trouble(far):
    state = far.server.state
    odd = kube.job("odd", {"active": "three"})
    strange = kube.pod("strange-x", {"phase": "Levitating"}, of="strange")
    state.put("jobs", kube.job(status=ACTIVE), odd, kube.job("strange", ACTIVE))
    state.put("pods", kube.pod(status=kube.RUNNING), strange, {"metadata": None})
    for name in ("train", "odd", "strange"):
        far.add(f"ml/{name}")
    result = await far.sweep()
    assert result.status == "ok"
    assert far.job().state is State.RUNNING
    assert far.job("k8s/ml/odd").note == "its record cannot be read: active is no number"
    assert "unknown phase 'Levitating'" in far.job("k8s/ml/strange").note


async def test_five_thousand_pods_in_pages_in_less_than_a_second_of_work(far):
    """Measured around the sweep's own work: the answers are made beforehand."""
    state = far.server.state
    filler = {"annotations": {"note": "x" * 2000}}
    for n in range(5000):
        pod = kube.pod(f"p{n}", kube.RUNNING, of=f"job-{n // 5}")
        pod["metadata"] |= filler
        state.put("pods", pod)
    state.put("jobs", *[kube.job(f"job-{n}", ACTIVE) for n in range(1000)])
    far.add("ml/job-999")
    await far.sweep()  # the library is loaded
    pages = {}
    for start in range(0, 5000, 500):
        query = {"limit": "500", **({"continue": str(start)} if start else {})}
        pages[str(start) if start else ""] = state.answer("/api/v1/namespaces/ml/pods", query).body

    async def fault(request):
        if request.path.endswith("/pods"):
            body = pages[request.query.get("continue", "")]
            return web.Response(body=body, content_type="application/json")
        return None

    far.server.fault = fault
    beats = []
    heart = asyncio.create_task(beating(beats))
    spent_s = []
    for _ in range(3):
        far.server.requests.clear()
        before = time.process_time()
        assert (await far.sweep()).status == "ok"
        spent_s.append(time.process_time() - before)
    heart.cancel()
    asked = [r for r in far.server.requests if r.path.endswith("/pods")]
    assert len(asked) == 10
    assert all(r.query["limit"] == "500" for r in asked)
    assert far.server.most_at_once == 1
    assert far.job("k8s/ml/job-999").state is State.RUNNING
    assert min(spent_s) < 1.0  # with the server's share
    assert beats
