"""`jobmonctl inspect` on folders, offline."""

import json
import os
import shutil

import jsonschema
import pytest
from click.testing import CliRunner

from jobmond.cli.main import program
from jobmond.reports.schema import schema
from tests.trees import FOLDERS, JOB, VERSIONS, harbor, put, result


def run(*arguments):
    return CliRunner().invoke(program, ["inspect", *map(str, arguments)])


def seen(*arguments):
    found = run("--json", *arguments)
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    jsonschema.validate(document, schema("inspect"))
    return document


class TestTrials:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_every_version_gives_its_counts(self, version):
        found = seen(harbor(version))
        assert (found["dialect"], found["bucket"], found["phase"]) == ("harbor", "eval", "training")
        assert (found["lines"], found["files"]) == (None, 10)
        mean = 2.375 / 7 if version == "0.26.0" else 2.375 / 9
        assert found["metrics"] == {
            "trials_done": 9,
            "trials_total": 10,
            "pass_rate": pytest.approx(3 / 9),
            "exception_fraction": pytest.approx(5 / 9),
            "mean_reward": pytest.approx(mean),
            "avg_turns": 12.125,
        }
        assert found["top_exception"] == "AgentTimeoutError"
        assert found["avg_turns_source"] == "episodes"
        basis = "scored-trials" if version == "0.26.0" else "all-trials"
        assert found["mean_reward_basis"] == basis
        assert found["trials_running"] == 1

    @pytest.mark.parametrize("version", VERSIONS)
    def test_the_trials_alone_give_the_same(self, version, tmp_path):
        shutil.copytree(harbor(version), tmp_path / JOB)
        whole = seen(tmp_path / JOB)
        root = tmp_path / JOB / "result.json"
        root.write_bytes(root.read_bytes()[:700])
        torn = seen(tmp_path / JOB)
        assert torn["metrics"] == {n: v for n, v in whole["metrics"].items() if n != "trials_total"}
        assert torn["mean_reward_basis"] == whole["mean_reward_basis"]

    @pytest.mark.parametrize("version", VERSIONS)
    def test_the_end(self, version, tmp_path):
        shutil.copytree(harbor(version), tmp_path / JOB)
        final = harbor(version).parent / f"{JOB}.result.FINAL.json"
        shutil.copy(final, tmp_path / JOB / "result.json")
        assert seen(tmp_path / JOB)["phase"] == "done"

    def test_a_torn_trial_is_a_running_one(self, tmp_path):
        put(tmp_path / "job" / "a__aaaaaaa", result("a__aaaaaaa"))
        put(tmp_path / "job" / "b__bbbbbbb", json.dumps(result())[:100])
        (tmp_path / "job" / "job.log").touch()
        found = seen(tmp_path / "job")
        assert (found["metrics"]["trials_done"], found["trials_running"]) == (1, 1)

    def test_what_is_no_trial_is_not_counted(self, tmp_path):
        (tmp_path / "job.log").touch()
        put(tmp_path / "a__aaaaaaa", result("a__aaaaaaa"))
        for name in ("_retry_a__aaaaaaa", "lost+found", ".tmp"):
            put(tmp_path / name, result(name))
        assert seen(tmp_path)["metrics"]["trials_done"] == 1

    def test_nested_as_launchers_do(self, tmp_path):
        shutil.copytree(harbor("0.26.0"), tmp_path / "run" / "trace_jobs" / "run")
        assert seen(tmp_path / "run")["metrics"]["trials_done"] == 9

    def test_one_trial_alone(self):
        found = seen(next(harbor("0.1.17").glob("chess-best-move__*")))
        assert (found["metrics"]["trials_done"], found["metrics"]["pass_rate"]) == (1, 1.0)

    def test_chunks(self, tmp_path):
        for i in range(3):
            (tmp_path / "task_chunks" / f"chunk_{i:03d}" / "task").mkdir(parents=True)
        final = harbor("0.26.0").parent / f"{JOB}.result.FINAL.json"
        shutil.copytree(harbor("0.26.0"), tmp_path / "chunk_000")
        shutil.copy(final, tmp_path / "chunk_000" / "result.json")
        shutil.copytree(harbor("0.26.0"), tmp_path / "chunk_001" / JOB)
        found = seen(tmp_path)
        assert found["bucket"] == "datagen"
        metrics = found["metrics"]
        assert (metrics["chunks_done"], metrics["chunks_total"]) == (1, 3)
        assert metrics["trials_done"] == 18
        assert "trials_total" not in metrics

    def test_chunks_by_their_map(self, tmp_path):
        put(tmp_path, {f"chunk_{i:03d}": [] for i in range(20)}, "task_chunk_map.json")
        shutil.copytree(harbor("0.26.0"), tmp_path / "chunk_000")
        assert seen(tmp_path)["metrics"]["chunks_total"] == 20

    def test_turns_by_trajectory_then_by_episode_folders(self, tmp_path):
        (tmp_path / "job.log").touch()
        bare = result(agent_result={"n_output_tokens": 5, "metadata": None})
        put(tmp_path / "a__aaaaaaa", bare)
        steps = [{"source": "user"}, {"source": "agent"}, {"source": "agent"}]
        put(tmp_path / "a__aaaaaaa" / "agent", {"steps": steps}, "trajectory.json")
        found = seen(tmp_path)
        assert (found["metrics"]["avg_turns"], found["avg_turns_source"]) == (2.0, "agent-steps")
        (tmp_path / "a__aaaaaaa" / "agent" / "trajectory.json").unlink()
        for i in range(4):
            (tmp_path / "a__aaaaaaa" / "agent" / f"episode-{i}").mkdir()
        found = seen(tmp_path)
        assert (found["metrics"]["avg_turns"], found["avg_turns_source"]) == (
            4.0,
            "episode-folders",
        )

    def test_terminal_bench(self, tmp_path):
        trial = FOLDERS / "terminal_bench" / "trial_results.json"
        for i in range(2):
            folder = tmp_path / "fix-git" / f"fix-git.{i + 1}-of-2.run"
            folder.mkdir(parents=True)
            shutil.copy(trial, folder / "results.json")
        found = seen(tmp_path)
        assert (found["dialect"], found["metrics"]["trials_done"]) == ("harbor", 2)
        shutil.copy(FOLDERS / "terminal_bench" / "run_results.json", tmp_path / "results.json")
        every = json.loads((tmp_path / "results.json").read_text())["results"]
        assert seen(tmp_path)["metrics"]["trials_done"] == len(every)

    def test_a_fifo_or_a_link_in_a_loop_holds_nobody_up(self, tmp_path):
        (tmp_path / "job.log").touch()
        put(tmp_path / "a__aaaaaaa", result("a__aaaaaaa"))
        (tmp_path / "b__bbbbbbb").mkdir()
        os.mkfifo(tmp_path / "b__bbbbbbb" / "result.json")
        (tmp_path / "c__ccccccc").symlink_to(tmp_path)
        assert seen(tmp_path)["metrics"]["trials_done"] == 1

    def test_for_a_person(self):
        found = run(harbor("0.26.0"))
        assert "9/10 trials done, 1 without a result" in found.output
        assert "pass rate 0.333, mean reward 0.3393 (scored-trials)" in found.output
        assert "12.125 turns a trial (episodes)" in found.output
        assert "5 with an exception: AgentTimeoutError 2" in found.output


class TestScores:
    @pytest.mark.parametrize(
        ("folder", "dialect", "scores"),
        [
            ("nel/mmlu_pro", "nel", {"MMLU-Pro": 42.26}),
            ("nel", "nel", {"GSM8K": 67.1, "MMLU-Pro": 42.26}),
            ("results", "lm-eval", {"GSM8K": 54.8, "MMLU-Pro": 50.0}),
        ],
    )
    def test_of_every_harness(self, folder, dialect, scores):
        found = seen(FOLDERS / folder)
        assert (found["dialect"], found["bucket"], found["phase"]) == (dialect, "eval", "done")
        assert {one["name"]: one["value"] for one in found["scores"]} == scores

    def test_the_newest_of_lm_eval(self, tmp_path):
        for day, value in (("14", 0.1), ("15", 0.2)):
            document = {"results": {"gsm8k": {"exact_match,strict-match": value}}}
            put(tmp_path / "my__model", document, f"results_2026-07-{day}T09-00-00.0.json")
        assert seen(tmp_path)["scores"] == [{"name": "GSM8K", "value": 20.0}]

    def test_results_that_are_no_yaml(self, tmp_path):
        put(tmp_path, "{unclosed: [", "results.yml")
        assert "scores" not in seen(tmp_path)

    def test_for_a_person(self):
        assert "GSM8K: 67.1%, MMLU-Pro: 42.3%" in run(FOLDERS / "nel").output


class TestCheckpoints:
    @pytest.mark.parametrize(
        ("folder", "dialect", "complete", "unfinished"),
        [
            ("skyrl_run", "skyrl", [5, 10], [15]),
            ("verl_run", "verl", [20], [30]),
            ("hf_run", "hf", [500], None),
            ("megatron_run", "megatron", [500], None),
            ("nemo_rl_run", "nemo-rl", [10], None),
            ("prime_rl_run", "prime-rl", [50], [60]),
            ("areal_run", "areal", [10], None),
        ],
    )
    def test_every_layout(self, folder, dialect, complete, unfinished):
        found = seen(FOLDERS / "checkpoints" / folder)
        assert (found["dialect"], found["checkpoints"]) == (dialect, complete)
        assert found.get("checkpoints_unfinished") == unfinished

    def test_a_run_that_ended_says_its_last_step(self):
        found = seen(FOLDERS / "checkpoints" / "hf_run")
        assert (found["step"], found["max_step"], found["phase"]) == (916, 916, "done")
        assert "banked step 500 of 916" in run(FOLDERS / "checkpoints" / "hf_run").output

    def test_a_run_that_goes_on_says_its_banked_step(self, tmp_path):
        shutil.copytree(FOLDERS / "checkpoints" / "hf_run", tmp_path / "run")
        (tmp_path / "run" / "trainer_state.json").unlink()
        found = seen(tmp_path / "run")
        assert (found["step"], found["max_step"], found["phase"]) == (500, 916, "training")


def test_a_folder_of_nothing_known(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    found = seen(tmp_path)
    assert (found["dialect"], found["phase"], found["files"]) == ("unknown", None, 0)


def test_the_bucket_may_be_chosen_and_names_are_hostile(tmp_path):
    folder = tmp_path / "\x1b[31m"
    shutil.copytree(harbor("0.1.17"), folder)
    assert seen("--bucket", "datagen", folder)["bucket"] == "datagen"
    assert "\x1b" not in run(folder).output


def test_folders_are_no_lives_to_join(tmp_path):
    wrong = run("--join", tmp_path, tmp_path)
    assert wrong.exit_code == 2
    assert "--join" in wrong.stderr


def test_a_folder_of_logs_is_told_to_be_none(tmp_path):
    (tmp_path / "train.out").write_text("step 1\n")
    done = CliRunner().invoke(program, ["inspect", str(tmp_path)])
    assert done.exit_code == 0
    assert done.stdout == (
        f"{tmp_path}: unknown, other\n"
        "  no trials, results or checkpoints in it; name a log by itself\n"
    )
