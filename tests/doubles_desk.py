"""A desk whose surroundings are doubles."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobmond.desk.aim import ClusterInfo
from jobmond.desk.desk import Desk
from jobmond.desk.peer import Peer, Rights
from jobmond.desk.requests import LocalExit
from jobmond.desk.shelf import Found
from jobmond.model.job import Choices, Classified, Job
from jobmond.model.observation import Facts, Seen
from jobmond.model.state import Bucket, Kind, State
from tests.doubles_store import FixedClock, MemoryStore

LEONARDO = ClusterInfo("leonardo", "slurm", (Kind.SLURM,))
JURECA = ClusterInfo("jureca", "slurm", (Kind.SLURM,))
LOCAL = ClusterInfo("local", "local", (Kind.LOCAL, Kind.SLURM))
BARE_LOCAL = ClusterInfo("local", "local", (Kind.LOCAL,))

BOOT = "0b9c6a3e-2f2e-4c55-9e0a-5b1b3f1f6c11"
DAEMON = 500
SHARED = Rights(daemon_uid=DAEMON, socket_gid=50)
ALICE = Peer(1000, 1000, 7, frozenset({50}))
BOB = Peer(1001, 1001, 8, frozenset({50}))
ME = Peer(uid=os.geteuid(), gid=os.getegid(), pid=1)


def valid(cluster: str, kind: str, native_id: str) -> str | None:
    """SLURM takes digits with a task, local takes pid-digits."""
    head, _, tail = native_id.partition("-")
    if kind == Kind.LOCAL:
        good = head == "pid" and tail.isascii() and tail.isdigit()
        return None if good else f"{cluster}: a process looks like pid-4711"
    main, _, task = native_id.partition("_")
    good = main.isascii() and main.isdigit() and (not task or task.isdigit())
    return None if good else f"{cluster}: a SLURM id looks like 4711 or 4711_3"


def classify(
    choices: Choices, facts: Facts, native_id: str, read_as: Bucket | None = None, /
) -> Classified:
    return Classified(
        bucket=choices.bucket or Bucket.OTHER,
        type=choices.type or "other",
        run=choices.run or choices.name or facts.name or native_id,
        labels=choices.labels_added,
    )


@dataclass
class Scene:
    """What the desk's calls reached, and a desk to ask."""

    store: MemoryStore = field(default_factory=MemoryStore)
    clock: FixedClock = field(default_factory=FixedClock)
    clusters: list[ClusterInfo] = field(default_factory=lambda: [LEONARDO])
    found: list[Found] = field(default_factory=list)
    rights: Rights = field(default_factory=lambda: Rights(os.geteuid()))
    sweeps: list[tuple[str | None, bool]] = field(default_factory=list)
    exits: list[tuple[str, LocalExit]] = field(default_factory=list)
    logs: list[tuple[str, int, int | None]] = field(default_factory=list)
    woken: int = 0

    async def call(self, fn: Any, /, *args: Any, **kw: Any) -> Any:
        return fn(*args, **kw)

    async def request_sweep(self, cluster: str | None, wait: bool) -> Sequence[Mapping[str, Any]]:
        self.sweeps.append((cluster, wait))
        return [{"name": cluster, "status": "ok", "jobs": 1, "changes": 2, "age_s": 0}]

    async def read_log(self, job: Job, *, n: int, after: int | None) -> Mapping[str, Any]:
        self.logs.append((job.ref, n, after))
        return {"path": "/o", "status": "read", "text": "x", "offset": 0, "next": 1, "size": 1}

    async def local_exit(self, job: Job, how: LocalExit) -> None:
        self.exits.append((job.ref, how))

    def wake(self) -> None:
        self.woken += 1

    def desk(self, **over: Any) -> Desk:
        plain: dict[str, Any] = {
            "call": self.call,
            "store": self.store,
            "clock": self.clock,
            "clusters": lambda: self.clusters,
            "classify": classify,
            "validate_id": valid,
            "request_sweep": self.request_sweep,
            "read_log": self.read_log,
            "discovered": lambda: self.found,
            "daemon_info": lambda: {"running": True, "host": "here", "version": "0"},
            "local_exit": self.local_exit,
            "rights": self.rights,
            "wake": self.wake,
        }
        return Desk(**{**plain, **over})


def seen(**facts: Any) -> Seen:
    return Seen(State.RUNNING, "RUNNING", "1764434999", Facts(**facts), "squeue")
