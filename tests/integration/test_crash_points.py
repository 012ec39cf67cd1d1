"""The process dies at every step between poll and delivery: nothing is lost, nothing doubled."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from jobmond import registry
from jobmond.model.job import Choices
from jobmond.model.observation import Facts, LogTail, Poll, Read
from jobmond.model.state import Kind, State
from jobmond.ports import HttpAnswer
from jobmond.store import Store
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.conclude import AGENT_LOG, Terms
from jobmond.sweep.deliver import deliver_all
from jobmond.sweep.sweep import Sweeper
from tests.unit.builders import NOW, at, by_name, seen

TRUTH = (
    {"1": seen(State.PENDING), "2": seen(State.PENDING), "3": seen(State.RUNNING)},
    {"1": seen(State.RUNNING), "2": seen(State.RUNNING), "3": seen(State.RUNNING)},
    {
        "1": seen(State.FAILED, exit_code=3, ended_at=at(1)),
        "2": seen(State.COMPLETED, exit_code=0, ended_at=at(1)),
        "3": seen(State.TIMEOUT, ended_at=at(1)),
    },
)
WANTED = {
    "1": [("PENDING", "RUNNING"), ("RUNNING", "FAILED")],
    "2": [("PENDING", "RUNNING"), ("RUNNING", "COMPLETED")],
    "3": [("RUNNING", "TIMEOUT")],
}


class Killed(BaseException):
    """kill -9."""


@dataclass
class Fate:
    """Lets so many steps happen, then kills: `before` the step takes effect, or after it."""

    steps: int
    before: bool
    taken: int = 0

    def step(self):
        self.taken += 1
        if self.before and self.taken == self.steps:
            raise Killed

    def stepped(self):
        if not self.before and self.taken == self.steps:
            raise Killed


class Calendar:
    """A clock that a test sets."""

    def __init__(self):
        self.at = NOW

    def now(self):
        return self.at

    def monotonic(self):
        return self.at.timestamp()


@dataclass
class Far:
    """The cluster: answers what is true in this round."""

    fate: Fate
    truth: dict
    kind: str = "slurm"
    discovers: bool = False

    async def poll(self, asks, *, since, now, timeout_s):
        self.fate.step()
        answer = Poll({a.native_id: self.truth[a.native_id] for a in asks})
        self.fate.stepped()
        return answer

    def valid_id(self, native_id):
        return None

    async def read_tails(self, asks, *, now, timeout_s):
        self.fate.step()
        tail = b"Traceback (most recent call last):\nValueError: no\n"
        read = {a.native_id: Read(LogTail("/l", 50, 1, now, 0, tail), now) for a in asks}
        self.fate.stepped()
        return read


@dataclass
class Sinking:
    """A real sink in a process that may die around it."""

    fate: Fate
    sink: object

    async def send(self, deliveries: Sequence):
        self.fate.step()
        await self.sink.send(deliveries)
        self.fate.stepped()


@dataclass
class Hook:
    """A receiver elsewhere, reached through the real webhook: it outlives every process, and
    refuses its first requests of a day with `trouble`. Each event is kept once by its key."""

    trouble: list[int]
    taken: dict[str, dict] = field(default_factory=dict)

    async def request(self, method, url, *, headers, body, timeout_s, max_bytes):
        if self.trouble:
            return HttpAnswer(self.trouble.pop(), {}, b"")
        event = json.loads(body)
        assert headers["webhook-id"] == event["key"]
        assert self.taken.setdefault(event["key"], event) == event
        return HttpAnswer(202, {}, b"")

    async def close(self): ...


class FarSinking(Sinking):
    """The same for a sink that is handed one at a time."""

    give_up_after = timedelta(days=3)
    spool = 10_000

    async def check(self): ...


@dataclass
class Process:
    """One life of the daemon's inside, on a folder that outlives it."""

    folder: Path
    truth: dict
    fate: Fate
    hook: Hook = field(default_factory=lambda: Hook([]))
    clock: Calendar = field(default_factory=Calendar)

    async def call(self, fn, /, *args, **kw):
        self.fate.step()
        result = fn(*args, **kw)
        self.fate.stepped()
        return result

    async def sweep(self):
        store = Store.open(f"sqlite:///{self.folder / 'db'}")
        try:
            sinks = {
                "news": Sinking(self.fate, registry.sinks["file"](path=self.folder / "news.jsonl")),
                AGENT_LOG: Sinking(
                    self.fate, registry.sinks["agent-log"](root=self.folder / "agent_logs")
                ),
                "team": FarSinking(self.fate, self.webhook()),
            }
            far = Far(self.fate, self.truth)
            cluster = Cluster("lab", "slurm", {Kind.SLURM: far}, far, ())
            terms = Terms((), ("news", "team"), str(self.folder / "agent_logs"))
            sweeper = Sweeper(store, self.call, self.clock, by_name, terms)
            await deliver_all(sinks, outbox=store, call=self.call, clock=self.clock)
            await sweeper.sweep(cluster)
            await deliver_all(sinks, outbox=store, call=self.call, clock=self.clock)
        finally:
            store.close()

    def webhook(self):
        (self.folder / "url").write_text("https://receiver.invalid/hook")
        make = registry.sinks["webhook"]
        return make(self.hook, self.clock, url_file=self.folder / "url")


def add_jobs(folder):
    store = Store.open(f"sqlite:///{folder / 'db'}")
    for native_id in ("1", "2", "3"):
        choices = Choices(run=f"run{native_id}")
        store.add(
            "lab",
            Kind.SLURM,
            native_id,
            choices=choices,
            classified=by_name(choices, Facts(), native_id),
            now=NOW - timedelta(minutes=1),
        )
    store.close()


def told(folder):
    events = {}
    keys = []
    for line in (folder / "news.jsonl").read_text().splitlines():
        event = json.loads(line)
        keys.append(event["key"])
        native_id = event["job"]["ref"].partition("/")[2]
        events.setdefault(native_id, []).append((event["before"], event["after"]))
    assert len(keys) == len(set(keys))
    return events


def told_elsewhere(hook):
    events = {}
    for event in hook.taken.values():
        native_id = event["job"]["ref"].partition("/")[2]
        events.setdefault(native_id, []).append((event["before"], event["after"]))
    return events


async def survives(folder, dies_in, fate, hook):
    """In the sweep numbered `dies_in` the process is killed, and starts again; False where the
    sweep was over before."""
    try:
        await Process(folder, TRUTH[dies_in], fate, hook).sweep()
    except Killed:
        pass
    else:
        return False
    later = Calendar()
    for truth in (*TRUTH[dies_in:], TRUTH[-1], TRUTH[-1]):
        await Process(folder, truth, Fate(0, before=True), hook, later).sweep()
        later.at += timedelta(hours=1)  # a pause that was asked for is over
    return True


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("dies_in", [0, 1, 2])
async def test_every_step_can_be_the_last(tmp_path, dies_in, before):
    young = tmp_path / "young"
    young.mkdir()
    add_jobs(young)
    young_hook = Hook([])
    for truth in TRUTH[:dies_in]:
        await Process(young, truth, Fate(0, before=True), young_hook).sweep()
    for step in range(1, 60):
        folder = tmp_path / str(step)
        shutil.copytree(young, folder)
        hook = Hook([503, 429], dict(young_hook.taken))
        if not await survives(folder, dies_in, Fate(step, before), hook):
            break
        assert told(folder) == WANTED, f"killed at step {step}"
        assert told_elsewhere(hook) == WANTED, f"killed at step {step}"
        entries = [p.name for p in (folder / "agent_logs").glob("*/lab-*.md")]
        assert sorted(entries) == ["lab-1-train.md", "lab-3-train.md"]
    else:
        pytest.fail("the sweep never came to its end")
    assert step > 5  # the loop really went through a sweep's steps
