import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.trend import TrendFacts, trend, trend_facts
from jobmond.model.state import Bucket
from tests.training import LOGS, fed, log, read

RL = TrendFacts("training", step=26, max_step=80, life_steps=26)
SFT = replace(RL, step=320, max_step=916, life_steps=320, descending=True)


def rl(*values, **facts):
    return trend(replace(RL, values=values, **facts))


def sft(*values, **facts):
    return trend(replace(SFT, values=values, **facts))


LEVEL = (0.65, 0.654, 0.652, 0.651, 0.653, 0.652, 0.65, 0.654, 0.652, 0.652)
FLAT = (0.45, 0.46, 0.44, 0.455, 0.445, 0.45, 0.46, 0.44, 0.455, 0.445, 0.451)
DOWN = (1.5, 1.46, 1.44, 1.4, 1.38, 1.35, 1.32, 1.3, 1.27, 1.24, 1.21)
UP = tuple(reversed(DOWN))


def test_the_words_of_the_known_tables():
    shaped = replace(RL, step=15, values=(*LEVEL, 0.619), grad_norms=(0.006,), saved=15)
    assert trend(shaped) == "Checkpoint saved. Slight dip from 0.652"
    assert rl(*FLAT, grad_norms=(0.021,)) == "Stable, gradients strong"
    assert sft(*DOWN, grad_norms=(0.9, 0.8, 0.85, 0.9, 0.8, 0.84)) == "Loss descending; healthy"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((*LEVEL, 0.685), "Slight rise from 0.652"),
        ((*LEVEL, 0.55), "Dip from 0.652"),
        ((*LEVEL, 0.8), "Rise from 0.652"),
        ((*LEVEL, 0.2), "Sharp drop from 0.652"),
        ((*LEVEL, 1.5), "Jump from 0.652"),
        ((0.2, 0.24, 0.28, 0.32, 0.36, 0.4), "Rising from 0.240"),
        ((0.4, 0.36, 0.32, 0.28, 0.24, 0.2), "Falling from 0.360"),
        ((*LEVEL, 0.652), "Stable"),
        ((0.0,) * 11, "Unchanged at 0.000"),
        ((0.07, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), "Unchanged at 0.000"),
        ((0.5, 0.48, 0.52, 0.0, 0.0, 0.0, 0.0), "Falling from 0.500"),
        ((-0.5, -0.5, -0.5, -0.5, -0.5, -0.6), "Dip from -0.500"),
        ((0.5, float("nan")), "Reward is NaN"),
        ((0.5, float("inf")), "Reward is infinite"),
        ((0.5, float("nan"), 0.5, 0.5), "Unchanged at 0.500"),
        ((0.5, 0.6), "Too early to tell"),
        ((), "No metrics yet"),
    ],
)
def test_where_a_reward_goes(values, words):
    assert rl(*values) == words


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (DOWN, "Loss descending"),
        (UP, "Loss rising from 1.27"),
        ((1.2, 1.2, 1.21, 1.19, 1.2, 1.2), "Loss flat"),
        ((1.2, 1.2, 1.21, 1.19, 1.2, 3.4), "Loss jumped from 1.20"),
        ((1.2, 1.2, 1.21, 1.19, 1.2, 1.3), "Loss up from 1.20"),
        ((1.2, 1.2, 1.21, 1.19, 1.2, 1.1), "Loss down from 1.20"),
        ((500.0, 20.0, 150.0, 117.0, 480.0, 30.0, 200.0), "Loss unsteady around 216.17"),
        ((0.0, 0.0, 0.0), "Loss unchanged at 0.00"),
        ((1.2, float("nan")), "Loss is NaN"),
    ],
)
def test_where_a_loss_goes(values, words):
    assert sft(*values) == words


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"grad_norms": (0.02,)}, "Stable, gradients strong"),
        ({"grad_norms": (0.02,), "troubled": True}, "Stable"),
        ({"grad_norms": (0.002,)}, "Stable, gradients small"),
        ({"grad_norms": (1e-5,), "seqnorm": True}, "Stable"),
        ({"grad_norms": (3.1,)}, "Stable, gradients large"),
        ({"grad_norms": (0.0,), "seqnorm": True}, "Stable, gradients zero"),
        ({"grad_norms": (float("nan"),)}, "Stable"),
    ],
)
def test_what_gradients_add_to_a_reward(facts, words):
    assert rl(*FLAT, **facts) == words


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"grad_norms": (0.84,)}, "Loss descending; healthy"),
        ({"grad_norms": (0.84,), "troubled": True}, "Loss descending"),
        ({"grad_norms": (0.8, 0.9, 0.8, 0.9, 0.8, 1.7)}, "Loss descending; gradients up"),
        ({"grad_norms": (0.8, 0.9, 0.8, 0.9, 1.7)}, "Loss descending; healthy"),
        ({"grad_norms": (160.0,)}, "Loss descending; gradients up"),
        ({"grad_norms": (0.0,)}, "Loss descending; gradients zero"),
        ({"grad_norms": (float("inf"),)}, "Loss descending; gradients not finite"),
    ],
)
def test_what_gradients_add_to_a_loss(facts, words):
    assert sft(*DOWN, **facts) == words


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"saved": 26}, "Checkpoint saved. Stable"),
        ({"saved": 20, "before_step": 18}, "Checkpoint saved at 20. Stable"),
        ({"saved": 20, "before_step": 20}, "Stable"),
        ({"saved": 20}, "Stable"),
        ({"saved": 60, "before_step": 20}, "Stable"),  # of a life that had got further
        ({"behind": True}, "Its log is still being read"),
        ({"behind": True, "saved": 26}, "Checkpoint saved. Its log is still being read"),
        ({"life": 2, "life_steps": 6, "resumed_from": 20}, "Resumed at 20. Stable"),
        ({"life": 2, "life_steps": 6, "first_step": 21}, "Resumed at 20. Stable"),
        ({"life": 2, "life_steps": 6, "first_step": 1}, "Started over. Stable"),
        ({"life": 2, "life_steps": 11, "first_step": 1}, "Stable"),
        ({"life": 1, "life_steps": 6, "first_step": 1}, "Stable"),
        ({"still_s": 1500.0}, "No new step for 25m. Stable"),
        ({"still_s": 1500.0, "rate_s_per_step": 600.0}, "Stable"),
        ({"still_s": 599.0}, "Stable"),
        ({"phase": "finishing", "saved": 26}, "Checkpoint saved. Last step reached. Stable"),
    ],
)
def test_what_has_just_changed(facts, words):
    assert rl(*FLAT, **facts) == words


def test_the_first_step():
    assert rl(0.25, life_steps=1, first_step=1) == "First step landed"


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (TrendFacts("queued"), "Queued"),
        (TrendFacts("queued", phase_s=7500), "Queued for 2h05m"),
        (TrendFacts("bring-up", phase_s=720), "Bring-up for 12m"),
        (TrendFacts("bring-up", phase_s=45, resumed_from=40), "Bring-up for 45s, resuming from 40"),
        (TrendFacts("bring-up", resumed_from=0), "Bring-up"),
        (TrendFacts("done", step=80, max_step=80), "Done at step 80"),
        (TrendFacts("done", step=40, max_step=80), "Done at step 40 of 80"),
        (TrendFacts("done"), "Done"),
        (TrendFacts("failed", step=12, max_step=80), "Failed at step 12 of 80"),
        (TrendFacts("failed"), "Failed before the first step"),
        (TrendFacts("training"), None),
    ],
)
def test_before_and_after_training(facts, words):
    assert trend(facts) == words


NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


@given(st.lists(NUMBERS, max_size=15), st.lists(NUMBERS, max_size=15), st.booleans(), st.booleans())
def test_any_numbers_give_one_short_line(values, grad_norms, descending, troubled):
    facts = replace(
        RL,
        values=tuple(values),
        grad_norms=tuple(grad_norms),
        descending=descending,
        troubled=troubled,
    )
    said = trend(facts)
    assert said is not None
    assert said.isprintable()
    assert len(said) < 80
    assert trend(facts) == said
    assert not (troubled and ("healthy" in said or "strong" in said))


def words(said):
    return re.sub(r"-?\d\S*", "N", said)


@given(
    st.lists(st.integers(-1000, 1000), min_size=3, max_size=11), st.sampled_from([1 / 64, 2, 1024])
)
def test_the_words_do_not_depend_on_the_unit(values, factor):
    scaled = [value * factor for value in values]
    assert words(rl(*map(float, values))) == words(rl(*scaled))
    assert words(sft(*map(float, values))) == words(sft(*scaled))


@given(st.lists(st.integers(1, 1000), min_size=3, max_size=11))
def test_a_mirrored_reward_goes_the_other_way(values):
    mirror = {
        "Rising": "Falling", "Jump": "Sharp drop", "Rise": "Dip", "Slight rise": "Slight dip",
    }  # fmt: skip
    mirror |= {there: here for here, there in mirror.items()}
    here = rl(*map(float, values)).partition(" from")[0]
    there = rl(*(-float(value) for value in values)).partition(" from")[0]
    assert there.partition(" at")[0] == mirror.get(here, here.partition(" at")[0])


def at(name, share, bucket, **facts):
    raw = log(name)
    found = read(raw[: int(len(raw) * share)])
    return trend(trend_facts(found.state, bucket, **facts))


def test_real_runs_read_as_what_they_are():
    assert at("skyrl_head_ok", 0.25, Bucket.RL).startswith("Rising from 0.")
    assert "Falling" in at("skyrl_legacy_collapse", 0.75, Bucket.RL)
    assert "gradients large" in at("skyrl_legacy_collapse", 0.75, Bucket.RL)
    assert at("hf5_sft_ok", 0.25, Bucket.SFT) == "Loss descending; healthy"
    assert at("verl_resume_numpy1", 0.08, Bucket.RL).startswith("Resumed at 40")
    assert at("skyrl_legacy_seqnorm_ok", 0.5, Bucket.RL, seqnorm=True).startswith("Rising")
    assert at("hf5_sft_ok", 1, Bucket.SFT) == "Done at step 200"


@pytest.mark.parametrize("name", [name for name in LOGS if not name.startswith("lmeval")])
def test_every_stored_log_has_a_trend_at_every_quarter(name):
    raw = log(name)
    for quarter in (1, 2, 3, 4):
        found = fed(raw[: len(raw) * quarter // 4]).finish()
        if found is not None and found.state.step is not None:
            assert trend(trend_facts(found.state, found.state.bucket))
