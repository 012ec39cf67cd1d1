"""Jobs that write trials, swept over time: numbers, checks, tables and every rule at its edge."""

import shutil
from dataclasses import replace

import pytest

from jobmond import registry
from jobmond.backends._trees import TreeReader
from jobmond.desk.answers import followup_row
from jobmond.model.job import Classified
from jobmond.model.observation import LogTail, Read, Unavailable
from jobmond.model.state import Bucket, State
from jobmond.reports.document import job_object
from jobmond.reports.evals import lines as eval_lines
from jobmond.reports.view import View
from jobmond.sweep.conclude import Terms
from jobmond.transports.local import LocalTransport
from tests.integration.test_sweep import Scene
from tests.trees import put, result
from tests.unit.builders import NOW, seen

TRIALS = (
    "eval-stall", "engine-idle", "zombie", "instant-fail", "auth-failures", "dead-engine",
    "stranded-traces", "hung-chunk", "no-trials", "completion-mismatch",
)  # fmt: skip
STATS = (
    "INFO 11-29 {at:%H:%M:%S} [loggers.py:248] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
    "Running: {running} reqs, Waiting: 0 reqs, GPU KV cache usage: 0.2%\n"
)


class Clocked(TreeReader):
    """Reads real files whose times are of the test's clock: ages are as the test says."""

    broken = None
    last = None

    async def read_trees(self, asks, *, now, timeout_s):
        if self.broken is not None:
            return {ask.native_id: Unavailable(self.broken) for ask in asks}
        found = await super().read_trees(asks, now=now, timeout_s=timeout_s)
        return {name: self._aged(reading, now) for name, reading in found.items()}

    async def read_remains(self, paths, *, now, timeout_s):
        if self.broken is not None:
            return {path: Unavailable(self.broken) for path in paths}
        return await super().read_remains(paths, now=now, timeout_s=timeout_s)

    def _aged(self, reading, now):
        if not isinstance(reading, Read):
            return reading
        last = self.last if reading.value.trials.last_result_at else None
        trials = replace(reading.value.trials, last_result_at=last)
        return Read(replace(reading.value, trials=trials), reading.at)


class Trialled:
    """One job of trials on a cluster, its files on this host."""

    def __init__(self, tmp_path, bucket):
        self.tree = tmp_path / "work" / "jobs" / "harbor-run"
        self.tree.mkdir(parents=True)
        (self.tree / "job.log").touch()
        self.scene = Scene(tmp_path)
        self.trees = Clocked(LocalTransport())
        self.scene.cluster = replace(self.scene.cluster, trees=self.trees)
        rules = tuple(registry.rules[name]() for name in TRIALS)
        sort = self._classify(bucket)
        self.scene.sweeper = replace(
            self.scene.sweeper, terms=Terms(rules, ("news",), "/agent_logs"), classify=sort
        )
        self.scene.add("7", name="harbor-run", bucket=bucket)
        self.started_at = NOW
        self.workdir = str(tmp_path / "work")
        self.count = 0

    def _classify(self, bucket):
        def sort(*_):
            return Classified(bucket, bucket.value, "harbor-run", frozenset())

        return sort

    def ends(self, n=1, **changes):
        """Trials that end now."""
        for _ in range(n):
            name = f"t{self.count:03d}__aaaaaaa"
            put(self.tree / name, result(name, **changes))
            self.count += 1
        self.trees.last = self.scene.clock.at

    def plans(self, total):
        put(self.tree, {"n_total_trials": total, "stats": {"n_trials": 0}})

    def says(self, text):
        at = self.scene.clock.at
        tail = text.encode()
        self.scene.far.logs["7"] = Read(LogTail("/l", len(tail), 1, at, 0, tail), at)

    async def after(self, minutes, state=State.RUNNING):
        """A sweep so many minutes later; what it told of signals."""
        before = len(self.signals())
        self.scene.clock.later(minutes - 15)
        facts = {"started_at": self.started_at, "workdir": self.workdir}
        await self.scene.sweep(_7=seen(state, **facts))
        return self.signals()[before:]

    def signals(self):
        told = self.scene.store.events(limit=1000)
        return [
            (one.type, one.payload["signal"]["rule"])
            for one in told
            if one.type in ("signal", "cleared")
        ]

    def job(self):
        return self.scene.job("lab/7")

    def shown(self):
        return job_object(self.job(), self.scene.clock.at)


@pytest.fixture
def evaluation(tmp_path):
    return Trialled(tmp_path, Bucket.EVAL)


@pytest.fixture
def generation(tmp_path):
    return Trialled(tmp_path, Bucket.DATAGEN)


class TestAnEvaluation:
    async def test_its_numbers_are_in_the_report(self, evaluation):
        evaluation.plans(10)
        evaluation.ends(2)
        evaluation.ends(exception_info={"exception_type": "AgentTimeoutError"},
                        verifier_result=None)  # fmt: skip
        await evaluation.after(15)
        shown = evaluation.shown()
        assert shown["metrics"]["trials_done"] == 3
        assert shown["metrics"]["trials_total"] == 10
        assert shown["metrics"]["pass_rate"] == pytest.approx(2 / 3)
        assert (shown["top_exception"], shown["avg_turns_source"]) == (
            "AgentTimeoutError",
            "episodes",
        )
        assert (shown["phase"], shown["trend"]) == ("training", "healthy")
        assert shown["infra"] == {"engine": None, "trials": True}
        table = eval_lines([shown], View(NOW))
        assert "3/10" in table[3]
        assert "AgentTO" in table[3]

    async def test_only_what_is_new_is_read_again_after_a_restart(self, evaluation):
        evaluation.plans(10)
        evaluation.ends(3)
        await evaluation.after(15)
        memory = evaluation.scene.store.trees([evaluation.job().id])
        assert len(memory) == 1
        evaluation.ends(1)
        await evaluation.after(15)
        assert evaluation.job().work.trials.done == 4
        assert evaluation.job().work.tree == str(evaluation.tree)

    async def test_an_hour_without_a_result_is_a_stall_and_a_result_ends_it(self, evaluation):
        evaluation.plans(10)
        evaluation.ends(3)
        assert await evaluation.after(59) == []
        assert await evaluation.after(2) == [("signal", "eval-stall")]
        assert await evaluation.after(15) == []
        evaluation.ends(1)
        assert await evaluation.after(15) == [("cleared", "eval-stall")]

    async def test_timeouts_at_the_hard_tail_are_no_alarm(self, evaluation):
        evaluation.plans(40)
        timed_out = {"exception_info": {"exception_type": "AgentTimeoutError"}}
        evaluation.ends(10)
        for _ in range(4):
            evaluation.ends(5, **timed_out)
            assert await evaluation.after(50) == []

    async def test_all_done_and_still_running_is_a_zombie(self, evaluation):
        evaluation.plans(3)
        evaluation.ends(3)
        assert await evaluation.after(9) == []
        assert await evaluation.after(2) == [("signal", "zombie")]
        (signal,) = evaluation.shown()["signals"]
        assert signal["action"] == "cancel"
        told = await evaluation.after(15, State.COMPLETED)
        assert ("signal", "completion-mismatch") not in told
        assert evaluation.shown()["scores"] == [{"name": "harbor-run", "value": 100.0}]

    async def test_trials_that_fail_at_once(self, evaluation):
        evaluation.plans(100)
        evaluation.ends(4, agent_result=None, finished_at="2026-07-14T09:00:22")
        assert await evaluation.after(15) == []
        evaluation.ends(1, agent_result=None, finished_at="2026-07-14T09:00:22")
        assert await evaluation.after(15) == [("signal", "instant-fail")]

    async def test_trials_that_are_refused(self, evaluation):
        evaluation.plans(100)
        refused = {"exception_info": {"exception_type": "DaytonaAuthenticationError"}}
        evaluation.ends(2, **refused)
        assert await evaluation.after(15) == []
        evaluation.ends(1, **refused)
        assert await evaluation.after(15) == [("signal", "auth-failures")]

    async def test_an_engine_that_nobody_asks(self, evaluation):
        evaluation.plans(100)
        clock = evaluation.scene.clock
        busy = STATS.format(at=clock.at, running=3)
        clock.later(1)
        evaluation.says(busy + STATS.format(at=clock.at, running=0))
        evaluation.ends(1)
        assert await evaluation.after(8) == []
        assert await evaluation.after(1) == [("signal", "engine-idle")]
        assert evaluation.shown()["infra"]["engine"] is False

    async def test_a_fetch_that_fails_raises_nothing_and_clears_nothing(self, evaluation):
        evaluation.plans(10)
        evaluation.ends(3)
        assert await evaluation.after(15) == []
        evaluation.trees.broken = "timed out"
        assert await evaluation.after(600) == []
        shown = evaluation.shown()
        assert shown["metrics"]["trials_done"] == 3, "what was known stands"
        assert shown["trend"] == "trials not read: timed out"
        evaluation.trees.broken = None
        assert await evaluation.after(15) == [("signal", "eval-stall")]
        evaluation.trees.broken = "timed out"
        assert await evaluation.after(15) == []

    async def test_no_tree_at_all_raises_nothing(self, evaluation):
        evaluation.workdir = "/nowhere"
        assert await evaluation.after(600) == []
        assert evaluation.shown()["metrics"] == {}


class TestGeneration:
    async def test_one_turn_a_trial_is_a_dead_engine(self, generation):
        generation.plans(100)
        one = {"agent_result": {"n_output_tokens": 9, "metadata": {"n_episodes": 1}}}
        generation.ends(9, **one)
        assert await generation.after(15) == []
        generation.ends(1, **one)
        assert await generation.after(15) == [("signal", "dead-engine")]
        assert generation.shown()["metrics"]["avg_turns"] == 1.0

    async def test_log_and_trials_that_stand_still_are_a_hung_chunk(self, generation):
        generation.plans(100)
        generation.ends(3)
        generation.says("running\n")
        assert await generation.after(119) == []
        assert await generation.after(1) == [("signal", "hung-chunk")]

    async def test_a_time_limit_strands_traces_that_were_not_exported(self, generation):
        generation.plans(100)
        generation.ends(3)
        generation.says("running\n")
        await generation.after(15)
        told = await generation.after(15, State.TIMEOUT)
        assert told == [("signal", "stranded-traces")]

    async def test_exported_traces_are_not_stranded(self, generation):
        generation.plans(100)
        generation.ends(3)
        generation.says("[traces] Exported 3 rows from x\n")
        await generation.after(15)
        assert await generation.after(15, State.TIMEOUT) == []


async def test_a_budget_that_is_used_up_reads_no_trees(evaluation):
    evaluation.plans(10)
    evaluation.ends(3)
    evaluation.scene.cluster = replace(evaluation.scene.cluster, budget_s=0.5)
    assert await evaluation.after(15) == []
    assert evaluation.job().work.error == "budget"


class TestWhatIsOwed:
    def owed(self, trialled, *, every=True):
        return [(f.kind, f.state) for f in trialled.scene.store.followups(all=every)]

    async def test_a_cleanup_stays_until_the_tree_is_gone(self, evaluation):
        evaluation.plans(3)
        evaluation.ends(3)
        await evaluation.after(5)
        await evaluation.after(1, State.COMPLETED)
        assert self.owed(evaluation) == [("cleanup", "open")]
        for _ in range(2):
            await evaluation.after(15, State.COMPLETED)
            assert self.owed(evaluation) == [("cleanup", "open")]
        shutil.rmtree(evaluation.tree)
        evaluation.trees.broken = "connection refused"
        await evaluation.after(15, State.COMPLETED)
        assert self.owed(evaluation) == [("cleanup", "open")], "nobody saw it gone"
        evaluation.trees.broken = None
        await evaluation.after(15, State.COMPLETED)
        assert self.owed(evaluation) == [("cleanup", "closed")]
        (done,) = evaluation.scene.store.followups(all=True)
        assert done.note.startswith("the tree is gone; free inodes ")

    async def test_a_doubtful_completion_holds_the_cleanup(self, evaluation):
        evaluation.plans(10)
        evaluation.ends(3)
        await evaluation.after(5)
        assert await evaluation.after(1, State.COMPLETED) == [("signal", "completion-mismatch")]
        (one,) = evaluation.scene.store.followups()
        assert one.evidence["held"] == "completed, but only 3/10 trials done"
        assert followup_row(one)["state"] == "held"

    async def test_what_closes_by_itself_is_told(self, evaluation):
        evaluation.plans(3)
        evaluation.ends(3)
        await evaluation.after(5)
        await evaluation.after(1, State.COMPLETED)
        await evaluation.after(15, State.COMPLETED)
        shutil.rmtree(evaluation.tree)
        await evaluation.after(15, State.COMPLETED)
        told = [n for n in evaluation.scene.store.events(limit=99) if n.type == "followup"]
        assert [(n.payload["followup"]["kind"], n.payload["followup"]["state"]) for n in told] == [
            ("cleanup", "open"),
            ("cleanup", "closed"),
        ]
        number = evaluation.scene.store.followups(all=True)[0].id
        assert {n.payload["followup"]["id"] for n in told} == {number}
        assert told[1].payload["job"]["name"] == "harbor-run"

    async def test_a_zombie_is_owed_until_it_is_over(self, evaluation):
        evaluation.plans(3)
        evaluation.ends(3)
        await evaluation.after(5)
        await evaluation.after(20)
        await evaluation.after(15)
        assert self.owed(evaluation) == [("zombie", "open")]
        await evaluation.after(15, State.CANCELLED)
        assert self.owed(evaluation) == [("zombie", "closed")]

    async def test_stranded_traces_are_to_be_consolidated_by_hand(self, generation):
        generation.plans(100)
        generation.ends(3)
        generation.says("running\n")
        await generation.after(15)
        await generation.after(15, State.TIMEOUT)
        assert self.owed(generation) == [("consolidate", "open")]
        (owed,) = generation.scene.store.followups(all=False)
        assert owed.evidence["path"] == str(generation.tree)
        generation.scene.store.close_followup(
            owed.id, by="alice", verdict=None, note="done", now=NOW
        )
        await generation.after(15, State.TIMEOUT)
        assert self.owed(generation) == [("consolidate", "closed")]
