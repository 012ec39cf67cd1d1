"""Every state a Slurm job can take, on one cluster under one watch: each change is told once.

The slow ones (a walltime of a minute, two minutes until a requeued job may start, a node that
stops answering) run side by side, so the whole takes as long as the slowest.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.live.lab import Lab, Submission, User
from tests.live.options import LabOptions
from tests.live.product import Event, Product, doubled, ref

# The story below takes about three minutes, all in the setup of whichever test comes first.
pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

GATE = "until [ -e ~/gate-{} ]; do sleep 0.2; done\n"
EATER = "x=$(head -c 300000000 /dev/zero | tr '\\0' x); sleep 10; echo ${#x}"
ENDED = (
    "good",
    "exit3",
    "exit137",
    "signal",
    "timeout",
    "memory",
    "cancelled",
    "cancelled-early",
    "node-fail",
    "node-requeue",
    "requeue",
    "array",
    "chain-a",
    "chain-b",
    "unseen-a",
    "held",
    "never",
    "preempted",
)
FAILED = (
    "exit3",
    "exit137",
    "signal",
    "timeout",
    "memory",
    "node-fail",
    "array",
)
# What was pushed out for good is explained like a failure.
EXPLAINED = (*FAILED, "preempted")

START = ("transition", "PENDING", "RUNNING")


def end(state: str) -> tuple[str, str, str]:
    return ("transition", "RUNNING", state)


@dataclass
class Story:
    """One cluster, one jobmond, and the native ids of the jobs by what becomes of them."""

    lab: Lab
    user: User
    product: Product
    ids: dict[str, str] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def told(self, name: str) -> list[tuple[str, str | None, str | None]]:
        return self.product.told(self.ids[name])

    def last(self, name: str) -> Event:
        return self.product.events_of(self.ids[name])[-1]

    def job(self, name: str) -> dict[str, object]:
        return self.product.jobs()[self.ids[name]]

    def open_gate(self, name: str) -> None:
        (self.user.home / f"gate-{name}").touch()

    def reach(self, timeout_s: float = 60.0, **expected: str) -> None:
        """Sweep until these jobs have these states; what takes too long is a test's to tell."""
        wanted = {name.replace("_", "-"): state for name, state in expected.items()}

        def missing() -> dict[str, str | None]:
            states = self.product.states()
            found = {name: states.get(self.ids[name]) for name in wanted}
            return {name: state for name, state in found.items() if state != wanted[name]}

        try:
            self.product.swept_until(lambda: not missing(), timeout_s, what=f"{wanted}")
        except TimeoutError:
            self.missed.append(f"not {wanted} but {missing()}")


def gated(name: str, gate: str, then: str, *options: str) -> Submission:
    """A job of its own name, since names make runs, that waits for a gate and then goes on."""
    return Submission(GATE.format(gate) + then, (f"--job-name={name}", *options))


def submit(story: Story) -> None:
    """All jobs, while the partition takes none: each is seen waiting first."""
    lab, user, ids = story.lab, story.user, story.ids
    n5, n6 = lab.nodes[4], lab.nodes[5]
    first = f"--nodelist={lab.nodes[0]}"
    jobs = {
        "good": gated("good", "end", "exit 0"),
        "exit3": gated("exit3", "end", "exit 3"),
        "exit137": gated("exit137", "end", "exit 137"),
        "signal": gated("signal", "end", "kill -SEGV $$"),
        "timeout": Submission("echo begun; sleep 600", ("--time=1", "--job-name=timeout")),
        "memory": gated("memory", "end", EATER, "--mem=50"),
        "cancelled": Submission("sleep 600", ("--job-name=cancelled",)),
        "cancelled-early": Submission("sleep 600", ("--begin=now+1hour",)),
        "node-fail": Submission("sleep 600", (f"--nodelist={n5}", "--no-requeue")),
        "node-requeue": gated(
            "node-requeue", "requeued", "exit 0", f"--nodelist={n6}", "--requeue"
        ),
        "requeue": gated("requeue", "requeued", "exit 0", "--requeue", first),
        "held": gated("held", "end", "exit 0", "--hold"),
        "preempted": Submission("sleep 600", ("-p", "scav", f"--nodelist={n6}", "-n15")),
        "array": Submission(
            '[ "$SLURM_ARRAY_TASK_ID" = 2 ] && exit 3\n' + GATE.format("array"),
            ("--array=0-3", "--job-name=array"),
        ),
    }
    names = list(jobs)
    ids |= dict(zip(names, lab.sbatch_many(user, [jobs[name] for name in names]), strict=True))
    ids["never"] = lab.sbatch(user, "true", f"--dependency=afterok:{ids['exit3']}")
    submit_chains(story)


def submit_chains(story: Story) -> None:
    """Two chains of copies: of the first both links are tracked, of the second only one."""
    lab, user, ids = story.lab, story.user, story.ids
    for name in ("chain", "unseen"):
        script = user.home / f"{name}.sh"
        script.write_text(
            f"#!/bin/sh\n[ -e ~/{name}-again ] || {{ touch ~/{name}-again; sleep 600; }}\n"
            + GATE.format("chained")
        )
        script.chmod(0o755)

        def link(*options: str, name: str = name, script: Path = script) -> str:
            argv = ["sbatch", "--parsable", f"--job-name={name}", *options, str(script)]
            return lab.run(argv, user=user).checked().out.strip()

        ids[f"{name}-a"] = link("--time=1")
        ids[f"{name}-b"] = link(f"--dependency=afterany:{ids[f'{name}-a']}")


def first_moves(story: Story) -> None:
    """Waiting, running, and the ends that come at once."""
    lab, product, ids = story.lab, story.product, story.ids
    product.add(*(native for name, native in ids.items() if name != "unseen-b"))
    product.sweep_well()
    lab.scontrol("release", ids["held"])
    product.sweep_well(2)
    lab.scontrol("update", "PartitionName=batch", "State=UP")
    lab.scontrol("update", "PartitionName=scav", "State=UP")
    for name in ("timeout", "cancelled", "node-fail", "node-requeue", "requeue", "chain-a"):
        lab.wait_for_state(ids[name], "RUNNING")
    for name in ("good", "exit3", "exit137", "signal", "memory", "held", "preempted", "unseen-a"):
        lab.wait_for_state(ids[name], "RUNNING")
    lab.kill("slurmd.n5")  # takes the lab's slurmd_timeout_s to become NODE_FAIL
    story.reach(array="RUNNING")
    story.open_gate("end")
    lab.scancel(ids["cancelled"])
    lab.scancel(ids["cancelled-early"])
    lab.scontrol("requeue", ids["requeue"])
    # One node for two: the job of the high partition takes it from the one that may be cancelled.
    lab.sbatch(story.user, "true", "-p", "high", f"--nodelist={lab.nodes[5]}", "-n15")
    ends = {"good": "COMPLETED", "exit3": "FAILED", "exit137": "FAILED", "signal": "FAILED"}
    ends |= {"held": "COMPLETED", "cancelled": "CANCELLED", "cancelled_early": "CANCELLED"}
    ends |= {"preempted": "PREEMPTED", "requeue": "PENDING"}
    story.reach(**ends)
    lab.scontrol("update", f"NodeName={lab.nodes[5]}", "State=DOWN", "Reason=lab")
    story.reach(node_requeue="PENDING")
    # Refused where the node has come back by itself already.
    lab.run(["scontrol", "update", f"NodeName={lab.nodes[5]}", "State=RESUME"])
    lab.start("slurmd.n6")


def slow_moves(story: Story) -> None:
    """The walltimes, the lost node and the requeued jobs' second lives."""
    lab, ids = story.lab, story.ids
    # The successors are first seen running, as on all but one in a thousand sweeps.
    for name in ("chain-b", "unseen-b"):
        lab.wait_for_state(ids[name], "RUNNING", timeout_s=180)
    ends = {"timeout": "TIMEOUT", "chain_a": "TIMEOUT", "unseen_a": "TIMEOUT"}
    ends |= {"node_fail": "NODE_FAIL", "chain_b": "RUNNING", "unseen_b": "RUNNING"}
    story.reach(180, **ends)
    story.open_gate("chained")
    story.open_gate("array")
    ends = {"chain_b": "COMPLETED", "unseen_b": "COMPLETED", "array": "FAILED"}
    story.reach(**ends)
    lives = {"requeue": "RUNNING", "node_requeue": "RUNNING"}
    story.reach(240, **lives)
    story.open_gate("requeued")
    lives = {"requeue": "COMPLETED", "node_requeue": "COMPLETED"}
    story.reach(**lives)
    lab.scancel(ids["never"])
    story.reach(never="CANCELLED")
    lab.start("slurmd.n5")


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    """Everything happens here; the tests look at what was told of it."""
    with Lab(LabOptions(nodes=6, users=1)) as lab:
        product = Product(lab, lab.user)
        story = Story(lab, lab.user, product)
        try:
            product.start()
            for partition in ("batch", "scav"):
                lab.scontrol("update", f"PartitionName={partition}", "State=DOWN")
            submit(story)
            first_moves(story)
            slow_moves(story)
            product.sweep_well(4)  # also past the sweeps in which a cause is still looked for
            yield story
        finally:
            product.close()


def test_every_state_was_reached(story: Story) -> None:
    assert story.missed == []


def test_a_job_that_completes(story: Story) -> None:
    assert story.told("good") == [START, end("COMPLETED")]
    assert story.job("good")["exit_code"] == 0
    assert story.last("good").whole["severity"] == "info"


@pytest.mark.parametrize(("name", "code"), [("exit3", 3), ("exit137", 137)])
def test_a_job_that_fails_by_its_exit_code(story: Story, name: str, code: int) -> None:
    assert story.told(name) == [START, end("FAILED")]
    assert story.job(name)["exit_code"] == code
    assert story.last(name).whole["severity"] == "alarm"


def test_a_job_that_dies_of_a_signal(story: Story) -> None:
    assert story.told("signal") == [START, end("FAILED")]
    assert story.job("signal")["signal"] == signal.SIGSEGV


def test_a_job_over_its_walltime(story: Story) -> None:
    assert story.told("timeout") == [START, end("TIMEOUT")]
    assert story.last("timeout").whole["severity"] == "alarm"


def test_a_job_over_its_memory(story: Story) -> None:
    expected = "OUT_OF_MEMORY" if story.lab.cgroup else "FAILED"
    assert story.told("memory") == [START, end(expected)]


def test_cancelled_jobs(story: Story) -> None:
    assert story.told("cancelled") == [START, end("CANCELLED")]
    assert story.told("cancelled-early") == [("transition", "PENDING", "CANCELLED")]
    assert story.last("cancelled").whole["severity"] == "info"


def test_a_job_that_another_one_pushed_out(story: Story) -> None:
    assert story.told("preempted") == [START, end("PREEMPTED")]
    assert story.last("preempted").whole["severity"] == "watch"


def test_a_job_whose_node_stops_answering(story: Story) -> None:
    assert story.told("node-fail") == [START, end("NODE_FAIL")]
    assert story.last("node-fail").whole["severity"] == "alarm"


@pytest.mark.parametrize("name", ["node-requeue", "requeue"])
def test_a_requeued_job_goes_on_under_its_ref(story: Story, name: str) -> None:
    events = story.product.events_of(story.ids[name])
    assert [event.words for event in events if event.type != "restart"] == [
        START,
        START,
        end("COMPLETED"),
    ]
    (restart,) = (event for event in events if event.type == "restart")
    assert events.index(restart) == 1
    assert restart.after == "PENDING"
    assert restart.whole["successor"] == ref(story.ids[name])
    assert restart.whole["severity"] == "info"
    # A job that is merely put back has lost its place like one that was pushed out.
    assert restart.before == {"node-requeue": "NODE_FAIL", "requeue": "PREEMPTED"}[name]
    assert story.job(name)["life"] == 2
    rows = [job for job in story.product.status()["jobs"] if job["ref"] == restart.ref]
    assert len(rows) == 1


def test_an_array_tells_its_first_failure_and_its_end(story: Story) -> None:
    told = story.told("array")
    assert told[-1] == end("FAILED")
    failures = story.product.events_of(story.ids["array"])[:-1]
    assert [event.whole["severity"] for event in failures].count("alarm") == 1
    assert [event.words for event in failures if event.whole["severity"] == "info"] == [START]
    tasks = story.job("array")["tasks"]
    assert isinstance(tasks, dict)
    assert (tasks["total"], tasks["by_state"]) == (4, {"COMPLETED": 3, "FAILED": 1})
    assert tasks["failed"] == [f"{story.ids['array']}_2"]


@pytest.mark.parametrize("name", ["chain", "unseen"])
def test_a_chain_restart_is_one_event(story: Story, name: str) -> None:
    first, second = f"{name}-a", f"{name}-b"
    assert story.told(first) == [START, ("restart", "RUNNING", "RUNNING")]
    restart = story.last(first).whole
    assert restart["successor"] == ref(story.ids[second])
    assert restart["severity"] == "info"
    assert story.told(second) == [end("COMPLETED")]
    rows = story.product.jobs()
    before, after = rows[story.ids[first]], rows[story.ids[second]]
    assert (before["state"], before["tracked"]) == ("TIMEOUT", False)
    assert before["successor"] == after["ref"]
    assert (before["run"], before["life"]) == (after["run"], 1)
    assert after["life"] == 2


def test_a_held_job_is_remarked_once_and_the_remark_goes(story: Story) -> None:
    events = story.product.events_of(story.ids["held"])
    remarks = [(one.type, one.whole["signal"]["rule"]) for one in events if "signal" in one.whole]
    assert remarks == [("signal", "held"), ("cleared", "held")]
    moves = [one.words for one in events if one.type == "transition"]
    assert moves == [("transition", None, "PENDING"), START, end("COMPLETED")]
    assert len(events) == 5


def test_a_dependency_that_can_never_be_met_is_remarked_once(story: Story) -> None:
    events = story.product.events_of(story.ids["never"])
    remarks = [(one.type, one.whole["signal"]["rule"]) for one in events if "signal" in one.whole]
    assert remarks == [("signal", "dependency-never-satisfied")]
    moves = [one.words for one in events if one.type == "transition"]
    assert moves == [("transition", "PENDING", "CANCELLED")]


def test_nothing_is_told_twice_and_nothing_of_strangers(story: Story) -> None:
    events = story.product.events()
    assert doubled(events) == []
    known = {ref(native) for native in story.ids.values()}
    assert {event.ref for event in events if event.type != "cluster"} <= known
    assert story.product.cluster_told() == []


def test_what_is_over_has_left_tracking_and_is_remembered(story: Story) -> None:
    status = story.product.status()
    rows = {job["native_id"]: job for job in status["jobs"]}
    assert [name for name in ENDED if rows[story.ids[name]]["tracked"]] == []
    assert status["summary"]["tracked"] == 0
    history = json.loads(story.product.ctl("history", "--json").checked().out)["jobs"]
    assert {story.ids[name] for name in ENDED} <= {job["native_id"] for job in history}


def test_every_failure_has_one_entry_and_nothing_else_has(story: Story) -> None:
    product = story.product
    named = {name: story.last(name).whole["agent_log"] for name in EXPLAINED}
    assert {str(path) for path in product.entries()} == set(named.values())
    for name, path in named.items():
        text = Path(path).read_text()
        assert text.startswith("---\n")
        assert story.ids[name] in Path(path).name
        assert str(story.job(name)["state"]) in text


def test_a_second_daemon_on_the_same_database_tells_nothing_again(story: Story) -> None:
    before = story.product.events()
    story.product.stop()
    story.product.start()
    story.product.sweep_well(2)
    assert story.product.events() == before
