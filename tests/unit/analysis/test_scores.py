"""Headline scores, in per cent whatever the harness's scale."""

import json

import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.scores import (
    Score,
    bundle_scores,
    lm_eval_scores,
    results_scores,
    shown_name,
)
from tests.trees import FOLDERS


def of_lm_eval(path):
    return lm_eval_scores(json.loads((FOLDERS / path).read_text()))


def of_results(task, framework):
    document = yaml.safe_load((FOLDERS / "nel" / task / "results.yml").read_text())
    return results_scores(document, framework)


def test_lm_eval():
    found = of_lm_eval("results/lm_eval_results_2026-07-14T09-00-00.123456.json")
    assert found == [Score("GSM8K", 54.8, "exact_match,flexible-extract")]


def test_a_group_stands_for_its_tasks():
    found = of_lm_eval("results_lm_eval.json")
    assert found == [
        Score("tiny_sum_gen", 0.0, "exact_match,none"),
        Score("tiny_suite", 39.52381, "acc,none"),
    ]


def test_nemo_evaluator():
    document = json.loads((FOLDERS / "results" / "nemo_eval-mmlu_pro.json").read_text())
    assert bundle_scores(document) == [Score("MMLU-Pro", 50.0, "mean_reward")]


def test_the_harness_decides_the_scale():
    assert of_results("mmlu_pro", "simple_evals") == [Score("MMLU-Pro", 42.26, "micro")]
    assert of_results("gsm8k", "lm-evaluation-harness") == [
        Score("GSM8K", 67.1, "exact_match__flexible-extract")
    ]
    assert of_results("ns_mmlu_pro", "nemo_skills") == [
        Score("MMLU-Pro", 42.26, "symbolic_correct")
    ]


def test_the_command_names_the_harness_where_nothing_else_does():
    assert of_results("ns_mmlu_pro", None) == [Score("MMLU-Pro", 42.26, "symbolic_correct")]
    small = {"command": "nemo_skills --x", "results": {"tasks": {"aime25": {"metrics": {
        "pass@1": {"scores": {"symbolic_correct": {"value": 0.83}}}}}}}}  # fmt: skip
    assert results_scores(small) == [Score("AIME 2025", 0.83, "symbolic_correct")]


def test_what_is_no_share_is_no_headline():
    results = {"wikitext": {"word_perplexity,none": 12.1, "bits_per_byte,none": 0.6},
               "wmt": {"bleu,none": 31.5, "bleu_stderr,none": 0.2}}  # fmt: skip
    assert lm_eval_scores({"results": results}) == [Score("wmt", 31.5, "bleu,none")]


def test_names():
    assert shown_name("ns_mmlu_pro") == shown_name("mmlu-pro") == "MMLU-Pro"
    assert shown_name("gsm8k_cot_instruct") == "GSM8K"
    assert shown_name("our_own_task") == "our_own_task"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["results", "groups", "tasks", "metrics", "scores", "value", "a",
                             "benchmark", "name", "group_subtasks", "command"]),
            inner, max_size=4,
        )
    ),
    max_leaves=15,
)  # fmt: skip


@given(JSON)
def test_any_document_is_accepted(document):
    for reader in (lm_eval_scores, bundle_scores, results_scores):
        assert isinstance(reader(document), list)
