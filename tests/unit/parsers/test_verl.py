"""verl's one line a step."""

import math

import pytest

from jobmond.model.metrics import Bar, Checkpoint, Finished, LifeStart, MaxStep, Resumed, Segment
from tests.training import PARSERS, lines_of, state

LINE = b"(TaskRunner pid=1) step:%d - actor/grad_norm:0.5 - timing_s/step:12.25"


def events(text, **options):
    return list(PARSERS["verl"].read(Segment(0, text, **options), {}))


@pytest.mark.parametrize("name", ["console_plain", "console_numpy2_ray", "console_old_3f"])
def test_the_same_steps_in_every_era(name):
    found = state(lines_of(f"verl/{name}.log"))
    grads = found.track.columns()["grad_norm"]
    assert list(grads.steps) == [1, 2, 3, 4, 5, 6]
    assert grads.values[:4] == (0.021, 0.024, 0.006, 1.71)
    assert math.isinf(grads.values[5])
    assert found.step == 6


def test_reward_is_the_one_after_kl_and_both_are_kept():
    found = state(lines_of("verl/console_plain.log"))
    assert {"critic/rewards/mean", "critic/score/mean"} <= set(found.last)
    assert "reward" in found.canonical


def test_a_validation_line_is_no_step():
    found = state(b"(TaskRunner pid=1) step:0 - val-core/gsm8k/acc/mean@1:0.52\n")
    assert (found.step, found.phase) == (None, "bring-up")
    assert found.last == {"val-core/gsm8k/acc/mean@1": 0.52}


def test_pass_at_n_is_the_best_of_most():
    line = (
        b"step:5 - actor/lr:0.1 - val-core/x/acc/best@8/mean:0.7 - val-core/x/acc/best@4/mean:0.6\n"
    )
    assert state(line).canonical["pass_at_n"] == 0.7


class TestWhole:
    def test_a_newline_ends_it(self):
        assert state(LINE % 1 + b"\n").step == 1

    def test_without_one_nothing_is_known_of_the_first(self):
        assert state(LINE % 1, "verl").step is None

    def test_the_key_that_ended_the_line_before_ends_it(self):
        assert state(LINE % 1 + b"\n" + LINE % 2).step == 2
        assert state(LINE % 1 + b"\n" + (LINE % 2)[:-25]).step == 1


def test_a_bar_that_begins_later_was_resumed():
    begun = b"Training Progress:  50%|x  | 40/80 [00:00<?, ?it/s]\n"
    seen = b"Training Progress:   2%|x  | 2/80 [00:09<05:00, 4.5s/it]\n"
    assert state(begun + LINE % 41 + b"\n", "verl").resumed_from == 40
    assert state(seen + LINE % 3 + b"\n", "verl").resumed_from is None


def test_rounded_zeros_are_told_from_real_ones():
    found = state(b"step:1 - actor/grad_norm:0.000 - actor/entropy:0.0 - actor/lr:0.000\n")
    assert "grad_norm" in found.coarse
    assert "entropy" not in found.coarse


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b"Total training steps: 80", [LifeStart(), MaxStep(80)]),
        (b"Setting global step to 40", [Resumed(40)]),
        (b"Final validation metrics: None", [Finished()]),
        (b"local_global_step_folder: /x/global_step_20", [Checkpoint(20)]),
        (
            b"INFO:2026:[Rank 0] Saved optim to /x/global_step_20/actor/optim_rank_0.pt",
            [Checkpoint(20)],
        ),
        (b"Training Progress:   3%|x | 1/30 [00:01<00:52,  1.36s/it]", [Bar(1, 30, 1)]),
        (b"Load from checkpoint folder: /x/global_step_40", []),
        (b"Training from scratch", []),
        (b"my_step:4 - x", []),
    ],
)
def test_lifecycle(line, wanted):
    assert events(line) == wanted
