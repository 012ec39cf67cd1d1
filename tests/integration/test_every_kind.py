"""Jobs of every kind in one report: the same tables, the right buckets, one aggregate line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jobmond.analysis.classify import classified
from jobmond.model.job import Choices, Classified
from jobmond.model.observation import (
    Absent,
    Ask,
    Facts,
    LogAsk,
    LogTail,
    Poll,
    Reading,
    Seen,
)
from jobmond.model.state import Bucket, Kind, State
from jobmond.reports.document import status_document
from jobmond.reports.status import status_text
from jobmond.reports.view import View
from jobmond.store import Store
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.conclude import Terms
from jobmond.sweep.sweep import Sweeper
from tests.doubles_store import FixedClock

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@dataclass
class Source:
    """One kind of source that says what a test wants."""

    kind: str
    says: Mapping[str, Seen] = field(default_factory=dict)
    discovers: bool = False

    async def poll(
        self, asks: Sequence[Ask], *, since: datetime, now: datetime, timeout_s: float
    ) -> Poll:
        return Poll({ask.native_id: self.says[ask.native_id] for ask in asks})

    def valid_id(self, native_id: str) -> str | None:
        return None

    async def read_tails(
        self, asks: Sequence[LogAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[LogTail]]:
        return {ask.native_id: Absent() for ask in asks}


def said(state: State, native: str, name: str, **facts: Any) -> Seen:
    known = {"submitted_at": NOW - timedelta(hours=2), "user": "alice", **facts}
    if state is not State.PENDING:
        known["started_at"] = NOW - timedelta(hours=1)
    return Seen(state, native, "1", Facts(name=name, **known), proof="source")


def classify(
    choices: Choices, facts: Facts, native_id: str, read_as: Bucket | None = None
) -> Classified:
    return classified(choices, facts, native_id, (), read_as)


Everything = Mapping[str, Mapping[Kind, Mapping[str, Seen]]]


async def swept(folder: Path, everything: Everything) -> dict[str, Any]:
    """The status document after all `everything` was tracked and swept."""
    store = Store.open(f"sqlite:///{folder}/db")

    async def call(fn: Any, /, *args: Any, **kw: Any) -> Any:
        return fn(*args, **kw)

    sweeper = Sweeper(store, call, FixedClock(NOW), classify, Terms((), (), "/agent_logs"))
    for name, kinds in everything.items():
        sources = {kind: Source(kind.value, says) for kind, says in kinds.items()}
        cluster = Cluster(name, next(iter(kinds)).value, sources, next(iter(sources.values())), ())
        for kind, says in kinds.items():
            for native in says:
                place = classify(Choices(), Facts(), native)
                store.add(name, kind, native, choices=Choices(), classified=place, now=NOW)
        result = await sweeper.sweep(cluster)
        assert result.error is None
    jobs = store.jobs(recent_since=NOW - timedelta(hours=24))
    daemon = {"running": True, "host": "here", "last_sweep_at": NOW, "next_sweep_at": NOW}
    document = status_document(jobs, store.clusters(NOW), daemon=daemon, now=NOW)
    store.close()
    return document


@pytest.fixture
async def document(tmp_path: Path) -> dict[str, Any]:
    everything: Everything = {
        "leonardo": {
            Kind.SLURM: {
                "4711": said(State.RUNNING, "RUNNING", "rl__grid_a"),
                "4712": said(State.RUNNING, "RUNNING", "upload"),
            }
        },
        "k8s": {Kind.KUBERNETES: {"team/sft": said(State.RUNNING, "Running", "sft__llama")}},
        "pond": {Kind.IRIS: {"alice/t": said(State.PENDING, "building", "datagen__traces")}},
        "local": {
            Kind.LOCAL: {"pid-77": said(State.RUNNING, "running", "python")},
            Kind.NEL: {
                "3f08cc06": said(
                    State.COMPLETED,
                    "success",
                    "eval-mmlu-pro",
                    scores={"MMLU-Pro": 42.3},
                    ended_at=NOW - timedelta(minutes=5),
                )
            },
            Kind.LAUNCHER: {"cicd_1": said(State.FAILED, "FAILED", "ptq", exit_code=1)},
        },
    }
    return await swept(tmp_path, everything)


def test_every_kind_is_in_its_bucket(document: dict[str, Any]) -> None:
    places = {job["ref"]: (job["kind"], job["bucket"], job["state"]) for job in document["jobs"]}
    assert places == {
        "leonardo/4711": ("slurm", "rl", "RUNNING"),
        "leonardo/4712": ("slurm", "other", "RUNNING"),
        "k8s/team/sft": ("kubernetes", "sft", "RUNNING"),
        "pond/alice/t": ("iris", "datagen", "PENDING"),
        "local/pid-77": ("local", "other", "RUNNING"),
        "local/3f08cc06": ("nel", "eval", "COMPLETED"),
        "local/cicd_1": ("launcher", "other", "FAILED"),
    }
    assert (
        document["summary"]["line"]
        == "1 of 7 completed (MMLU-Pro: 42.3%), 1 failed, 4 running, 1 pending"
    )


def test_one_set_of_tables_shows_them_all(document: dict[str, Any]) -> None:
    lines = status_text(document, View(now=NOW, tz=UTC))
    tables: dict[str, list[str]] = {}
    title = ""
    for before, line in pairwise(lines):
        title = line if not before else title
        for job in document["jobs"]:
            if line.startswith("│") and job["ref"] in line:
                tables.setdefault(title, []).append(job["ref"])
    assert tables == {
        "RL, no metrics yet": ["leonardo/4711"],
        "SFT, no metrics yet": ["k8s/team/sft"],
        "Datagen, no metrics yet": ["pond/alice/t"],
        "Eval": ["local/3f08cc06"],
        "Catch-all": ["leonardo/4712", "local/pid-77", "local/cicd_1"],
    }
    assert document["summary"]["line"] in lines


async def test_the_aggregate_line_over_kinds(tmp_path: Path) -> None:
    ended = {"ended_at": NOW - timedelta(minutes=5)}
    everything: Everything = {
        "local": {
            Kind.NEL: {
                "3f08cc06": said(
                    State.COMPLETED, "success", "eval-a", scores={"MMLU-Pro": 42.3}, **ended
                ),
                "4a19dd17": said(
                    State.COMPLETED, "success", "eval-b", scores={"GSM8K": 67.1}, **ended
                ),
            }
        },
        "pond": {Kind.IRIS: {"alice/eval": said(State.RUNNING, "running", "eval-c")}},
        "k8s": {Kind.KUBERNETES: {"team/eval": said(State.PENDING, "Pending", "eval-d")}},
    }
    document = await swept(tmp_path, everything)
    assert document["summary"]["line"] == (
        "2 of 4 completed (MMLU-Pro: 42.3%, GSM8K: 67.1%), 1 running, 1 pending"
    )
