"""Deep probes over whole sweeps: one a setting, until a person or a completed run ends it."""

from dataclasses import replace

import pytest

from jobmond import registry
from jobmond.model.job import Classified
from jobmond.model.state import Bucket, State
from jobmond.reports.document import job_object
from jobmond.store import Store
from jobmond.sweep.conclude import Terms
from tests.integration.test_sweep import Scene
from tests.unit.builders import NOW, seen


class Probed:
    """RL runs of one setting on a cluster, swept with the rule that asks for deep probes."""

    def __init__(self, tmp_path):
        self.scene = Scene(tmp_path)
        rules = (registry.rules["deep-probe"](),)
        self.scene.sweeper = replace(
            self.scene.sweeper, terms=Terms(rules, ("news",), "/agent_logs"), classify=self._sort
        )

    def _sort(self, choices, facts, native_id, *_):
        labels = choices.labels_added - choices.labels_removed
        return Classified(Bucket.RL, "rl", facts.name or native_id, labels)

    async def sweep(self, **states):
        """States by id; their names are `a`, `b` … and their setting is the same."""
        for native_id in states:
            if not self.scene.store.find(native_id.strip("_")):
                self.scene.add(native_id.strip("_"))
        line = "sbatch -N 2 rl.sbatch"
        says = {
            key: seen(state, name=f"rl{key}", submit_line=line, node_count=2, gpus=16)
            for key, state in states.items()
        }
        await self.scene.sweep(**says)

    def owed(self):
        probes = [f for f in self.scene.store.followups(all=True) if f.kind == "deep-probe"]
        return [(f.ref, f.state, f.verdict) for f in probes]

    def standing(self, word):
        job = self.scene.job(word)
        return [s.rule for s in job.signals if s.cleared_at is None], job.probe

    def followups_told(self):
        told = self.scene.store.events(limit=1000)
        owed = [n.payload["followup"] for n in told if n.type == "followup"]
        return [one for one in owed if one["kind"] == "deep-probe"]


@pytest.fixture
def probed(tmp_path):
    return Probed(tmp_path)


class TestDeepProbes:
    RUNS = State.RUNNING

    async def test_a_new_setting_opens_one_however_many_run_in_it(self, probed):
        for _ in range(2):
            await probed.sweep(_1=self.RUNS, _2=self.RUNS)
        await probed.sweep(_1=self.RUNS, _2=self.RUNS, _3=self.RUNS)
        assert probed.owed() == [("lab/1", "open", None)]
        assert probed.standing("lab/3") == (["deep-probe"], "due")
        number = probed.scene.store.followups()[0].id
        assert probed.followups_told() == [{"id": number, "kind": "deep-probe", "state": "open"}]
        shown = job_object(probed.scene.job("lab/1"), NOW)
        assert shown["probe"] == "due"
        assert shown["signals"][0]["title"] == "new setting (2 nodes, 16 GPUs): deep probe due"

    async def test_a_failed_run_ends_it_for_nobody(self, probed):
        await probed.sweep(_1=self.RUNS)
        await probed.sweep(_1=State.FAILED)
        await probed.sweep(_2=self.RUNS)
        assert probed.owed() == [("lab/1", "open", None)]
        assert probed.standing("lab/2") == (["deep-probe"], "due")

    async def test_a_completed_run_ends_it_for_its_setting(self, probed):
        await probed.sweep(_1=self.RUNS, _2=self.RUNS)
        await probed.sweep(_1=State.COMPLETED, _2=self.RUNS)
        assert probed.owed() == [("lab/1", "closed", None)]
        assert probed.standing("lab/2") == ([], None)
        await probed.sweep(_2=self.RUNS, _3=self.RUNS)
        assert [state["state"] for state in probed.followups_told()] == ["open", "closed"]
        assert probed.standing("lab/3") == ([], None)

    async def test_a_persons_verdict_ends_it_and_is_shown(self, probed):
        await probed.sweep(_1=self.RUNS)
        (owed,) = probed.scene.store.followups()
        probed.scene.store.close_followup(
            owed.id, by="alice", verdict="no-kill", note="read the rollouts", now=NOW
        )
        await probed.sweep(_1=self.RUNS, _2=self.RUNS)
        assert probed.owed() == [("lab/1", "closed", "no-kill")]
        for word in ("lab/1", "lab/2"):
            assert probed.standing(word) == ([], "no-kill")

    async def test_it_survives_a_restart(self, probed, tmp_path):
        await probed.sweep(_1=self.RUNS)
        probed.scene.store.close()
        probed.scene.store = Store.open(f"sqlite:///{tmp_path / 'db'}")
        probed.scene.sweeper = replace(probed.scene.sweeper, memory=probed.scene.store)
        await probed.sweep(_1=self.RUNS, _2=self.RUNS)
        assert probed.owed() == [("lab/1", "open", None)]
        assert len(probed.followups_told()) == 1
