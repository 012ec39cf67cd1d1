"""What jobs leave beside their log: checkpoints, the trainer's own record, scores."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond import registry
from jobmond.analysis.banked import banked
from jobmond.analysis.outputs import output_places, saved_steps, wanted
from jobmond.backends._trees import TreeReader
from jobmond.backends._trees.outputs import completion, found_outputs
from jobmond.errors import TransientTransportError
from jobmond.model.job import Classified
from jobmond.model.observation import Facts, LogTail, NotApplicable, Read, Unavailable
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity, State
from jobmond.model.training import Training
from jobmond.model.trials import Bank, Completion, OutputAsk, Work
from jobmond.reports.collapse import salvage
from jobmond.reports.document import job_object
from jobmond.reports.show import show_text
from jobmond.reports.view import View
from jobmond.sweep.conclude import Terms
from jobmond.transports.local import LocalTransport
from tests.integration.test_sweep import Scene
from tests.unit.builders import NOW, at, job, seen

FOLDERS = Path(__file__).parents[1] / "transcripts" / "folders"
STEPS = {
    "skyrl_run/run/checkpoints": (10, (15,)),
    "verl_run": (20, (30,)),
    "nemo_rl_run": (10, ()),
    "prime_rl_run/checkpoints": (50, (60,)),
    "hf_run": (500, ()),
    "megatron_run": (500, ()),
}


async def look(want, *paths):
    reader = TreeReader(LocalTransport())
    ask = OutputAsk("1", want, tuple(map(str, paths)))
    return (await reader.read_outputs([ask], now=NOW, timeout_s=60))["1"]


@pytest.mark.parametrize("folder", STEPS)
async def test_banked_steps_are_those_that_are_complete(folder):
    found = await look("b", "/nowhere", FOLDERS / "checkpoints" / folder)
    banks = banked(found.value.places)
    complete, unfinished = STEPS[folder]
    assert banks.step == complete
    assert banks.unfinished == unfinished
    assert banks.paths[complete].startswith(str(FOLDERS / "checkpoints" / folder))


async def test_several_places_are_one_bank(tmp_path):
    for name, step in (("fresh", 10), ("resumed", 30)):
        folder = tmp_path / name / f"global_step_{step}"
        folder.mkdir(parents=True)
        (folder / "trainer_state.pt").touch()
    found = await look("b", tmp_path / "fresh", tmp_path / "resumed")
    assert banked(found.value.places).complete == (10, 30)


async def test_a_folder_with_a_thousand_checkpoints_costs_its_newest(tmp_path):
    for step in range(1000):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").touch()
    found = await look("b", tmp_path)
    (place,) = found.value.places
    assert sorted(place.steps, key=lambda n: int(n[11:])) == [
        f"checkpoint-{n}" for n in range(960, 1000)
    ]


async def test_hostile_names_are_no_steps_and_run_nothing(tmp_path):
    for name in ("global_step_5;touch x", "$(touch y)_7", "global_step_9\nstep_4"):
        (tmp_path / name).mkdir()
    found = await look("b", tmp_path)
    assert found.value.places[0].steps == {}
    assert {p.name for p in tmp_path.iterdir()}.isdisjoint({"x", "y"})


async def test_a_far_side_that_fails_tells_nothing():
    class Broken:
        async def run(self, script, *, timeout_s, max_bytes):
            raise TransientTransportError("connection lost")

    reader = TreeReader(Broken())
    asks = [OutputAsk("1", "b", ("/x",))]
    found = await reader.read_outputs(asks, now=NOW, timeout_s=60)
    assert found == {"1": Unavailable("connection lost")}
    (cut,) = found_outputs(b"\nM ask 0\n\nM dir /x\n", "M", 1)
    assert isinstance(cut, Unavailable)


class TestCompletion:
    @pytest.mark.parametrize(
        ("text", "wanted_"),
        [
            ('{"current_steps": 90, "total_steps": 100, "loss": 0.3}\n', Completion(90, 100)),
            ('{"current_steps": 100, "total_steps": 100, "loss": NaN}\n', Completion(100, 100, 1)),
            ('{"global_step": 7, "log_history": [{"loss": 1}], "max_steps": 9}', Completion(7, 9)),
            ('{"current_steps": 2, "total_steps": 2, "nan_ranks": 3}', Completion(2, 2, 3)),
            ("", Completion(None, None)),
            ("{torn", Completion(None, None)),
        ],
    )  # fmt: skip
    def test_what_the_record_says(self, text, wanted_):
        assert completion(text) == wanted_

    async def test_of_a_real_folder(self):
        found = await look("c", FOLDERS / "checkpoints" / "hf_run")
        assert found.value.completion.last_step == found.value.completion.total is not None


async def test_scores_of_results(tmp_path):
    results = FOLDERS / "results"
    name = "lm_eval_results_2026-07-14T09-00-00.123456.json"
    (tmp_path / "model").mkdir()
    shutil.copy(results / name, tmp_path / "model" / name.removeprefix("lm_eval_"))
    shutil.copy(results / "nemo_eval-mmlu_pro.json", tmp_path / "eval-mmlu_pro.json")
    found = await look("s", tmp_path)
    assert "MMLU-Pro" in found.value.scores
    assert len(found.value.scores) > 1


class TestWhereAndWhen:
    def one(self, **changes):
        facts = Facts(
            name="rl__a", workdir="/w", submit_line="sbatch rl.sh --output_dir=out ckpt_path=/c/a"
        )
        return job(**{"bucket": Bucket.RL, "run": "rl__a", "facts": facts, **changes})

    def test_by_its_own_words_first(self):
        tail = b"Saving model checkpoint to /d/x/global_step_10\nstep_3 done\n"
        log = Read(LogTail("/l", len(tail), 1, NOW, 0, tail), NOW)
        places, named = output_places(self.one(), ("/bank",), log)
        assert named == ("/w/out", "/c/a", "/d/x")
        assert places[:3] == named
        assert "/bank/rl__a/checkpoints" in places
        assert "/w/rl__a" in places
        assert "/w" not in places, "may hold the checkpoints of other runs"
        assert "/bank" not in places

    def test_a_running_job_is_looked_at_when_its_log_names_a_new_one(self):
        def want(bank, *saved, minutes=1):
            training = Training(dialect="skyrl", step=12, checkpoints=saved)
            one = self.one(training=training, work=Work(bank=bank))
            return wanted(one, ended=False, now=at(minutes))

        assert want(None) == "b"
        known = Bank(10, (10,), read_at=NOW)
        assert want(known, 10) == ""
        assert want(known, 10, 20) == "b"
        assert want(replace(known, unfinished=(20,)), 10, 20) == ""
        assert want(known, 10, minutes=60) == "b"
        assert wanted(self.one(), ended=False, now=NOW) == "", "no step yet"

    def test_an_end_is_looked_at_once(self):
        sft = self.one(bucket=Bucket.SFT, state=State.COMPLETED)
        assert wanted(sft, ended=True, now=NOW) == "cb"
        assert wanted(sft, ended=False, now=NOW) == ""
        assert wanted(replace(sft, state=State.FAILED), ended=True, now=NOW) == "b"
        assert wanted(replace(sft, bucket=Bucket.EVAL), ended=True, now=NOW) == "s"
        assert wanted(replace(sft, bucket=Bucket.OTHER), ended=True, now=NOW) == ""
        assert wanted(replace(sft, stale=True), ended=True, now=NOW) == ""

    def test_nothing_is_known_where_nothing_says(self):
        assert output_places(self.one(facts=Facts(name="a")), (), NotApplicable()) == ((), ())


class TestSalvage:
    def test_what_is_on_disk_goes_before_what_the_log_says(self):
        training = Training(dialect="skyrl", step=50, checkpoints=(10, 20, 30))
        signal = Signal("rl-collapse", Severity.ALARM, "x", {}, step=45)
        one = job(training=training)
        assert salvage(one, signal) == 30
        kept = replace(one, work=Work(bank=Bank(40, (10, 20, 40), (50,))))
        assert saved_steps(kept) == (10, 20, 40)
        assert salvage(kept, signal) == 40
        assert salvage(kept, replace(signal, step=40)) == 20

    def test_it_is_shown_with_the_logs_word(self):
        training = Training(dialect="skyrl", step=50, checkpoints=(10,))
        one = job(training=training, work=Work(bank=Bank(40, (40,), (50,), "/c/global_step_40")))
        shown = job_object(one, NOW)
        assert (shown["banked"]["step"], shown["banked"]["in_log"]) == (40, False)
        text = "\n".join(show_text(shown, View(NOW)))
        assert (
            "step 40 on disk (/c/global_step_40), its log does not name it; not complete: 50"
            in text
        )


class Trained:
    """One SFT or eval job that ends with files of its own."""

    def __init__(self, tmp_path, bucket):
        self.folder, self.workdir = tmp_path / "work" / "train", tmp_path / "work"
        self.folder.mkdir(parents=True)
        self.scene = Scene(tmp_path)
        self.scene.cluster = replace(self.scene.cluster, trees=TreeReader(LocalTransport()))
        rules = (registry.rules["completion-mismatch"](),)
        self.scene.sweeper = replace(
            self.scene.sweeper,
            terms=Terms(rules, ("news",), "/agent_logs"),
            classify=lambda *_: Classified(bucket, bucket.value, "train", frozenset()),
        )
        self.scene.add("7")

    async def ends(self):
        for state in (State.RUNNING, State.COMPLETED):
            await self.scene.sweep(_7=seen(state, workdir=str(self.workdir)))
        found = self.scene.job("lab/7")
        return found, [s.title for s in found.signals], self.scene.store.followups()


async def test_a_completed_run_is_checked_against_its_own_record(tmp_path):
    sft = Trained(tmp_path, Bucket.SFT)
    line = json.dumps({"current_steps": 90, "total_steps": 100, "loss": 0.2})
    (sft.folder / "trainer_log.jsonl").write_text(f"{line}\n")
    (sft.folder / "checkpoint-90").mkdir()
    (sft.folder / "checkpoint-90" / "trainer_state.json").touch()
    found, titles, (owed,) = await sft.ends()
    assert titles == ["completed, but the last recorded step is 90 of 100"]
    assert owed.evidence["held"] == titles[0]
    assert (found.work.bank.step, found.work.bank.folder) == (90, f"{sft.folder}/checkpoint-90")


async def test_a_run_that_did_all_of_it_owes_its_cleanup(tmp_path):
    sft = Trained(tmp_path, Bucket.SFT)
    line = json.dumps({"current_steps": 100, "total_steps": 100, "loss": 0.2})
    (sft.folder / "trainer_log.jsonl").write_text(f"{line}\n")
    _, titles, (owed,) = await sft.ends()
    assert titles == []
    assert "held" not in owed.evidence


async def test_scores_are_fetched_when_an_evaluation_completes(tmp_path):
    evaluation = Trained(tmp_path, Bucket.EVAL)
    shutil.copy(
        FOLDERS / "results" / "nemo_eval-mmlu_pro.json", evaluation.folder / "eval-mmlu_pro.json"
    )
    found, _, _ = await evaluation.ends()
    (score,) = job_object(found, NOW)["scores"]
    assert score["name"] == "MMLU-Pro"


@given(raw=st.binary(max_size=300), cut=st.integers(0, 300))
def test_any_answer_is_taken(raw, cut):
    whole = b"\nM ask 0\n\nM dir /x\nM latest " + raw + b"\nM step " + raw + b"\n"
    whole += b"M file trainer_log.jsonl\n" + raw + b"\nM file results.yml\n" + raw
    whole += b"\nM file eval-x.json\n" + raw + b"\n\nM whole\n"
    (found,) = found_outputs(whole, "M", 1)
    assert isinstance(found, Unavailable) or banked(found.places).complete == ()
    assert len(found_outputs(whole[:cut], "M", 1)) == 1
