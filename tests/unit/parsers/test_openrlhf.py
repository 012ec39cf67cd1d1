"""OpenRLHF's dictionary a line."""

import math

from tests.training import lines_of, read, state


def test_six_steps():
    found = read(lines_of("openrlhf/ppo.log"))
    assert found.parser.name == "openrlhf"
    grads = found.state.track.columns()["grad_norm"]
    assert grads.steps == (1, 2, 3, 4, 5, 6)
    assert grads.values[4] == 6.04
    assert math.isnan(found.state.canonical["reward"])
    assert found.state.rate_s_per_step == 93.2


def test_its_bars_count_something_else():
    found = state(lines_of("openrlhf/ppo.log"))
    assert (found.step, found.max_step) == (6, None)


def test_only_a_closed_brace_counts():
    line = b"x ppo_trainer.py:547] Global step 7: {'policy_loss': 0.1, 'reward': 0.5}"
    assert state(line[:-1], "openrlhf").step is None
    assert state(line, "openrlhf").step == 7


def test_an_evaluation_is_no_step():
    line = b"Evaluation completed in 00:01:02, global_step 9, eval_metrics: {'eval_pass1': 0.5}\n"
    found = state(b"Global step 7: {'reward': 0.5}\n" + line)
    assert (found.step, found.last["eval_pass1"]) == (7, 0.5)
