"""The Trainer's dictionaries and bars, alone and under TRL, LLaMA-Factory and axolotl."""

import math

import pytest

from jobmond.model.metrics import Segment
from tests.training import PARSERS, fed, lines_of, read, state

BAR = b"\r %d%%|x   | %d/%d [%s<1:00, 1.00it/s]"


def bar(n, total=200, elapsed=b"00:10"):
    return BAR % (100 * n // total, n, total, elapsed)


def record(loss, epoch="0.1", more=""):
    return f"{{'loss': {loss}, 'grad_norm': 0.5{more}, 'epoch': {epoch}}}\n".encode()


def unbuffered(steps, total=200, start=0):
    """As tqdm writes: bar, cleared line, record, bar again."""
    text = bar(start, total, b"00:00")
    for step in steps:
        text += bar(step, total) + b"\r      \r" + record(step) + bar(step, total)
    return text


class TestDictionaries:
    @pytest.mark.parametrize("version", ["hf_v4.57.1", "hf_v5.24.0"])
    def test_quoted_and_bare_numbers(self, version):
        found = read(lines_of(f"sft/{version}.raw.log"))
        assert found.parser.name == "hf"
        column = found.state.track.columns()["loss"]
        assert column.steps[:3] == (10, 20, 30)
        assert column.values[0] == pytest.approx(1.87)
        assert math.isnan(found.state.canonical["grad_norm"])
        assert found.state.phase == "done"

    def test_a_bar_torn_by_bad_bytes(self):
        found = state(lines_of("composite/bad_bytes.log"))
        assert math.isnan(found.last["loss"])
        assert math.isinf(found.last["grad_norm"])

    def test_a_dictionary_counts_with_its_brace_and_not_before(self):
        text = unbuffered([1, 2])
        text = text[: text.rindex(b"}") + 1]
        assert state(text).records == 2
        assert state(text[:-1]).records == 1

    def test_no_other_dictionary_is_a_record(self):
        for text in (b"{'task': {'name': 'x'}}", b"{'epoch': 1}", b"{'loss_type': 'x'}", b"{'los"):
            assert list(PARSERS["hf"].read(Segment(0, text), {})) == []

    def test_output_written_in_blocks_tears_a_record_in_two(self):
        head, tail = record(7)[:25], record(7)[25:]
        torn = record(6) + head + bar(9) + bar(10) + b"\n" + tail
        found = state(bar(0) + torn, "hf")
        assert (found.records, found.last["loss"]) == (2, 7)


class TestSteps:
    def test_the_larger_of_bar_and_record(self):
        assert state(unbuffered([1, 2]) + bar(3)).step == 3

    def test_a_record_without_its_bar_is_one_further(self):
        text = unbuffered([1, 2, 3]) + b"\r    \r" + record(4).rstrip()
        assert state(text).step == 4

    def test_a_record_on_the_line_of_its_bar(self):
        text = bar(0, elapsed=b"00:00")
        for step in range(10, 210, 10):
            text += bar(step) + record(step) + bar(step + 1 if step < 200 else step)
        found = state(text)
        assert found.track.columns()["loss"].steps == tuple(range(10, 210, 10))
        assert found.step == 200

    def test_the_interval_of_logging_is_found(self):
        found = state(unbuffered(range(10, 110, 10)))
        assert found.track.columns()["loss"].steps == tuple(range(10, 110, 10))

    def test_the_first_step_may_be_logged_besides(self):
        found = state(unbuffered([1, 10, 20, 30]))
        assert found.track.columns()["loss"].steps == (1, 10, 20, 30)

    def test_bursts_of_a_buffered_log_are_counted_back(self):
        bars = b"".join(bar(n) for n in range(61))
        burst = b"".join(record(n) for n in range(5, 65, 5))
        later = b"".join(bar(n) for n in range(61, 122)) + b"".join(
            record(n) for n in range(65, 125, 5)
        )
        found = state(bars + burst + bar(60) + later)
        assert found.track.columns()["loss"].steps == tuple(range(5, 125, 5))
        assert found.track.columns()["loss"].values[0] == 5

    def test_records_that_stop_being_followed_by_bars(self):
        text = unbuffered(range(61, 67)) + bar(90) + b"".join(map(record, range(67, 91))) + bar(90)
        assert state(text).track.columns()["loss"].steps == tuple(range(61, 91))

    def test_a_burst_after_a_resume(self):
        bars = bar(0, elapsed=b"00:00") + b"".join(bar(n) for n in range(61, 91))
        text = bars + b"".join(map(record, range(61, 91))) + bar(90)
        assert state(text).track.columns()["loss"].steps == tuple(range(61, 91))

    def test_without_a_bar_no_step_is_proved(self):
        found = state(record(1) + record(2))
        assert (found.step, found.max_step, found.phase) == (None, None, "training")


class TestBars:
    @pytest.mark.parametrize(
        "other",
        [
            b"\rPacking train dataset (num_proc=2): 100%|x| 200/200 [00:01<00:00, 90.1 examples/s]",
            b"100%|x| 41000/41000 [05:12<00:00, 131.2 examples/s]",
            b"\rWriting model shards: 100%|x| 1/1 [00:00<00:00, 20.0it/s]",
            b"\rLoading weights: 100%|x| 26/26 [00:00<00:00, 20.0it/s]",
        ],
    )
    def test_other_bars_are_not_training(self, other):
        assert state(other + b"\n" + unbuffered([1, 2]) + other).max_step == 200
        assert state(other, "hf").step is None

    def test_evaluation_in_between_has_its_own_total(self):
        text = unbuffered([1, 2]) + bar(0, 16) + bar(16, 16) + bar(3)
        assert (state(text).step, state(text).max_step) == (3, 200)

    def test_an_evaluation_before_training_gives_way(self):
        text = bar(0, 16, b"00:00") + bar(16, 16) + unbuffered([1, 2])
        assert (state(text).step, state(text).max_step) == (2, 200)

    def test_the_banner_says_which_bar_counts(self):
        banner = b"[INFO|trainer.py:2527] >>   Total optimization steps = 1,916\n"
        text = banner + bar(0, 200) + bar(7, 1916) + bar(100, 200)
        assert (state(text, "hf").step, state(text, "hf").max_step) == (7, 1916)

    def test_a_bar_cut_inside_its_numbers_is_none(self):
        text = unbuffered([1, 2]) + bar(34)[:13]
        assert state(text).step == 2


class TestLives:
    def test_a_bar_that_starts_again_is_a_life(self):
        found = state(unbuffered(range(1, 78)) + b"\n" + unbuffered(range(61, 70)))
        assert (found.life, found.step, found.resumed_from) == (2, 69, 60)
        values = found.track.columns()["loss"]
        assert (values.at(77), values.at(61)) == (77, 61)

    def test_a_leap_from_nothing_is_a_resume(self):
        assert state(unbuffered(range(61, 65))).resumed_from == 60

    def test_a_slow_logger_is_no_resume(self):
        assert state(unbuffered(range(10, 60, 10))).resumed_from is None

    def test_the_trainer_says_where_it_goes_on(self):
        banner = (
            b"***** Running training *****\n"
            b"  Total optimization steps = 200\n"
            b"  Continuing training from global step 60\n"
        )
        assert state(banner + unbuffered([61, 62]), "hf").resumed_from == 60

    def test_a_banner_of_every_rank_is_one_life(self):
        banner = b"***** Running training *****\n  Total optimization steps = 200\n"
        assert state(banner + bar(0) + banner + unbuffered([1, 2]), "hf").life == 1

    def test_another_rank_s_bar_that_lags_is_no_life(self):
        assert state(unbuffered([1, 2]) + bar(5) + bar(4) + bar(6)).life == 1


class TestCheckpoints:
    SAVING = b"[INFO|trainer.py:4309] >> Saving model checkpoint to /x/checkpoint-40\n"

    def test_counts_when_training_goes_on(self):
        assert state(unbuffered([39, 40]) + self.SAVING).checkpoints == set()
        assert state(unbuffered([39, 40]) + self.SAVING + bar(41)).checkpoints == {40}

    def test_the_final_model_is_none(self):
        assert not state(self.SAVING.replace(b"/checkpoint-40", b"") + bar(41), "hf").checkpoints


def test_a_shell_says_terminated_on_the_bar_s_line():
    assert state(unbuffered([1, 2]) + b"Terminated").phase == "failed"
    assert state(unbuffered([1, 2]) + b"Terminated\n" + bar(3) + record(3)).phase == "training"


class TestWhoBuiltOnIt:
    @pytest.mark.parametrize("version", ["grpo_hf4", "grpo_hf5"])
    def test_grpo_is_reinforcement_learning(self, version):
        found = read(lines_of(f"trl/{version}.raw.log"))
        assert (found.parser.name, found.state.bucket) == ("trl", "rl")
        assert found.state.canonical["policy_loss"] == found.state.canonical["loss"] == 0.0036
        assert found.state.canonical["clip_ratio"] == 0.001

    def test_the_second_record_of_an_iteration_has_no_reward(self):
        first = record(1, more=", 'reward': 0.4, 'clip_ratio/region_mean': 0.1")
        second = record(2, more=", 'clip_ratio/region_mean': 0.2")
        found = state(bar(0) + first + second)
        assert found.canonical["reward"] == 0.4
        assert found.canonical["policy_loss"] == 2

    def test_trl_sft_prints_entropy_and_is_none(self):
        text = bar(0) + record(1, more=", 'entropy': 6.5, 'mean_token_accuracy': 0.1")
        assert (read(text).parser.name, read(text).state.bucket) == ("trl", "sft")

    def test_llama_factory_by_its_logger_s_name(self):
        line = b"[INFO|2026-11-29 16:04:29] llamafactory.model.loader:144 >> x\n"
        assert read(line + unbuffered([1])).parser.name == "llamafactory"

    def test_the_fork_by_its_keys_even_late(self):
        found = read(lines_of("composite/llamafactory.out"))
        assert found.parser.name == "llamafactory"
        assert (found.state.step, found.state.max_step) == (321, 916)
        assert found.state.last["loss_nan_ranks"] == 0
        assert found.state.checkpoints == {320}

    def test_axolotl_and_its_keys_with_spaces(self):
        keys = ", 'memory/max_active (GiB)': 12.5, 'tokens/train_per_sec_per_gpu': 100.0"
        line = b"[2026-07-14 09:00:00,123] [INFO] [axolotl.train.train] [PID:1] [RANK:0] hello\n"
        found = read(line + bar(0) + record(1, more=keys))
        assert found.parser.name == "axolotl"
        assert found.state.last["memory/max_active (GiB)"] == 12.5

    def test_the_plain_trainer_where_nothing_else_shows(self):
        assert read(unbuffered([1])).parser.name == "hf"

    def test_bars_alone_are_shown_but_prove_nothing(self):
        following = fed(b"Loading weights: 100%|x| 26/26\n" + bar(0) + bar(121))
        assert not following.settled
        found = following.finish()
        assert (found.parser.name, found.state.step) == ("hf", 121)


class TestBarsAroundRecords:
    """Which of the two bars beside a record is at its step."""

    def log(self, *parts):
        text = bar(0, elapsed=b"00:00")
        for part in parts:
            text += bar(part) if part > 0 else b"\r      \r" + record(-part)
        return state(text).track.columns()["loss"].steps

    def test_painted_again(self):
        assert self.log(1, -1, 1, 2, -2, 2) == (1, 2)

    def test_painted_again_though_the_one_before_lagged(self):
        assert self.log(7, -10, 10, 18, -20, 20, 29, -30, 30) == (10, 20, 30)

    def test_steps_faster_than_bars(self):
        assert self.log(-1, 1, -2, 2, -3, 3) == (1, 2, 3)

    def test_not_painted_again(self):
        assert self.log(10, -10, 11, 20, -20, 21, 30, -30, 31) == (10, 20, 30)

    def test_not_painted_again_and_every_step_logged(self):
        assert self.log(1, -1, 2, -2, 3, -3, 4) == (1, 2, 3)

    def test_the_end_is_not_overrun(self):
        assert self.log(10, -10, 11, 20, -20) == (10, 20)
