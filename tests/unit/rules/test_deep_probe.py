"""A setting that nobody has tried."""

from jobmond.model.setting import Setting
from jobmond.model.state import Bucket, Severity, State
from jobmond.ports import Case
from jobmond.rules.deep_probe import DeepProbe
from tests.unit.builders import NOW, job

NEW = Setting(submit="sbatch rl.sbatch", nodes=4, gpus=32)


def signals(setting=NEW, **changes):
    one = job(**{"bucket": Bucket.RL, **changes})
    return list(DeepProbe().judge(Case(one, one, NOW, untested=setting)))


def test_a_run_in_it_is_marked():
    (signal,) = signals()
    assert (signal.severity, signal.action) == (Severity.INFO, "inspect")
    assert signal.title == "new setting (4 nodes, 32 GPUs): deep probe due"
    assert signal.evidence == {"submit": "sbatch rl.sbatch", "nodes": 4, "gpus": 32}


def test_a_smoke_test_is_called_one():
    (signal,) = signals(Setting(submit="x", smoke="rl__a"))
    assert signal.title == "smoke test: deep probe due"


def test_nobody_else_is():
    assert signals(None) == []
    assert signals(bucket=Bucket.SFT) == []
    assert signals(state=State.PENDING) == []
    assert signals(state=State.FAILED) == []
    assert signals(labels=frozenset({"tested"})) == []
    assert signals(labels=frozenset({"service"})) == []
