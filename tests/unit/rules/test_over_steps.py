"""The rules that look at a run's numbers, step by step."""

import math

import pytest

from jobmond import registry
from jobmond.model.metrics import Column, RunSeries
from jobmond.model.state import Bucket, Severity
from jobmond.ports import Case
from tests.unit.builders import NOW, job

CALM = [0.02] * 10


def series(judged=None, *, life=1, coarse=(), pass_rate=None, trials=0, **metrics):
    """Metrics by name as lists, one value a step from 1 on; None where nothing was logged."""
    columns = {}
    for name, values in metrics.items():
        points = [(step, v) for step, v in enumerate(values, 1) if v is not None]
        columns[name] = Column(tuple(s for s, _ in points), tuple(v for _, v in points))
    longest = max((len(values) for values in metrics.values()), default=0)
    return RunSeries(
        columns=columns,
        judged=tuple(judged or range(1, longest + 1)),
        life=life,
        first_step=1,
        coarse=frozenset(coarse),
        pass_rate=pass_rate,
        trials=trials,
    )


def fired(rule, seen, *labels, bucket=Bucket.RL, **options):
    case = Case(None, job(bucket=bucket, labels=frozenset(labels)), NOW, seen)
    return list(registry.rules[rule](**options).judge(case))


def at(rule, seen, *labels, **options):
    return [(s.step, s.last_step) for s in fired(rule, seen, *labels, **options)]


class TestCollapse:
    def test_one_sign_is_not_enough(self):
        assert at("rl-collapse", series(grad_norm=[*CALM, 9.0], entropy=[0.4] * 11)) == []
        assert at("rl-collapse", series(grad_norm=[0.02] * 11, entropy=[0.4] * 10 + [0.1])) == []

    def test_gradient_and_entropy(self):
        seen = series(grad_norm=[*CALM, 3.1], entropy=[0.4] * 10 + [0.22])
        (signal,) = fired("rl-collapse", seen)
        assert (signal.step, signal.last_step, signal.severity) == (11, 11, Severity.ALARM)
        assert signal.action == "cancel-and-salvage"
        assert signal.evidence == {"grad_norm": 3.1, "entropy_drop": 0.45}

    def test_above_one_and_above_twice_its_window_are_one_sign(self):
        assert at("rl-collapse", series(grad_norm=[*CALM, 3.1])) == []

    def test_a_window_needs_five_values(self):
        short = series(grad_norm=[0.02] * 4 + [0.5], entropy=[0.4] * 4 + [0.1])
        assert at("rl-collapse", short) == []
        enough = series(grad_norm=[0.02] * 5 + [0.5], entropy=[0.4] * 5 + [0.1])
        assert at("rl-collapse", enough) == [(6, 6)]

    def test_a_window_holds_logged_values_not_steps(self):
        sparse = [v for value in [0.4] * 5 for v in (value, None)]
        seen = series(grad_norm=[0.02] * 10 + [2.0], entropy=[*sparse, 0.1])
        assert at("rl-collapse", seen) == [(11, 11)]

    def test_entropy_may_leave_its_trend_upwards(self):
        seen = series(grad_norm=[*CALM, 2.0], entropy=[0.4] * 10 + [0.6])
        (signal,) = fired("rl-collapse", seen)
        assert signal.evidence["entropy_drop"] == -0.5
        assert "above trend" in signal.title

    def test_log_ratio_counts_while_its_maximum_is_bounded(self):
        ratios = {"log_ratio_abs_mean": [0.01] * 10 + [0.03], "grad_norm": [*CALM, 2.0]}
        assert at("rl-collapse", series(**ratios, log_ratio_abs_max=[0.3] * 11)) == [(11, 11)]
        assert at("rl-collapse", series(**ratios, log_ratio_abs_max=[0.3] * 10 + [19.0])) == []

    def test_the_ratio_against_the_rollout_engine_stands_in_only_where_there_is_no_other(self):
        tis = {"policy/tis/log_ratio_abs_mean": [0.05] * 10 + [0.2], "grad_norm": [*CALM, 2.0]}
        assert at("rl-collapse", series(**tis)) == [(11, 11)]
        assert at("rl-collapse", series(**tis, log_ratio_abs_mean=[0.01] * 11)) == []

    def test_the_pass_rate_pairs_with_the_newest_step_only(self):
        gradient = {"grad_norm": [*CALM, 2.0, 2.0]}
        assert at("rl-collapse", series(**gradient, pass_rate=0.05, trials=100)) == [(12, 12)]
        assert at("rl-collapse", series(**gradient, pass_rate=0.05, trials=99)) == []
        assert at("rl-collapse", series(**gradient, pass_rate=0.10, trials=100)) == []

    def test_runs_of_steps(self):
        grads = [*CALM, 2.0, 2.0, 0.02, 2.0]
        seen = series(grad_norm=grads, entropy=[0.4] * 10 + [0.1] * 4)
        assert at("rl-collapse", seen) == [(11, 12), (14, 14)]

    def test_only_what_was_not_judged_before(self):
        seen = series(judged=[12], grad_norm=[*CALM, 2.0, 2.0], entropy=[0.4] * 10 + [0.1] * 2)
        assert at("rl-collapse", seen) == [(12, 12)]

    def test_numbers_that_are_none(self):
        odd = series(grad_norm=[*CALM, math.nan], entropy=[0.4] * 10 + [math.nan])
        assert at("rl-collapse", odd) == []
        before = series(grad_norm=[math.nan, *CALM, 2.0], entropy=[math.nan, *[0.4] * 10, 0.1])
        assert at("rl-collapse", before) == [(12, 12)]

    @pytest.mark.parametrize("label", ["spike-mitigation", "no-kill"])
    def test_who_is_spared(self, label):
        seen = series(grad_norm=[*CALM, 3.1], entropy=[0.4] * 10 + [0.22])
        (signal,) = fired("rl-collapse", seen, label)
        assert signal.action == "inspect"

    def test_sequence_normalisation_makes_small_numbers(self):
        small = series(grad_norm=[1e-5] * 10 + [1e-4], entropy=[0.4] * 10 + [0.1])
        assert at("rl-collapse", small) == [(11, 11)]
        assert at("rl-collapse", small, "seqnorm") == []

    def test_rollout_against_training_is_never_a_sign(self):
        odd = {"policy/rollout_train_prob_diff_mean": [1e8] * 11, "grad_norm": [*CALM, 2.0]}
        assert at("rl-collapse", series(**odd)) == []

    def test_reinforcement_learning_only(self):
        seen = series(grad_norm=[*CALM, 3.1], entropy=[0.4] * 10 + [0.22])
        assert at("rl-collapse", seen, bucket=Bucket.SFT) == []

    def test_its_thresholds_are_options(self):
        seen = series(grad_norm=[*CALM, 3.1], entropy=[0.4] * 10 + [0.22])
        assert at("rl-collapse", seen, entropy_change=0.5) == []


class TestWatch:
    def test_the_gradient_twice_after_the_first_five(self):
        assert at("rl-watch", series(grad_norm=[2.0] * 5 + [0.1] * 5)) == []
        assert at("rl-watch", series(grad_norm=[0.1] * 6 + [2.0, 0.1])) == []
        assert at("rl-watch", series(grad_norm=[0.1] * 5 + [2.0, 2.0])) == [(7, 7)]

    @pytest.mark.parametrize(
        ("name", "good", "bad"),
        [
            ("clip_ratio", 0.01, 0.011),
            ("importance_ratio", 0.84, 0.83),
            ("importance_ratio", 1.56, 1.57),
            ("importance_capped_fraction", 0.01, 0.02),
            ("log_ratio_abs_mean", 0.02, 0.03),
            ("log_ratio_abs_max", 0.5, 0.6),
            ("policy/n_tokens_dp_gt_50pct", 0.001, 0.01),
            ("policy/z_clip/triggered", 0.0, 0.25),
        ],
    )
    def test_ranges(self, name, good, bad):
        assert at("rl-watch", series(**{name: [good, good]})) == []
        (signal,) = fired("rl-watch", series(**{name: [good, bad]}))
        assert (signal.step, signal.severity, signal.action) == (2, Severity.WATCH, "inspect")

    def test_one_position_far_above_the_others(self):
        places = {f"policy/log_ratio_abs_pos{p:02d}": [0.01] for p in range(0, 100, 10)}
        assert at("rl-watch", series(**places)) == []
        places["policy/log_ratio_abs_pos90"] = [0.04]
        assert at("rl-watch", series(**places)) == [(1, 1)]

    def test_the_regime_that_explains_it(self):
        assert at("rl-watch", series(clip_ratio=[0.5]), "seqnorm") == []
        clipped = series(**{"policy/z_clip/triggered": [1.0]})
        assert at("rl-watch", clipped, "spike-mitigation") == []


class TestNan:
    @pytest.mark.parametrize("value", [math.nan, math.inf])
    @pytest.mark.parametrize("name", ["loss", "policy_loss"])
    def test_a_loss_that_is_none(self, name, value):
        (signal,) = fired("nan-loss", series(**{name: [1.0, value]}), bucket=Bucket.SFT)
        assert (signal.step, signal.action) == (2, "cancel")

    def test_zero_with_a_gradient_that_is_none(self):
        seen = series(loss=[1.0, 0.0], grad_norm=[1.0, math.nan])
        assert at("nan-loss", seen) == [(2, 2)]

    def test_one_bad_gradient_with_a_good_loss_is_a_skipped_step(self):
        assert at("nan-loss", series(loss=[1.0] * 3, grad_norm=[1.0, math.nan, 1.0])) == []
        assert at("nan-loss", series(loss=[1.0] * 3, grad_norm=[1.0, math.nan, math.nan])) == [
            (3, 3)
        ]

    def test_a_loss_of_zero_by_itself_is_fine(self):
        assert at("nan-loss", series(loss=[0.0] * 5, grad_norm=[0.1] * 5)) == []

    def test_ranks_that_count(self):
        seen = series(loss=[1.0, 1.0], loss_nan_ranks=[0.0, 2.0])
        assert at("nan-loss", seen) == [(2, 2)]


class TestExplosion:
    def test_large_and_out_of_proportion(self):
        assert at("grad-explosion", series(grad_norm=[5.0] * 6 + [150.0])) == [(7, 7)]

    def test_a_rough_start_is_none(self):
        assert (
            at("grad-explosion", series(grad_norm=[400.0, 300.0, 200.0, 150.0, 120.0, 110.0])) == []
        )

    def test_out_of_proportion_but_small(self):
        assert at("grad-explosion", series(grad_norm=[0.1] * 10 + [50.0])) == []

    def test_one_overflow_is_what_a_loss_scaler_lives_on(self):
        assert at("grad-explosion", series(grad_norm=[1.0] * 6 + [math.inf, 1.0])) == []
        assert at("grad-explosion", series(grad_norm=[1.0] * 6 + [math.inf] * 2)) == [(8, 8)]

    def test_no_number_is_no_explosion(self):
        assert at("grad-explosion", series(grad_norm=[1.0] * 6 + [math.nan] * 2)) == []


class TestDeadRun:
    def test_ten_gradients_of_exactly_zero(self):
        assert at("dead-run", series(grad_norm=[0.1] + [0.0] * 9)) == []
        assert at("dead-run", series(grad_norm=[0.1] + [0.0] * 10)) == [(11, 11)]

    def test_no_group_of_rewards_differs(self):
        assert at("dead-run", series(reward_std=[0.0] * 10)) == [(10, 10)]
        assert at("dead-run", series(frac_reward_zero_std=[1.0] * 10)) == [(10, 10)]
        assert at("dead-run", series(reward_std=[0.0] * 10), bucket=Bucket.SFT) == []

    def test_small_is_not_zero(self):
        assert at("dead-run", series(grad_norm=[1e-9] * 20)) == []

    def test_a_rounded_zero_is_not_zero(self):
        assert at("dead-run", series(grad_norm=[0.0] * 20, coarse=["grad_norm"])) == []

    def test_not_under_sequence_normalisation(self):
        assert at("dead-run", series(grad_norm=[0.0] * 20), "seqnorm") == []
