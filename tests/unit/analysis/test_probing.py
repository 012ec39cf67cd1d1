"""Which settings are new, and what a deep probe of one comes to."""

from dataclasses import replace

import pytest

from jobmond.analysis.probing import Probing, after, probing, untested
from jobmond.analysis.tried import (
    NOTHING_TRIED,
    Tried,
    completed_now,
    node_count,
    plain_setting,
    read_setting,
    same,
    setting_of,
    words_of,
)
from jobmond.model.observation import Facts
from jobmond.model.outcome import Followup, Signal
from jobmond.model.setting import Setting
from jobmond.model.state import Bucket, Severity, State
from tests.unit.builders import NOW, job

LINE = "sbatch -N 4 --gpus-per-node=8 --job-name=rl__a_r2 -d afterany:17 rl.sbatch --lr 1e-6"
DUE = Signal("deep-probe", Severity.INFO, "new setting (4 nodes): deep probe due", {})


def rl(*labels, run="rl__a", state=State.RUNNING, **facts):
    known = {"name": "rl__a_r2", "submit_line": LINE, "command": "/w/rl.sbatch", "nodes": "n[1-4]"}
    return job(
        bucket=Bucket.RL,
        run=run,
        state=state,
        labels=frozenset(labels),
        facts=Facts(**{**known, "gpus": 32, **facts}),
    )


class TestSettings:
    def test_what_differs_from_launch_to_launch_is_left_out(self):
        setting = setting_of(rl("model=Qwen3-8B", "agentic"))
        assert setting == Setting(
            submit="sbatch -N 4 --gpus-per-node=8 rl.sbatch --lr 1e-6",
            script="/w/rl.sbatch",
            nodes=4,
            gpus=32,
            named={"model": "Qwen3-8B"},
        )
        assert read_setting(plain_setting(setting)) == setting

    @pytest.mark.parametrize(
        "line",
        [
            "sbatch -N 4 --gpus-per-node=8 -J rl__a --dependency=afterok:1 rl.sbatch --lr 1e-6",
            "sbatch -N 4 --gpus-per-node=8 -Jrl__a_r9 -o x.out --time 1:00 rl.sbatch --lr 1e-6",
        ],
    )
    def test_another_launch_of_the_same(self, line):
        assert same(setting_of(rl()), setting_of(rl(submit_line=line)))

    @pytest.mark.parametrize(
        "change",
        [
            {"submit_line": LINE.replace("1e-6", "2e-6")},
            {"submit_line": LINE.replace("-N 4", "-N 8"), "nodes": "n[1-8]"},
            {"command": "/w/other.sbatch"},
            {"gpus": 16},
            {"nodes": "n[1-3]"},
        ],
    )
    def test_something_is_new(self, change):
        assert not same(setting_of(rl()), setting_of(rl(**change)))

    def test_labels_name_what_no_line_says(self):
        one, two = setting_of(rl("image=a.sif")), setting_of(rl("image=b.sif"))
        assert not same(one, two)
        assert same(one, setting_of(rl())), "nobody says which image that was"

    def test_a_name_inside_the_line_is_the_runs(self):
        lines = [f"sbatch /x/{name}.sbatch" for name in ("rl__a_r2", "rl__a_r3")]
        settings = [
            setting_of(rl(name=name, submit_line=line, command=None))
            for name, line in zip(("rl__a_r2", "rl__a_r3"), lines, strict=True)
        ]
        assert settings[0].submit == "sbatch /x/rl__a.sbatch"
        assert same(*settings)

    def test_nothing_in_common_is_not_the_same(self):
        assert not same(Setting(nodes=4), Setting(nodes=4))
        assert not same(Setting(submit="a"), Setting(script="b"))

    def test_only_rl_and_only_what_can_be_told_apart(self):
        assert setting_of(job()) is None
        assert setting_of(rl(submit_line=None, command=None)) is None

    @pytest.mark.parametrize(
        ("nodes", "count"),
        [
            ("n1", 1), ("n[1-4]", 4), ("n[1-4,7],login1", 6), ("a1,b2", 2), ("n[001-128]", 128),
            ("gpu[1-2]-ib,gpu[5-6]-ib", 4), ("n[1-x]", None), ("", None), ("n[5-1]", None),
        ],
    )  # fmt: skip
    def test_nodes_are_counted(self, nodes, count):
        assert node_count(nodes) == count

    def test_in_words(self):
        assert words_of(setting_of(rl("model=q"))) == "4 nodes, 32 GPUs, model q"
        assert words_of(Setting(script="/w/rl.sbatch")) == "/w/rl.sbatch"


class TestProbes:
    def begun(self, tried=NOTHING_TRIED, one=None):
        return probing(one or rl(), [DUE], tried, now=NOW)

    def test_one_a_setting(self):
        first = self.begun()
        (owed,) = first.opened
        assert (first.standing, owed.kind, owed.ref) == ("due", "deep-probe", "lab/4711")
        assert owed.evidence["setting"] == plain_setting(setting_of(rl()))
        later = self.begun(after(NOTHING_TRIED, first))
        assert later == Probing("due")
        other = self.begun(after(NOTHING_TRIED, first), rl(gpus=16))
        assert len(other.opened) == 1

    def probes(self, **changes):
        (owed,) = self.begun().opened
        return Tried(probes=(replace(owed, id=3, **changes),))

    @pytest.mark.parametrize("verdict", ["kill", "no-kill"])
    def test_a_verdict_is_kept(self, verdict):
        tried = self.probes(state="closed", verdict=verdict, closed_by="alice")
        assert untested(rl(), tried) is None
        assert probing(rl(), [], tried, now=NOW) == Probing(verdict)
        assert untested(rl(gpus=16), tried) is not None

    def test_a_completed_run_ends_it(self):
        step = probing(rl(state=State.COMPLETED), [], self.probes(), now=NOW)
        (done,) = step.closed
        assert (done.id, done.state, done.closed_by) == (3, "closed", "jobmond")
        assert done.note == "a run of its setting completed: lab/4711"
        assert untested(rl(), Tried(completed=completed_now([rl(state=State.COMPLETED)]))) is None

    @pytest.mark.parametrize("state", [State.FAILED, State.TIMEOUT, State.CANCELLED, State.LOST])
    def test_no_other_end_does(self, state):
        assert probing(rl(state=state), [], self.probes(), now=NOW).closed == ()
        assert completed_now([rl(state=state)]) == []

    def test_the_label_ends_it(self):
        (done,) = probing(rl("tested"), [], self.probes(), now=NOW).closed
        assert done.note == "lab/4711 is labelled as tested"

    def test_a_smoke_test_is_new_whatever_ran_before(self):
        tried = Tried(completed=[setting_of(rl())])
        assert untested(rl(), tried) is None
        assert untested(rl("smoke"), tried) == replace(setting_of(rl()), smoke="rl__a")

    def test_a_smoke_test_proves_nothing_of_other_runs(self):
        tried = Tried(completed=[setting_of(rl("smoke"))])
        assert untested(rl(), tried) is not None

    def test_what_a_stale_job_stands_at_stays(self):
        stale = replace(rl(), stale=True, probe="due")
        assert probing(stale, [], NOTHING_TRIED, now=NOW).standing == "due"

    def test_other_jobs_have_none(self):
        assert probing(job(), [], self.probes(), now=NOW) == Probing()
        assert isinstance(self.probes().probes[0], Followup)
