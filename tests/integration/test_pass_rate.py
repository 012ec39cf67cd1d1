"""The pass rate of the last hundred trials, handed from the tree to the rule over steps."""

import pytest

from jobmond.backends._trees import TreeReader
from jobmond.model.observation import Unavailable
from jobmond.transports.local import LocalTransport
from tests.integration.test_following import RULES, Scene
from tests.trees import put, result

LINE = (
    "step:{step} - actor/entropy:0.5 - actor/grad_norm:{grad} - actor/pg_loss:0.01 - "
    "critic/rewards/mean:0.4 - training/global_step:{step}\n"
)


class Breakable(TreeReader):
    broken = False

    async def read_trees(self, asks, *, now, timeout_s):
        if self.broken:
            return {ask.native_id: Unavailable("timed out") for ask in asks}
        return await super().read_trees(asks, now=now, timeout_s=timeout_s)


class Agentic:
    """An agentic RL run whose log and trials grow."""

    def __init__(self, tmp_path):
        self.tree = tmp_path / "jobs" / "train"
        self.tree.mkdir(parents=True)
        (self.tree / "job.log").touch()
        put(self.tree, {"n_total_trials": 400, "stats": {"n_trials": 0}})
        self.trees = Breakable(LocalTransport())
        self.scene = Scene(tmp_path, trees=self.trees)
        self.scene.add("7", labels_added=frozenset({"agentic"}))
        self.workdir, self.count, self.steps, self.text = str(tmp_path), 0, 0, ""

    def trials(self, n, reward):
        for _ in range(n):
            name = f"t{self.count:04d}__aaaaaaa"
            put(self.tree / name, result(name, verifier_result={"rewards": {"reward": reward}}))
            self.count += 1

    def logs(self, *grads):
        for grad in grads:
            self.steps += 1
            self.text += LINE.format(step=self.steps, grad=grad)
        self.scene.write("7", self.text.encode())

    async def sweep(self):
        await self.scene.sweep(_7=self.scene.seen("7", workdir=self.workdir))
        return [signal for signal in self.scene.told() if signal[0] == "rl-collapse"]


@pytest.fixture
def agentic(tmp_path):
    return Agentic(tmp_path)


async def test_it_is_the_second_signal_at_the_newest_step(agentic):
    assert RULES
    agentic.logs(*[0.1] * 11)
    agentic.trials(95, 0.0)
    assert await agentic.sweep() == []
    agentic.trials(5, 1.0)
    assert await agentic.sweep() == []
    work = agentic.scene.job("lab/7").work
    assert (work.recent_done, work.recent_passed) == (100, 5)
    agentic.logs(1.5)
    assert await agentic.sweep() == [("rl-collapse", 12)]
    (signal,) = [s for s in agentic.scene.job("lab/7").signals if s.rule == "rl-collapse"]
    assert signal.evidence["pass_rate"] == pytest.approx(0.05)


@pytest.mark.parametrize(("failed", "passed"), [(94, 5), (90, 10), (0, 100)])
async def test_fewer_trials_or_more_passes_are_none(agentic, failed, passed):
    agentic.logs(*[0.1] * 11)
    agentic.trials(failed, 0.0)
    agentic.trials(passed, 1.0)
    await agentic.sweep()
    agentic.logs(1.5)
    assert await agentic.sweep() == []


async def test_what_cannot_be_fetched_any_more_proves_nothing(agentic):
    agentic.logs(*[0.1] * 11)
    agentic.trials(100, 0.0)
    await agentic.sweep()
    agentic.trees.broken = True
    await agentic.sweep()
    agentic.logs(1.5)
    assert await agentic.sweep() == []


async def test_a_standard_run_without_a_tree_is_judged_by_its_steps_alone(agentic):
    agentic.scene.queue.says.clear()
    agentic.workdir = "/nowhere"
    agentic.logs(*[0.1] * 11, 1.5)
    assert await agentic.sweep() == []
    job = agentic.scene.job("lab/7")
    assert job.training.dialect == "verl"
    assert (job.note, job.work.trials, job.work.error) == (None, None, None)
