"""SkyRL's four ways of saying a step's numbers, and its life."""

import math

import pytest

from jobmond.model.metrics import Bar, Checkpoint, Failed, Finished, Resumed, Segment
from tests.training import PARSERS, fed, lines_of, read, state

MIRROR = b'x WANDB_MIRROR kind=train step=%d metrics={"policy/raw_grad_norm": %s}\n'
STATUS = (
    b"2026 | INFO | skyrl.train.trainer:train:497 - {'final_loss': 0.1, 'policy_loss': 1e-05, "
    b"'raw_grad_norm': 9.7e-06, 'policy_entropy': 0.5}\n"
)
BLOCK = (
    b"2026 | INFO | skyrl.train.utils.tracking:log:189 - Step 3: \n"
    b"{'policy/policy_loss': '0.0000',\n"
    b" 'policy/raw_grad_norm': '0.0000',\n"
    b" 'reward/avg_raw_reward': '0.2500',\n"
    b" 'trainer/global_step': 3}\n"
)
STARTED = b"2026 | INFO | skyrl.train.trainer:train:342 - Started: 'step'\n"


def events(text):
    return list(PARSERS["skyrl"].read(Segment(0, text), {}))


class TestMirror:
    def test_six_steps_and_an_evaluation(self):
        found = state(lines_of("skyrl/marin_wandb_mirror.ansi_ray.log"))
        column = found.track.columns()["grad_norm"]
        assert list(column.steps) == [24, 25, 26, 27, 28, 29]
        assert column.values[3] == 1.71
        assert math.isinf(column.values[5])
        assert found.step == 29

    def test_colour_and_plain_say_the_same(self):
        colour = state(lines_of("skyrl/marin_wandb_mirror.ansi_ray.log"))
        plain = state(lines_of("skyrl/marin_wandb_mirror.plain.log"))
        assert repr(colour.last) == repr(plain.last)

    def test_a_payload_that_could_not_be_written_is_a_step_without_values(self):
        line = b'WANDB_MIRROR kind=train step=10 metrics={"_serialize_error": "Table"}\n'
        found = state(MIRROR % (9, b"0.5") + line)
        assert (found.step, found.last) == (10, {"policy/raw_grad_norm": 0.5})

    def test_no_closing_brace_no_step(self):
        whole = MIRROR % (9, b"0.5") + MIRROR % (10, b"0.6")
        assert state(whole[:-2]).step == 9
        assert state(whole[:-1]).step == 10

    def test_the_later_of_two_equal_steps_wins(self):
        found = state(MIRROR % (9, b"0.5") + MIRROR % (9, b"0.7"))
        assert (found.life, found.canonical["grad_norm"]) == (1, 0.7)

    @pytest.mark.parametrize("payload", [b"[" * 100_000, b"9" * 100_000, b'"a', b"1e999", b"null"])
    def test_hostile_payloads(self, payload):
        state(MIRROR % (9, payload), "skyrl")

    def test_whole_numbers_as_long_as_a_page(self):
        found = state(MIRROR % (9, b"9" * 400), "skyrl")
        assert found.last["policy/raw_grad_norm"] == math.inf


class TestBlock:
    def test_values_are_numbers_again(self):
        found = state(lines_of("skyrl/console_step.ansi_ray.log"))
        assert found.last["policy/log_ratio_abs_max"] == 0.31
        assert found.last["generate/errors/AgentTimeoutError"] == 2

    def test_numpy_names_around_numbers(self):
        found = state(lines_of("skyrl/console_numpy_leak.plain.log"))
        assert found.step == 31
        assert found.last == {"a/inf": math.inf, "a/int": 3, "a/np32": 0.1, "a/np64": 0.1}

    def test_other_actors_talk_in_between(self):
        found = state(lines_of("composite/interleaved_ray.log"))
        assert found.step == 12
        assert found.last["policy/grad_norm"] == 0.24
        assert found.last["reward/avg_raw_reward"] == 0.3125
        assert math.isnan(found.canonical["entropy"])

    def test_only_the_brace_makes_it_count(self):
        assert state(BLOCK[:-2], "skyrl").step is None
        assert state(BLOCK[:-1], "skyrl").step == 3

    def test_the_status_line_wins_in_precision(self):
        found = state(STATUS + BLOCK, "skyrl")
        assert found.last["policy/raw_grad_norm"] == 9.7e-06
        assert found.last["policy/policy_loss"] == 1e-05
        assert found.last["reward/avg_raw_reward"] == 0.25
        assert found.coarse == set()

    def test_the_status_line_alone_does_not_count_where_blocks_are_printed(self):
        found = state(STATUS + BLOCK + STATUS + STARTED, "skyrl")
        assert found.step == 3
        assert found.track.columns()["grad_norm"].steps == (3,)

    def test_a_rounded_zero_is_remembered_as_such(self):
        found = state(BLOCK, "skyrl")
        assert found.canonical["grad_norm"] == 0.0
        assert "grad_norm" in found.coarse

    def test_a_bar_at_the_head_of_its_first_line(self):
        head = (
            b"\x1b[36m(skyrl_entrypoint pid=7)\x1b[0m \rTraining Batches Processed:   2%|x| 2/80 "
            b"[00:02<01:20,  1.03s/it]2026 | INFO | skyrl.train.utils.tracking:log:189 - Step 2: \n"
            b"\x1b[36m(skyrl_entrypoint pid=7)\x1b[0m {'policy/grad_norm': '0.5000',\n"
            b"\x1b[36m(skyrl_entrypoint pid=7)\x1b[0m  'trainer/global_step': 2}\x1b[0m\n"
        )
        found = state(head)
        assert (found.step, found.max_step, found.canonical["grad_norm"]) == (2, 80, 0.5)


def test_a_life_that_logs_to_a_service_is_counted_by_its_status_lines():
    log = b"skyrl.train Resuming from global_step: 5\n" + (STATUS + STARTED) * 3
    assert state(log, "skyrl").step == 8


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (b"Successfully saved checkpoint for global_step_20 to: /x/global_step_20", Checkpoint(20)),
        (b"Resuming from global_step: 40", Resumed(40)),
        (b"Training done!", Finished()),
        (
            b"Resumed at global_step 80 >= max training steps (80); run is already COMPLETE",
            Finished(),
        ),
        (b"Training failed at step 23 with RuntimeError:", Failed()),
        (b"Training Step Progress:  11%|x   | 9/80 [1:02:03<8:10:01, 414.1s/it]", Bar(9, 80, 3723)),
    ],
)
def test_lifecycle(line, event):
    assert event in events(line)


@pytest.mark.parametrize(
    "line",
    [
        b"Generation Buffer Progress:   2%|5    | 1/64 [00:00<00:00, 478.75it/s]",
        b"Policy Train epoch [1/1]:  25%|x  | 1/4 [00:00<00:00,  9.94it/s, pg=0.0, grad_norm=0.1]",
        b"Exception breakdown: {'DaytonaValidationError': 20}",
        b"Saved trainer state to /x/global_step_20/trainer_state.pt",
        b"Cleaned up old checkpoint: global_step_10 at /x",
    ],
)
def test_what_is_none_of_its_business(line):
    assert events(line) == []


class TestChain:
    FIRST = lines_of("composite/restart_chain/run_1001.out")
    SECOND = lines_of("composite/restart_chain/run_1002.out")

    def test_the_second_life_resumed_at_five(self):
        found = state(self.SECOND)
        assert (found.resumed_from, found.step, found.max_step, found.life) == (5, 10, 80, 1)

    def test_in_one_file_the_step_back_is_a_life_and_its_values_win(self):
        found = state(self.FIRST + self.SECOND)
        assert (found.life, found.step) == (2, 10)
        first = state(self.FIRST).track.columns()["reward"]
        joined = found.track.columns()["reward"]
        assert joined.at(5) == first.at(5)
        assert joined.at(6) == 0.39 != first.at(6)

    def test_as_two_files_they_are_two_lives(self):
        following = fed(self.FIRST)
        following.finish()
        following.another()
        following.feed(self.SECOND)
        found = following.finish().state
        assert (found.life, found.step, found.resumed_from) == (2, 10, 5)


def test_the_torn_last_line_waits():
    assert read(lines_of("composite/restart_chain/run_1002.out")).state.step == 10
