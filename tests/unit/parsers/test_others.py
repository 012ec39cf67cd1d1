"""Dialects of which only lines rendered from the source are stored."""

import math

import pytest

from tests.training import lines_of, read, state

GRADS = (0.021, 0.024, 0.006, 1.71, 6.04)


class TestSlime:
    def test_training_and_rollouts(self):
        found = read(lines_of("slime/train.log"))
        assert found.parser.name == "slime"
        assert found.state.track.columns()["grad_norm"].values[:5] == GRADS
        assert found.state.track.columns()["reward"].values[:5] == (
            0.451,
            0.462,
            0.619,
            0.54,
            0.212,
        )
        assert (found.state.step, found.state.life) == (5, 1)

    def test_a_rollout_s_number_is_no_step(self):
        line = b"x - step 7: {'train/loss': 0.1}\nx - rollout 3: {'rollout/raw_reward': 0.5}\n"
        assert state(line).step == 7
        assert state(line).track.columns()["reward"].steps == (7,)

    def test_only_a_closed_brace_counts(self):
        assert state(b"x - step 7: {'train/loss': 0.1", "slime").step is None
        assert state(b"x - step 7: {'train/loss': 0.1}", "slime").step == 7


class TestPrimeRl:
    def test_the_trainer(self):
        found = read(lines_of("prime_rl/trainer.log"))
        assert found.parser.name == "prime-rl"
        assert found.state.track.columns()["grad_norm"].values[:5] == GRADS
        assert math.isnan(found.state.canonical["loss"])
        assert found.state.rate_s_per_step == 35.12

    def test_the_orchestrator(self):
        found = read(lines_of("prime_rl/orchestrator.log"))
        assert found.parser.name == "prime-rl"
        assert found.state.track.columns()["reward"].at(2) == 0.619

    def test_both_in_one_log_are_one_record(self):
        trainer = lines_of("prime_rl/trainer.log").split(b"\n")
        orchestrator = lines_of("prime_rl/orchestrator.log").split(b"\n")
        both = b"\n".join(line for pair in zip(trainer, orchestrator, strict=True) for line in pair)
        found = state(both)
        assert (found.life, found.step) == (1, 5)
        assert found.track.columns()["grad_norm"].at(3) == 1.71
        assert found.track.columns()["reward"].at(3) == 0.54

    def test_a_line_that_is_cut_waits(self):
        whole = lines_of("prime_rl/trainer.log")
        cut = whole[: whole.rindex(b"| LR")]
        assert state(cut).step == 4


class TestNemoRl:
    def test_blocks(self):
        found = read(lines_of("nemo_rl/grpo.log"))
        assert found.parser.name == "nemo-rl"
        rewards = found.state.track.columns()["reward"]
        assert rewards.steps == (5, 6, 7, 8, 9, 10)
        assert rewards.values[:5] == (0.451, 0.462, 0.619, 0.54, 0.212)
        assert (found.state.max_step, found.state.rate_s_per_step) == (100, 34.12)

    def test_a_block_counts_with_its_step_time(self):
        whole = lines_of("nemo_rl/grpo.log")
        cut = whole[: whole.rindex(b"  \xe2\x80\xa2 Total step time")]
        assert state(cut).step == 9

    def test_what_is_not_printed_is_absent(self):
        assert not {"entropy", "grad_norm"} & state(lines_of("nemo_rl/grpo.log")).canonical.keys()


class TestAreal:
    def test_the_table(self):
        found = read(lines_of("areal/train.log"))
        assert found.parser.name == "areal"
        assert (found.state.step, found.state.max_step) == (3, 290)
        assert found.state.canonical["reward"] == 0.451
        assert found.state.canonical["importance_ratio"] == 1.0002
        assert found.state.last["correct_n_seqs"] == 114

    def test_its_lower_edge_makes_it_whole(self):
        whole = lines_of("areal/train.log")
        assert state(whole[: whole.rindex("╘".encode())]).step is None


class TestTorchtune:
    def test_the_disk_logger(self):
        found = read(lines_of("sft/torchtune_log_1700000000.txt"))
        assert found.parser.name == "torchtune"
        assert found.state.track.columns()["loss"].values == pytest.approx((1.39, 1.38, 1.37))

    def test_the_description_of_its_bar(self):
        bar = b"\r1|41|Loss: 1.25:  10%|x  | 41/420 [01:00<09:00, 1.4s/it]"
        again = b"\r2|421|Loss: 1.125:   0%|x  | 1/420 [00:01<09:00, 1.4s/it]"
        found = state(bar + again)
        assert (found.step, found.max_step, found.canonical["loss"]) == (421, None, 1.125)
