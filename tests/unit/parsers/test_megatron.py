"""Megatron's pipe-separated line."""

import math

import pytest

from jobmond.model.metrics import Checkpoint, Finished, LifeStart, Resumed, Segment
from tests.training import PARSERS, fired_at, firings, lines_of, state

LINE = (
    b" [2026-08-22 12:00:00.123456] iteration %8d/     300 | consumed samples: 320 | elapsed time "
    b"per iteration (ms): 293.7 | learning rate: 1.666667E-04 | lm loss: 6.508462E+00 | grad norm: "
    b"2.434 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)


def test_three_lines_the_last_without_a_loss():
    found = state(lines_of("sft/megatron.log"))
    assert (found.step, found.max_step) == (124, 250000)
    assert found.track.columns()["loss"].values[:2] == (2.50422, 2.49871)
    assert math.isnan(found.canonical["loss"])
    assert found.rate_s_per_step == pytest.approx(86.5452)


class TestWhole:
    def test_the_last_pipe_ends_it_newline_or_not(self):
        assert state(LINE % 5 + b"\n" + LINE % 10).step == 10
        assert state(LINE % 5, "megatron").step == 5

    def test_any_other_pipe_does_not(self):
        cut = (LINE % 10).rindex(b"number of skipped")
        assert state(LINE % 5 + b"\n" + (LINE % 10)[:cut]).step == 5
        assert state(LINE % 5 + b"\n" + (LINE % 10)[:-1]).step == 5

    def test_a_fork_s_further_fields(self):
        line = LINE + b" samples per second: 0.5 |"
        assert state(line % 5 + b"\n" + line % 10).step == 10
        assert state(line % 5 + b"\n" + line % 10).last["samples per second"] == 0.5


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b"[after megatron is initialized] datetime: 2026-11-29", [LifeStart()]),
        (b"[after training is done] datetime: 2026-11-29", [Finished()]),
        (b"  successfully saved checkpoint from iteration     300 to /x", [Checkpoint(300)]),
        (b"saving checkpoint at iteration     300 to /x in torch_dist format", []),
        (
            b"  successfully loaded checkpoint from /x [ t 1/2, p 1/1 ] at iteration 150",
            [Resumed(150)],
        ),
    ],
)
def test_lifecycle(line, wanted):
    assert list(PARSERS["megatron"].read(Segment(0, line), {})) == wanted


def test_validation_is_no_step():
    line = (
        b" validation loss at iteration 300 | lm loss value: 1.415721E+00 | lm loss PPL: 4.1 | \n"
    )
    found = state(LINE % 295 + b"\n" + line)
    assert (found.step, found.canonical["eval_loss"]) == (295, 1.415721)


class TestLossScale:
    def skipped(self, step, loss=b"0.000000E+00"):
        line = LINE % step
        line = line.replace(b"6.508462E+00", loss).replace(b" grad norm: 2.434 |", b"")
        return line.replace(b"skipped iterations:   0", b"skipped iterations:   5") + b"\n"

    def test_a_loss_that_stays_zero_while_iterations_are_skipped(self):
        log = b"".join(LINE % n + b"\n" for n in range(1, 10))
        log += b"".join(self.skipped(n) for n in range(10, 16))
        assert fired_at(firings(log), "nan-loss") == [12, 13, 14, 15]

    def test_a_scaler_that_looks_for_its_scale_at_the_start(self):
        log = b"".join(self.skipped(n) for n in range(1, 8))
        log += b"".join(LINE % n + b"\n" for n in range(8, 20))
        assert fired_at(firings(log), "nan-loss") == []
