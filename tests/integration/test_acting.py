"""A collapse acted on: evidence first, then once, then looked at, through a real database."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from jobmond.analysis.followed import Tools
from jobmond.analysis.judge import STEPPED
from jobmond.backends._files import FileReader
from jobmond.errors import TransientTransportError
from jobmond.model.intent import Stage, Stop, Stopped
from jobmond.model.job import Choices
from jobmond.model.observation import Facts, Poll, Seen, Unreachable
from jobmond.model.state import Bucket, Kind, State
from jobmond.registry import rules
from jobmond.sinks.agent_log import AgentLogSink
from jobmond.store import Store
from jobmond.sweep.act import Actor
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.conclude import AGENT_LOG, Terms
from jobmond.sweep.deliver import Post, all_rounds
from jobmond.sweep.sweep import Sweeper
from tests.doubles import ShellTransport
from tests.integration.test_following import Clock, classify
from tests.training import PARSERS, log
from tests.unit.builders import NOW

COLLAPSE = log("skyrl_legacy_collapse")
RULES = tuple(rules[name]() for name in STEPPED)


class Slurm:
    """A cluster that cancels, and notes what was on disk when it was asked to."""

    kind = "slurm"
    discovers = False

    def __init__(self, folder: Path) -> None:
        self.says: dict[str, Seen] = {}
        self.asked: list[list[str]] = []
        self.evidence: list[list[str]] = []
        self.answer: Stop | TransientTransportError = Stop.ASKED
        self.folder = folder

    async def poll(self, asks, *, since, now, timeout_s):
        return Poll({a.native_id: self.says[a.native_id] for a in asks})

    def valid_id(self, native_id):
        return None

    async def cancel(self, targets, *, timeout_s):
        self.asked.append([t.native_id for t in targets])
        self.evidence.append(sorted(p.name for p in self.folder.glob("*/*collapse*.md")))
        if isinstance(self.answer, TransientTransportError):
            raise self.answer
        return {t.native_id: Stopped(self.answer) for t in targets}


class Scene:
    """One run on one cluster; `restart` loses everything that is not in a file."""

    def __init__(self, tmp_path, **cluster):
        self.path, self.clock = tmp_path, Clock()
        self.logs = tmp_path / "agent_logs"
        self.slurm = Slurm(self.logs)
        reader = FileReader(ShellTransport())
        kinds = {Kind.SLURM: self.slurm}
        self.cluster = Cluster("lab", "slurm", kinds, reader, (), **cluster)
        self.store = self.opened()
        (tmp_path / "7.out").write_bytes(COLLAPSE)

    def opened(self):
        return Store.open(f"sqlite:///{self.path / 'db'}")

    def restart(self):
        self.store.close()
        self.store = self.opened()

    async def call(self, fn, /, *args, **kw):
        return fn(*args, **kw)

    def add(self, native_id="7", *labels):
        chosen = Choices(labels_added=frozenset(labels), bucket=Bucket.RL)
        self.store.add(
            "lab",
            Kind.SLURM,
            native_id,
            choices=chosen,
            classified=replace(classify(chosen, Facts(), native_id), run="grid"),
            now=self.clock.now(),
        )

    def seen(self, state=State.RUNNING, **facts):
        known = Facts(
            name="train", user="alice", log_path=str(self.path / "7.out"), started_at=NOW, **facts
        )
        return Seen(state, state.value, "100", known, "squeue")

    async def sweep(self, state=State.RUNNING):
        if state is not None:
            self.slurm.says["7"] = self.seen(state)
        self.clock.at += timedelta(minutes=15)
        terms = Terms((), ("news",), str(self.logs))
        tools = Tools(tuple(PARSERS.values()), RULES)
        sweeper = Sweeper(self.store, self.call, self.clock, classify, terms, tools=tools)
        return await sweeper.sweep(self.cluster)

    async def deliver(self):
        post = Post(self.store, self.call, self.clock)
        await all_rounds(post, {AGENT_LOG: AgentLogSink(root=self.logs)})

    async def act(self, waiting=()):
        await Actor(self.store, self.call, self.clock).act(self.cluster, waiting)

    async def whole(self, state=State.RUNNING):
        result = await self.sweep(state)
        await self.deliver()
        await self.act(result.waiting)

    def intents(self):
        (job,) = self.store.find("7")
        return [(one.stage, one.attempts, one.detail) for one in self.store.intents_of(job.id)]

    def front_matter(self):
        (path,) = self.logs.glob("*/*collapse*.md")
        return next(yaml.safe_load_all(path.read_text().split("\n---\n", 1)[0]))

    def collapses(self):
        return [n for n in self.store.events(limit=99) if n.type == "signal" and collapse(n)]


def collapse(news):
    return news.payload["signal"]["rule"] == "rl-collapse"


async def test_a_collapse_is_cancelled_once_after_its_evidence_is_on_disk(tmp_path):
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    await scene.whole()
    assert scene.slurm.asked == [["7"]]
    assert len(scene.slurm.evidence[0]) == 1
    assert scene.intents() == [(Stage.ASKED, 1, "asked")]
    await scene.whole(State.CANCELLED)
    await scene.whole(State.CANCELLED)
    assert scene.slurm.asked == [["7"]]
    assert scene.intents() == [(Stage.CONFIRMED, 1, "CANCELLED")]
    assert len(scene.collapses()) == 1
    trail = [(line.action, line.subject) for line in scene.store.audit_trail()]
    assert trail == [
        ("cancel", "lab/7"),
        ("cancelled", "lab/7"),
        ("cancel-confirmed", "lab/7"),
    ]
    assert 'on_collapse = "cancel"' in scene.store.audit_trail()[0].detail["allowed_by"]


async def test_nothing_is_asked_while_the_evidence_is_not_on_disk(tmp_path):
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    await scene.sweep()
    await scene.act()
    assert scene.slurm.asked == []
    scene.restart()  # killed between decision and evidence
    await scene.act()
    assert scene.slurm.asked == []
    await scene.deliver()
    scene.restart()  # killed between evidence and request
    await scene.act()
    assert scene.slurm.asked == [["7"]]
    scene.restart()  # killed after the request
    await scene.act()
    await scene.whole(State.CANCELLED)
    assert scene.slurm.asked == [["7"]]
    assert scene.intents() == [(Stage.CONFIRMED, 1, "CANCELLED")]


async def test_an_evidence_folder_that_cannot_be_written_keeps_the_job_running(tmp_path):
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    scene.logs.write_text("in the way")
    await scene.whole()
    assert scene.slurm.asked == []
    scene.logs.unlink()
    await scene.whole()
    assert scene.slurm.asked == [["7"]]


async def test_a_request_that_died_is_looked_at_before_it_is_repeated(tmp_path):
    """Put down first, so that a crash after asking never asks again at once."""
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    scene.slurm.answer = TransientTransportError("connection lost")
    await scene.whole()
    assert scene.intents() == [(Stage.ASKED, 1, None)]
    await scene.act()  # at once: nothing
    assert len(scene.slurm.asked) == 1
    scene.slurm.answer = Stop.ASKED
    await scene.whole()  # it was looked at, and it runs on
    assert scene.intents() == [(Stage.ASKED, 2, "asked")]
    await scene.whole()
    await scene.whole()
    await scene.whole()
    assert scene.intents() == [(Stage.DROPPED, 3, "it runs on, however often asked")]
    assert len(scene.slurm.asked) == 3


async def test_an_id_that_is_another_jobs_by_now_is_let_go(tmp_path):
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    scene.slurm.answer = Stop.ANOTHER
    await scene.whole()
    assert scene.intents() == [(Stage.DROPPED, 1, "its id belongs to another job by now")]


@pytest.mark.parametrize(
    ("labels", "cluster", "why"),
    [
        ((), {}, 'left running: on_collapse = "recommend"'),
        (("no-kill",), {"cancels": True}, "left running: it is labelled no-kill"),
        (("spike-mitigation",), {"cancels": True}, "left running: it is labelled spike-mitigation"),
        ((), {"cancels": True, "no_kill": True}, "left running: no_kill is set for lab"),
    ],
)
async def test_one_that_must_not_be_cancelled_is_left_running_with_its_evidence_written(
    tmp_path, labels, cluster, why
):
    scene = Scene(tmp_path, **cluster)
    scene.add("7", *labels)
    await scene.whole()
    await scene.whole()
    assert scene.slurm.asked == []
    assert scene.intents() == []
    matter = scene.front_matter()
    assert matter["decision"] == why
    assert matter["ref"] == "lab/7"
    (told,) = scene.collapses()
    assert told.payload["body"].startswith(why)
    assert Path(told.payload["agent_log"]).exists()


async def test_a_label_given_in_time_saves_the_run(tmp_path):
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    await scene.sweep()
    await scene.deliver()
    (job,) = scene.store.find("7")
    chosen = replace(job.choices, labels_added=frozenset({"no-kill"}))
    scene.store.choose(job.id, chosen, classify(chosen, job.facts, "7"))
    (job,) = scene.store.find("7")
    if "no-kill" not in job.labels:
        pytest.fail("the label did not arrive")
    await scene.act()
    assert scene.slurm.asked == []
    assert scene.intents() == [(Stage.DROPPED, 0, "it is labelled no-kill")]


async def test_a_cluster_that_does_not_answer_leaves_the_decision_standing(tmp_path):
    """What the job does now was not seen: nothing is asked of it, and nothing is let go."""
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    await scene.sweep()
    await scene.deliver()
    scene.slurm.says["7"] = Unreachable("connection lost")
    await scene.sweep(None)
    await scene.act()
    assert scene.slurm.asked == []
    await scene.whole()
    assert scene.slurm.asked == [["7"]]


async def test_a_run_that_began_anew_before_it_was_asked_is_let_go(tmp_path):
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    await scene.sweep()
    again = COLLAPSE[: COLLAPSE.index(b"Step 3:")]
    (tmp_path / "7.out").write_bytes(COLLAPSE + again)
    await scene.sweep()
    await scene.deliver()
    await scene.act()
    assert scene.slurm.asked == []
    assert scene.intents() == [(Stage.DROPPED, 0, "it began anew since")]


async def test_leave_that_is_taken_back_in_time_saves_the_run(tmp_path):
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    await scene.sweep()
    await scene.deliver()
    scene.cluster = replace(scene.cluster, cancels=False)
    await scene.act()
    assert scene.slurm.asked == []
    assert scene.intents() == [(Stage.DROPPED, 0, 'on_collapse = "recommend"')]


async def test_a_collapse_of_an_earlier_start_is_no_reason_while_the_log_is_read(tmp_path):
    """A log longer than one look: what was read so far ends in a collapse, the job does not."""
    again = COLLAPSE[: COLLAPSE.index(b"Step 3:")]
    scene = Scene(tmp_path, cancels=True, log_read_bytes=len(COLLAPSE))
    scene.add()
    (tmp_path / "7.out").write_bytes(COLLAPSE + again)
    await scene.whole()
    (job,) = scene.store.find("7")
    assert job.training.behind_bytes > 0
    await scene.whole()
    (job,) = scene.store.find("7")
    assert job.training.behind_bytes == 0
    assert scene.slurm.asked == []
    assert scene.collapses() == []


async def test_a_collapse_read_before_the_log_s_end_was_reached_is_told_there(tmp_path):
    scene = Scene(tmp_path, cancels=True, log_read_bytes=len(COLLAPSE))
    scene.add()
    (tmp_path / "7.out").write_bytes(COLLAPSE + b"nothing\n" * 300)
    await scene.whole()
    assert scene.collapses() == []
    await scene.whole()
    assert scene.slurm.asked == [["7"]]
    assert len(scene.collapses()) == 1
    assert scene.front_matter()["step"] == scene.collapses()[0].payload["signal"]["step"]


async def test_a_second_collapse_of_a_run_begun_anew_has_its_own_evidence_and_decision(tmp_path):
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    await scene.sweep()
    await scene.deliver()
    again = COLLAPSE[: COLLAPSE.index(b"Step 3:")]
    (tmp_path / "7.out").write_bytes(COLLAPSE + again)
    await scene.whole()
    assert scene.intents() == [(Stage.DROPPED, 0, "it began anew since")]
    (tmp_path / "7.out").write_bytes(COLLAPSE + COLLAPSE)
    await scene.sweep()
    assert scene.intents() == [(Stage.DECIDED, 0, None)]
    await scene.act()
    assert scene.slurm.asked == []  # the evidence of the first is not its
    await scene.deliver()
    await scene.act()
    assert scene.slurm.asked == [["7"]]


@pytest.mark.parametrize("label", ["no-kill", "spike-mitigation"])
async def test_a_successor_that_must_not_be_cancelled_keeps_the_run(tmp_path, label):
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    scene.add("8", label)
    facts = Facts(name="train", user="alice", dependency="afterany:7(unfulfilled)")
    scene.slurm.says["8"] = Seen(State.PENDING, "PENDING", "200", facts, "squeue")
    result = await scene.sweep()
    await scene.deliver()
    await scene.act(result.waiting)
    assert scene.slurm.asked == []
    why = "8, which waits for it, is labelled no-kill or spike-mitigation"
    assert scene.intents() == [(Stage.DROPPED, 0, why)]


async def test_a_label_that_comes_while_another_is_cancelled_counts(tmp_path):
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    scene.add("9")
    (tmp_path / "9.out").write_bytes(COLLAPSE)
    facts = Facts(name="other", user="alice", log_path=str(tmp_path / "9.out"), started_at=NOW)
    scene.slurm.says["9"] = Seen(State.RUNNING, "RUNNING", "100", facts, "squeue")
    await scene.sweep()
    await scene.deliver()
    (other,) = scene.store.find("9")
    chosen = replace(other.choices, labels_added=frozenset({"no-kill"}))
    cancel = scene.slurm.cancel

    async def slow(targets, *, timeout_s):
        scene.store.choose(other.id, chosen, classify(chosen, other.facts, "9"))
        return await cancel(targets, timeout_s=timeout_s)

    scene.slurm.cancel = slow
    await scene.act()
    assert scene.slurm.asked == [["7"]]
    assert [i.stage for i in scene.store.intents_of(other.id)] == [Stage.DROPPED]


async def test_a_log_of_two_running_jobs_cancels_neither(tmp_path):
    """One of them collapsed, and nobody can tell which."""
    scene = Scene(tmp_path, cancels=True)
    scene.add()
    scene.add("9")
    scene.slurm.says["9"] = scene.seen()
    await scene.whole()
    assert scene.slurm.asked == []
    assert {n.payload["body"].partition(";")[0] for n in scene.collapses()} == {
        "left running: another running job writes to the same log"
    }
    assert len(scene.collapses()) == 2


async def test_what_is_written_names_the_checkpoint_to_salvage_and_the_last_steps(tmp_path):
    scene = Scene(tmp_path)
    scene.add()
    await scene.whole()
    matter = scene.front_matter()
    (path,) = scene.logs.glob("*/*collapse*.md")
    saved = [step for step in matter["checkpoints"] if step < matter["step"]]
    assert matter["salvage_step"] == max(saved, default=None)
    text = path.read_text()
    assert "| step | reward |" in text
    assert f"| {matter['step']} |" in text
    assert "## End of the log" in text
