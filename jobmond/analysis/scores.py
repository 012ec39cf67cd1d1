"""The headline score of a finished evaluation, in per cent, from the files of its harness.

Sources: lm-evaluation-harness, `loggers/evaluation_tracker.py` (keys are `metric,filter`);
nemo-evaluator, `docs/result-format.mdx` and `results.yml`; the scale of nemo-skills (0 to 100) and
of the others (0 to 1) is the harness's, so a small number alone decides nothing.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# Names people use, by letters and digits of the harness's own.
_SHOWN = {
    "mmlupro": "MMLU-Pro",
    "mmlu": "MMLU",
    "mmluredux": "MMLU-Redux",
    "gsm8k": "GSM8K",
    "gsm8kcot": "GSM8K",
    "gsm8kcotinstruct": "GSM8K",
    "gpqa": "GPQA",
    "gpqadiamond": "GPQA Diamond",
    "math500": "MATH-500",
    "aime24": "AIME 2024",
    "aime2024": "AIME 2024",
    "aime25": "AIME 2025",
    "aime2025": "AIME 2025",
    "humaneval": "HumanEval",
    "mbpp": "MBPP",
    "ifeval": "IFEval",
    "ifbench": "IFBench",
    "livecodebench": "LiveCodeBench",
    "hellaswag": "HellaSwag",
    "arcchallenge": "ARC-Challenge",
    "arceasy": "ARC-Easy",
    "winogrande": "WinoGrande",
    "truthfulqamc2": "TruthfulQA",
    "scicode": "SciCode",
    "hle": "HLE",
}
_NAME_PREFIX = re.compile(r"^(?:ns|adlr|simple_evals)[_.-]+")
# The headline among several metrics of one task, the first that is there.
_ORDER = (
    "symbolic_correct",
    "exact_match,flexible-extract",
    "exact_match__flexible-extract",
    "exact_match",
    "micro",
    "acc",
    "accuracy",
    "score",
    "pass@1",
    "pass_at_1",
    "prompt_level_strict_acc",
    "mean_reward",
    "acc_norm",
    "f1",
)
_NO_SCORE = re.compile(
    r"stderr|stddev|perplexity|bits_per_byte|num_entries|no_answer|sample_(?:len|count)|"
    r"gen_seconds|avg_tokens|bypass"
)
_IN_PER_CENT = re.compile(r"^(?:bleu|chrf|ter|rouge)")
_PER_CENT_HARNESSES = frozenset({"nemo_skills", "nemoskills"})
_MOST = 200


@dataclass(frozen=True, slots=True)
class Score:
    """One benchmark's headline; `value` in per cent. `metric` is the harness's name for it."""

    name: str
    value: float
    metric: str

    def plain(self) -> dict[str, Any]:
        """As the interface shows it."""
        return {"name": self.name, "value": self.value}


def shown_name(task: str) -> str:
    """A benchmark as people write it; an unknown one as its harness does."""
    plain = re.sub(r"[^a-z0-9]", "", _NAME_PREFIX.sub("", task.lower()))
    return _SHOWN.get(plain, task[:100])


def lm_eval_scores(document: Any) -> list[Score]:
    """Of a `results_*.json`: every group, and every task that belongs to none."""
    results = _mapping(_mapping(document).get("results"))
    groups = _mapping(_mapping(document).get("groups"))
    inside = {
        str(task)
        for name, tasks in _mapping(_mapping(document).get("group_subtasks")).items()
        if isinstance(tasks, list) and tasks and name in groups
        for task in tasks
    }
    named = {**{n: v for n, v in results.items() if n not in inside}, **groups}
    return _headlines((name, _mapping(metrics)) for name, metrics in named.items())


def bundle_scores(document: Any) -> list[Score]:
    """Of an `eval-<benchmark>.json`: one benchmark with its scores."""
    benchmark = _mapping(_mapping(document).get("benchmark"))
    scores = _mapping(benchmark.get("scores"))
    name = benchmark.get("name")
    if not isinstance(name, str):
        return []
    return _headlines([(name, {key: _mapping(one).get("value") for key, one in scores.items()})])


def results_scores(document: Any, framework: str | None = None) -> list[Score]:
    """Of a `results.yml`. `framework` is what its `run_config.yml` names."""
    found = _mapping(document)
    results = _mapping(found.get("results"))
    harness = framework or _harness(found.get("command"))
    groups, tasks = _mapping(results.get("groups")), _mapping(results.get("tasks"))
    named = {**{n: v for n, v in tasks.items() if n not in groups and not groups}, **groups}
    return _headlines(
        ((name, _flat(_mapping(one).get("metrics"))) for name, one in named.items()),
        per_cent=re.sub(r"[^a-z_]", "_", harness.lower()) in _PER_CENT_HARNESSES,
    )


def _harness(command: Any) -> str:
    return command.split(maxsplit=1)[0] if isinstance(command, str) and command.split() else ""


def _flat(metrics: Any) -> dict[str, Any]:
    """Scores by name; by metric too where the names alone would be the same."""
    return {
        score: _mapping(value).get("value")
        for metric, one in _mapping(metrics).items()
        for score, value in _mapping(_mapping(one).get("scores")).items()
    }


def _headlines(
    tasks: Iterable[tuple[str, Mapping[str, Any]]], *, per_cent: bool = False
) -> list[Score]:
    found = []
    for task, metrics in list(tasks)[:_MOST]:
        numbers = {
            name: value
            for name, raw in metrics.items()
            if not _NO_SCORE.search(name) and (value := _finite(raw)) is not None
        }
        metric = min(numbers, key=lambda name: (_rank(name), name), default=None)
        if metric is not None:
            scale = 1.0 if per_cent or _IN_PER_CENT.match(metric) else 100.0
            value = round(numbers[metric] * scale, 6)
            found.append(Score(shown_name(str(task)), value, str(metric)))
    return found


def _rank(name: str) -> int:
    places = (i for i, one in enumerate(_ORDER) if name == one or name.startswith((f"{one},",)))
    return next(places, len(_ORDER))


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < float("inf") else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
