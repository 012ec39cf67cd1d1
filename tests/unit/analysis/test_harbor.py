"""Results of trials and of their jobs, in the forms that the versions of Harbor write."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.harbor import (
    JOB_WANTED,
    TRIAL_WANTED,
    agent_steps,
    job_result,
    named,
    run_trials,
    trial,
)
from jobmond.analysis.sifting import sifted
from jobmond.model.trials import Trial
from tests.trees import FOLDERS, VERSIONS, harbor, result


def read(document):
    return trial(sifted([json.dumps(document).encode()], TRIAL_WANTED))


def read_job(document):
    return job_result(sifted([json.dumps(document).encode()], JOB_WANTED))


def test_a_trial():
    assert read(result()) == Trial(
        name="task__aaaaaaa",
        reward=1.0,
        turns=9,
        turns_source="episodes",
        output_tokens=310,
        duration_s=300.0,
    )


@pytest.mark.parametrize(
    ("rewards", "wanted"),
    [
        ({"reward": 0.375}, 0.375),
        ({"correctness": 0.5}, 0.5),
        ({"style": 0.2, "reward": 1}, 1.0),
        ({"pass": True}, 1.0),
        ({"score": "0.25"}, 0.25),
        ({"reward": None}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_reward_by_any_name(rewards, wanted):
    assert read(result(verifier_result={"rewards": rewards})).reward == wanted


def test_an_exception_and_a_reward_together_are_normal():
    found = read(result(exception_info={"exception_type": "AgentTimeoutError"}))
    assert (found.exception, found.reward, found.scored) == ("AgentTimeoutError", 1.0, True)


def test_without_a_reward_an_old_version_counts_zero_and_a_new_one_leaves_it_out():
    nothing = {"verifier_result": None, "exception_info": {"exception_type": "DaytonaError"}}
    assert read(result(**nothing)).scored is True
    assert read(result(**nothing, reward_valid=False)).scored is False
    assert read(result(reward_valid=False)).scored is False


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        ("2026-07-14T09:00:35", "2026-07-14T09:00:37", 2.0),
        ("2026-07-14T09:00:35Z", "2026-07-14T09:00:37Z", 2.0),
        ("2026-07-14T09:00:35.5+02:00", "2026-07-14T07:00:37+00:00", 1.5),
        ("2026-07-14T09:00:35", "2026-07-14T09:00:37Z", None),
        ("2026-07-14T09:00:37Z", "2026-07-14T09:00:35Z", None),
        (None, "2026-07-14T09:00:35Z", None),
        ("soon", "later", None),
    ],
)
def test_both_habits_of_writing_times(start, end, seconds):
    assert read(result(started_at=start, finished_at=end)).duration_s == seconds


@pytest.mark.parametrize(
    ("tokens", "seconds", "wanted"),
    [(None, 2, True), (0, 5, True), (0, 6, False), (1, 2, False), (None, None, False)],
)
def test_an_instant_trial(tokens, seconds, wanted):
    assert Trial("t", output_tokens=tokens, duration_s=seconds).instant(5) is wanted


@pytest.mark.parametrize("document", [None, [], 7, "x", {}, {"stats": {}}, {"trial_name": None}])
def test_what_is_no_trial(document):
    assert trial(document) is None


def test_turns_of_a_trajectory_are_the_agents_own_steps():
    steps = [
        {"source": "system"},
        {"source": "user"},
        {"source": "agent"},
        {"source": "agent", "is_copied_context": True},
        {"source": "agent", "is_copied_context": False},
    ]
    assert agent_steps({"steps": steps}) == 2
    assert agent_steps({"steps": None}) is None
    assert agent_steps(None) is None


class TestJobs:
    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("final", [False, True])
    def test_every_version(self, version, final):
        path = harbor(version) / "result.json"
        if final:
            path = path.parents[1] / f"{path.parent.name}.result.FINAL.json"
        found = job_result(sifted([path.read_bytes()], JOB_WANTED))
        assert (found.total, found.done, found.errored, found.passed) == (10, 9, 5, 3)
        assert found.exceptions == {
            "AgentTimeoutError": 2,
            "ContextLengthExceededError": 1,
            "DaytonaValidationError": 1,
            "RewardFileNotFoundError": 1,
        }
        assert found.finished is final

    @pytest.mark.parametrize(
        ("version", "mean", "basis"),
        [
            ("0.1.17", 2.375 / 9, "all-trials"),
            ("0.1.45", 2.375 / 9, "all-trials"),
            ("0.26.0", 2.375 / 7, "scored-trials"),
        ],
    )
    def test_both_meanings_of_the_mean(self, version, mean, basis):
        raw = (harbor(version) / "result.json").read_bytes()
        found = job_result(sifted([raw], JOB_WANTED))
        assert (found.mean, found.basis) == (pytest.approx(mean), basis)

    def test_a_metric_of_the_harness_that_is_no_plain_mean(self):
        evals = {
            "a__m__d": {
                "metrics": [{"correctness": 0.9}],
                "reward_stats": {"correctness": {"1.0": ["x"], "0.0": ["y"]}},
            }
        }
        found = read_job({"n_total_trials": 2, "stats": {"n_trials": 2, "evals": evals}})
        assert (found.mean, found.basis) == (0.9, "harness")

    def test_several_evals_in_one_job_have_no_mean_of_their_own(self):
        one = {"metrics": [{"mean": 1.0}], "reward_stats": {"reward": {"1.0": ["x"]}}}
        other = {"metrics": [{"mean": 0.0}], "reward_stats": {"reward": {"0.0": ["y", "z"]}}}
        stats = {"n_completed_trials": 3, "evals": {"a": one, "b": other}}
        found = read_job({"n_total_trials": 4, "stats": stats})
        assert (found.mean, found.basis) == (pytest.approx(1 / 3), "all-trials")

    def test_what_is_no_job(self):
        assert job_result(None) is None
        assert job_result({"trial_name": "x"}) is None


@pytest.mark.parametrize(
    ("evals", "model", "benchmark"),
    [
        (["terminus-2__my-model-8b__dev_set_v2"], "my-model-8b", "dev_set_v2"),
        (["terminus-2__my__model__dev_set_v2"], "my__model", "dev_set_v2"),
        (["terminus-2__17839483__dev_set_v2"], None, "dev_set_v2"),
        (["a__b__c", "a__b__d"], None, None),
        (["adhoc"], None, None),
        ([], None, None),
    ],
)
def test_model_and_benchmark(evals, model, benchmark):
    assert named(evals) == (model, benchmark)


def test_terminal_bench_before_harbor():
    one = trial(json.loads((FOLDERS / "terminal_bench" / "trial_results.json").read_text()))
    assert (one.reward, one.exception, one.output_tokens) == (1.0, None, 2201)
    assert one.duration_s == pytest.approx(359.558289)
    run = run_trials(json.loads((FOLDERS / "terminal_bench" / "run_results.json").read_text()))
    assert [t.exception for t in run][:2] == [None, "agent_timeout"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["trial_name", "stats", "evals", "metrics", "mean", "reward_stats", "reward",
                 "exception_stats", "exception_info", "exception_type", "agent_result",
                 "metadata", "n_episodes", "verifier_result", "rewards", "started_at",
                 "finished_at", "n_trials", "is_resolved", "results", "steps", "1.0"]
            ), inner, max_size=5,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@given(JSON)
def test_any_document_is_accepted(document):
    for reader in (trial, job_result, run_trials, agent_steps):
        reader(document)
