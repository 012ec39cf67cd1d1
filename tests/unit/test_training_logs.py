"""Whole logs against what a recorder inside the trainer saw, at the end and at every cut."""

from functools import cache

import pytest

from tests.training import LOGS, fired_at, firings, log, near, read, reader, truth

TRAINING = [name for name in LOGS if not name.startswith("lmeval")]
CUTS = [
    (name, {**cut, "offset": cut.get("offset", len(log(name)))})
    for name in TRAINING
    for cut in (truth(name)["eof"], *truth(name)["offsets"])
]
DIALECT = {"hf4": "hf", "hf5": "hf", "trl": "trl", "lf4": "llamafactory"}
PHASES = {
    "startup": {"bring-up"},
    "training": {"training", "finishing"},
    "finished": {"done"},
    "failed": {"failed", "training"},  # most failures are proved by the fault catalogue
}
CANONICAL = {"imp_ratio_mean": "importance_ratio", "imp_ratio_capped": "importance_capped_fraction"}


@cache
def at(name, offset):
    following = reader()
    following.feed(log(name)[:offset])
    return following.finish()


@pytest.mark.parametrize(
    ("name", "cut"), CUTS, ids=lambda v: v if isinstance(v, str) else v["offset"]
)
class TestAtEveryCut:
    def test_step_and_last_step(self, name, cut):
        found = at(name, cut["offset"])
        step = found.state.step if found else None
        printed = "notqdm" not in name
        if cut["phase"] == "startup" or not printed:
            assert step is None
            return
        assert step in (cut["step"], cut.get("step_bar_if_partial_paint_is_read"))
        if cut["max_step"] is not None:
            assert found.state.max_step == cut["max_step"]

    def test_phase_and_life(self, name, cut):
        found = at(name, cut["offset"])
        phase = found.state.phase if found else "bring-up"
        assert phase in PHASES[cut["phase"]]
        if found and cut.get("life"):
            assert found.state.life == cut["life"]
        if found and cut.get("resumed_from") is not None:
            assert found.state.resumed_from == cut["resumed_from"]

    def test_every_last_metric(self, name, cut):
        found = at(name, cut["offset"])
        metrics = cut.get("metrics") or {}
        wanted = {key: value for key, value in metrics.items() if _number(value)}
        for key, value in wanted.items():
            got = found.state.last.get(key)
            rounded = key == "epoch" and got == pytest.approx(float(value), abs=0.0051)
            assert near(got, value) or rounded, key

    def test_canonical_names(self, name, cut):
        found = at(name, cut["offset"])
        names = truth(name).get("key_map") or {"loss": 0, "grad_norm": 0, "reward": 0}
        for key in names:
            canonical = CANONICAL.get(key, key)
            if _number(cut.get(key)) and key not in ("score", "step_time"):
                assert near(found.state.canonical.get(canonical), cut[key]), key

    def test_checkpoints_that_the_text_names(self, name, cut):
        found = at(name, cut["offset"])
        if "checkpoints_named_in_text" in cut:
            named = sorted(found.state.checkpoints) if found else []
            assert named == cut["checkpoints_named_in_text"]


def _number(value):
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return False
    return isinstance(value, int | float) or value in ("nan", "inf", "-inf")


@pytest.mark.parametrize("name", TRAINING)
def test_the_dialect_is_recognised(name):
    family = name.split("_", maxsplit=1)[0]
    assert read(log(name)).parser.name == DIALECT.get(family, family)


@pytest.mark.parametrize("name", ["lmeval_ok", "lmeval_sigterm"])
def test_an_evaluation_has_no_steps_whatever_its_bars_say(name):
    found = read(log(name))
    assert found.parser.name == "lm-eval"
    assert found.state.step is None


@pytest.mark.parametrize("name", [n for n in TRAINING if truth(n).get("collapse")])
def test_collapse_at_exactly_the_steps_at_which_two_signs_hold(name):
    wanted = truth(name)["collapse"]["rule_fires_at_steps"]
    assert fired_at(firings(log(name)), "rl-collapse") == wanted


HEALTHY = [
    "hf5_sft_ok",
    "hf5_sft_ok_buffered",
    "hf5_sft_resume",
    "lf4_sft_packing",
    "megatron_ok",
    "skyrl_head_ok",
    "skyrl_legacy_seqnorm_ok",
    "trl_grpo_ok",
    "trl_sft_packing",
    "verl_ok",
    "verl_resume_numpy1",
]


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_about_a_healthy_run(name):
    assert firings(log(name)) == []


def test_a_loss_that_prints_as_zero_while_the_gradient_is_nan():
    assert fired_at(firings(log("hf5_sft_nan")), "nan-loss")[0] == 43


def test_a_gradient_that_explodes_while_the_loss_stays_finite():
    found = firings(log("hf5_sft_gradexplode"))
    first = truth("hf5_sft_gradexplode")["grad_norm"]["first_step_gt_100"]
    assert fired_at(found, "grad-explosion")[0] == first == 19


def test_a_run_that_learns_nothing_any_more():
    # From step 47 on the gradient is zero: ten of them at 56.
    assert 56 in fired_at(firings(log("trl_grpo_collapse")), "dead-run")


@pytest.mark.parametrize("name", [n for n in TRAINING if "notqdm" not in n])
def test_pace_is_free_of_the_pauses_for_saving(name):
    # Bars show whole seconds, and verl's and SkyRL's own step time leaves out what is between.
    wanted = truth(name)["eof"]["rate_s_per_it"]["median_step"]
    assert read(log(name)).state.rate_s_per_step == pytest.approx(wanted, rel=0.2)
