from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.shaping import Regime, marks, regime, rollouts_per_step
from tests.training import log, state

SHAPED, BASE = Regime.SHAPED, Regime.BASE


@pytest.mark.parametrize(
    ("reward", "rollouts", "found"),
    [
        (0.234375, 128, BASE),  # 30 of 128
        (0.2344, 128, BASE),  # the same with four decimals
        (0.6145833333333334, 96, BASE),  # 59 of 96
        (0.6145833134651184, 96, BASE),  # the same in single precision
        (0, 128, None),  # how exact a bare zero is nobody knows
        (0.61913, 512, SHAPED),  # 316.99 rollouts
        (0.31731, 64, SHAPED),
        (-0.234375, 128, BASE),
        (0.62, 128, None),  # two decimals leave 0.64 rollouts open
        (0.619, 512, None),
        (float("nan"), 128, None),
        ("nan", 128, None),
        (None, 128, None),
        (0.234375, None, None),  # without a known count nothing is said
    ],
)
def test_what_one_reward_tells(reward, rollouts, found):
    assert regime(reward, rollouts) is found


def test_other_steps_show_how_exactly_a_log_prints():
    assert regime(0.5, 128) is None
    assert regime(0.5, 128, like=(0.234375,)) is BASE
    assert regime(0.51, 128, like=(0.234375,)) is SHAPED


def test_the_count_comes_from_the_trainer():
    assert rollouts_per_step({"generate/batch_num_seq": 128.0}) == 128
    assert rollouts_per_step({"generate/batch_num_seq": 128.5}) is None
    assert rollouts_per_step({"generate/batch_num_seq": 0}) is None
    assert rollouts_per_step({"generate/batch_num_seq": "nan"}) is None
    assert rollouts_per_step({"reward": 0.5}) is None


def test_two_regimes_in_one_table_are_marked():
    assert marks([SHAPED, BASE, None]) == [SHAPED, BASE, None]
    assert marks([SHAPED]) == [SHAPED]
    assert marks([BASE, BASE, None]) == [None, None, None]
    assert marks([None]) == [None]
    assert marks([]) == []


@pytest.mark.parametrize("name", ["skyrl_legacy_collapse", "skyrl_head_ok"])
def test_real_runs_with_whole_rewards(name):
    last = state(log(name))
    rewards = last.track.columns({"reward"})["reward"].values
    assert rollouts_per_step(last.last) == 128
    assert regime(rewards[10], 128, like=rewards) is BASE


@given(st.integers(1, 4096), st.data())
def test_whole_sums_are_base_in_either_precision(rollouts, data):
    total = data.draw(st.integers(-rollouts, rollouts))
    assert regime(total / rollouts, rollouts, like=(0.1234567890123,)) is BASE


@given(st.integers(2, 2048), st.data())
def test_sums_well_off_whole_numbers_are_shaped(rollouts, data):
    total = data.draw(st.integers(-rollouts, rollouts))
    off = data.draw(st.sampled_from([Fraction(1, 2), Fraction(1, 3), Fraction(2, 7)]))
    reward = float((total + off) / rollouts)
    assert regime(reward, rollouts, like=(0.1234567890123,)) is SHAPED


@given(st.floats(), st.integers(1, 10**9), st.lists(st.floats(), max_size=3))
def test_any_number_is_taken(reward, rollouts, like):
    assert regime(reward, rollouts, like=like) in (SHAPED, BASE, None)
