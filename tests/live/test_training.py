"""Training runs followed on a real cluster: what each sweep reads, shows, tells and moves.

The story takes about two minutes, all in the setup of whichever test comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.live.lab import Lab
from tests.live.options import LabOptions
from tests.live.product import Product, doubled, ref
from tests.live.runs import (
    FIRST,
    RL_CUTS,
    SFT,
    SFT_CUTS,
    TAIL_BYTES,
    WILD_CUTS,
    Story,
    first_lives,
    second_lives,
    words,
)
from tests.live.tape import tape
from tests.training import near, truth

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    """Everything happens here; the tests look at what each sweep saw."""
    with Lab(LabOptions(nodes=4, users=1)) as lab:
        story = Story(lab, lab.user, Product(lab, lab.user))
        made = story.tapes
        try:
            story.product.start()
            for name in FIRST:
                made[name] = tape(lab, lab.user, name)
            for name in ("moon", "tide"):
                made[f"{name}-copy"] = tape(lab, lab.user, name, after=made[name])
            for name in FIRST:
                lab.wait_for_state(made[name].job, "RUNNING")
            # Of one chain both links are tracked, of the other only the first.
            story.product.add(*(made[name].job for name in (*FIRST, "tide-copy")))
            first_lives(story)
            second_lives(story)
            yield story
        finally:
            story.product.close()


# Bucket, phase, life, step and total, as the recorders have them.
SEEN = {
    "start": {
        "moon": ("other", "bring-up", 1, None, None),
        "tide": ("other", "bring-up", 1, None, None),
        "wild": ("other", "bring-up", 1, None, None),
    },
    "bring-up": {
        "moon": ("rl", "bring-up", 1, None, 80),
        "tide": ("sft", "bring-up", 1, None, None),
        "wild": ("sft", "bring-up", 1, None, None),
        "tide-copy": ("other", "queued", 2, None, None),
    },
    "training": {
        "moon": ("rl", "training", 1, 7, 80),
        "tide": ("sft", "training", 1, 17, 200),
        "wild": ("sft", "training", 1, 13, 160),
    },
    "saved": {
        "moon": ("rl", "training", 1, 19, 80),
        "tide": ("sft", "training", 1, 46, 200),
        "wild": ("sft", "training", 1, 40, 160),
    },
    "stable": {
        "moon": ("rl", "training", 1, 39, 80),
        "tide": ("sft", "training", 1, 77, 200),
    },
    "collapse": {
        "moon": ("rl", "training", 1, 59, 80),
        "wild": ("sft", "training", 1, 100, 160),
    },
    "restart": {
        "moon": ("rl", "training", 1, 59, 80),
        "moon-copy": ("rl", "bring-up", 2, None, None),
        "tide-copy": ("sft", "queued", 2, 77, 200),
    },
    "resuming": {
        "moon-copy": ("rl", "bring-up", 2, None, 80),
        "tide-copy": ("sft", "bring-up", 2, None, None),
    },
    "resumed": {
        "moon-copy": ("rl", "training", 2, 44, 80),
        "tide-copy": ("sft", "training", 2, 99, 200),
    },
    "ended": {
        "moon-copy": ("rl", "done", 2, 44, 80),
        "tide-copy": ("sft", "done", 2, 200, 200),
        "wild": ("sft", "failed", 1, 100, 160),
    },
}


@pytest.mark.parametrize("look", SEEN)
def test_bucket_phase_life_and_step_at_each_sweep(story: Story, look: str) -> None:
    assert {name: story.seen(look, name) for name in SEEN[look]} == SEEN[look]


LOGS = {"moon": "skyrl_legacy_collapse", "tide": "hf5_sft_sigterm", "wild": "hf5_sft_gradexplode"}
CUTS = {"moon": RL_CUTS, "tide": SFT_CUTS, "wild": WILD_CUTS}
WORDS = {
    "moon": ("reward", "pass_at_n", "policy_loss", "entropy", "grad_norm", "log_ratio_abs_mean"),
    "tide": ("loss", "grad_norm", "learning_rate", "epoch"),
    "wild": ("loss", "grad_norm", "learning_rate", "epoch"),
}


@pytest.mark.parametrize(
    ("look", "name", "cut"),
    [
        ("training", "moon", 1),
        ("training", "tide", 1),
        ("training", "wild", 1),
        ("saved", "moon", 2),
        ("saved", "tide", 2),
        ("saved", "wild", 2),
        ("stable", "moon", 3),
        ("collapse", "moon", 4),
        ("collapse", "wild", 3),
    ],
)
def test_metrics_are_what_the_recorder_saw(story: Story, look: str, name: str, cut: int) -> None:
    at = next(o for o in truth(LOGS[name])["offsets"] if o["offset"] == CUTS[name][cut])
    expected = {word: at[word] if word in at else at["metrics"][word] for word in WORDS[name]}
    got = story.row(look, name)["metrics"]
    assert {
        word: got.get(word) for word in expected if not near(got.get(word), expected[word])
    } == {}


TRENDS = {
    ("bring-up", "moon"): r"Bring-up for \d+s",
    ("training", "moon"): r"Rising from 0\.232, gradients strong",
    ("training", "tide"): r"Loss descending; healthy",
    ("saved", "moon"): r"Checkpoint saved at 10\. Rising from 0\.350, gradients strong",
    ("stable", "moon"): r"Checkpoint saved at 30\. Stable, gradients strong",
    ("collapse", "moon"): r"Checkpoint saved at 50\. Falling from 0\.453, gradients large",
    ("resuming", "moon-copy"): r"Bring-up for \d+s, resuming from 40",
    ("resumed", "moon-copy"): r"Resumed at 40\. Rising from 0\.478, gradients strong",
    ("ended", "tide-copy"): r"Done at step 200",
}


@pytest.mark.parametrize(("look", "name"), TRENDS)
def test_the_trend_says_what_happened(story: Story, look: str, name: str) -> None:
    assert re.fullmatch(TRENDS[look, name], story.row(look, name)["trend"])


def cells(story: Story, look: str, name: str) -> list[str]:
    """The job's row in one of the tables."""
    mine = ref(story.tapes[name].job)
    rows = (
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in story.looks[look].text.splitlines()
    )
    (row,) = (cells for cells in rows if cells and mine in cells[0].split())
    return row


def titles(story: Story, look: str) -> list[str]:
    """The titles of the tables, in order."""
    lines = story.looks[look].text.splitlines()
    return [before for before, line in pairwise(lines) if line.startswith("┌")]


def test_tables_show_those_numbers(story: Story) -> None:
    tables = ["RL, no metrics yet", "SFT, no metrics yet", "Catch-all"]
    assert titles(story, "bring-up") == tables
    assert titles(story, "saved") == ["RL", "SFT", "Catch-all"]
    assert cells(story, "stable", "moon")[1:] == [
        "39/80",
        "0.508",
        "-0.0060",
        "0.079",
        "0.554",
        "0.0101",
        "new setting (1 node): deep probe due. Checkpoint saved at 30. Stable, gradients strong",
    ]
    assert cells(story, "stable", "tide")[1:] == [
        "77/200",
        "3.02",
        "1.19",
        "Loss descending; healthy",
    ]
    assert "RL collapse at step 49" in cells(story, "collapse", "moon")[-1]
    assert cells(story, "collapse", "moon")[1:5] == ["59/80", "0.188", "0.1387", "4.354"]
    assert cells(story, "resumed", "moon-copy")[1:3] == ["44/80", "0.508"]
    over = f"{ref(story.tapes['moon'].job)}: TIMEOUT"
    assert any(line.startswith(over) for line in story.looks["resumed"].text.splitlines())


def test_each_signal_is_told_once_and_a_restart_is_one_event(story: Story) -> None:
    told = {
        name: [words(e) for e in story.product.events_of(t.job)] for name, t in story.tapes.items()
    }
    assert told == {
        "moon": [
            "signal deep-probe None",
            "followup deep-probe open",
            "signal rl-collapse 49",
            "signal rl-watch 45",
            "restart RUNNING RUNNING",
            "followup deep-probe closed",
        ],
        "tide": ["restart RUNNING PENDING"],
        "wild": ["signal grad-explosion 19", "transition RUNNING FAILED"],
        "moon-copy": [
            "signal deep-probe None",
            "transition RUNNING COMPLETED",
            "followup cleanup open",
        ],
        "tide-copy": [
            "transition PENDING RUNNING",
            "transition RUNNING COMPLETED",
            "followup cleanup open",
        ],
    }
    assert story.told("saved", "wild") == ["signal grad-explosion 19"]
    assert story.told("collapse", "moon") == ["signal rl-collapse 49", "signal rl-watch 45"]
    assert doubled(story.product.events()) == []


def test_a_signal_goes_on_while_it_stands(story: Story) -> None:
    def spans(look: str, name: str) -> list[tuple[object, ...]]:
        return [(s["rule"], s["step"], s["last_step"]) for s in story.row(look, name)["signals"]]

    assert spans("saved", "wild") == [("grad-explosion", 19, 26)]
    assert spans("collapse", "wild") == [("grad-explosion", 19, 87)]
    new = ("deep-probe", None, None)  # nobody has tried this setting before
    assert spans("stable", "moon") == [new]
    assert spans("collapse", "moon") == [("rl-collapse", 49, 59), ("rl-watch", 45, 59), new]
    assert spans("resumed", "moon-copy") == [new]


def test_a_collapse_is_recommended_to_be_cancelled_and_its_evidence_stands(story: Story) -> None:
    """Nobody allowed more than that."""
    (event,) = (e for e in story.looks["collapse"].told if words(e) == "signal rl-collapse 49")
    assert event.whole["signal"]["action"] == "cancel-and-salvage"
    entry = Path(event.whole["agent_log"]).read_text()
    assert "salvage_step: 40" in entry
    assert 'left running: on_collapse = "recommend"' in entry
    assert story.row("collapsed", "moon")["state"] == "RUNNING"
    assert [call for call in story.lab.calls(story.user) if call.command == "scancel"] == []


@pytest.mark.parametrize("name", ["moon", "tide"])
def test_a_successor_takes_over_the_run(story: Story, name: str) -> None:
    before, after = story.row("restart", name), story.row("restart", f"{name}-copy")
    assert (before["state"], before["tracked"], before["successor"]) == (
        "TIMEOUT",
        False,
        after["ref"],
    )
    assert (after["run"], after["life"], after["tracked"]) == (before["run"], 2, True)
    resumed = {"moon": 40, "tide": 60}[name]
    assert story.row("resumed", f"{name}-copy")["resumed_from"] == resumed


def test_a_successor_that_waits_shows_how_far_the_run_has_come(story: Story) -> None:
    waiting = story.row("restart", "tide-copy")
    assert near(waiting["metrics"]["loss"], 3.022)
    assert waiting["state"] == "PENDING"


def test_one_log_script_a_sweep_and_no_further_login(story: Story) -> None:
    assert {
        name: look.used.log_scripts for name, look in story.looks.items() if name != "over"
    } == (dict.fromkeys((name for name in story.looks if name != "over"), 1))
    assert {look.used.logins for look in story.looks.values()} == {0}


def test_a_sweep_moves_what_is_new_and_says_so(story: Story) -> None:
    looks = story.looks
    for name in ("quiet", "collapsed"):
        assert looks[name].moved_bytes == 3 * TAIL_BYTES
    # As much is new in both, and the log has grown by half in between.
    stable = looks["stable"].moved_bytes - 3 * TAIL_BYTES
    collapse = looks["collapse"].moved_bytes - 3 * TAIL_BYTES
    assert 0 < stable <= RL_CUTS[3] - RL_CUTS[2] + len(SFT)
    assert abs(collapse - stable) < stable / 4
    assert looks["collapse"].jobs[story.tapes["moon"].job]["log"]["bytes"] == RL_CUTS[4]
