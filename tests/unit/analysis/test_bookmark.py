"""Readings put down and taken up: nothing that a rule or a table says depends on where."""

import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobmond.analysis import bookmark
from jobmond.analysis.replay import Replay
from jobmond.analysis.track import AT_HAND, LOOK_BACK
from jobmond.analysis.trend import trend_facts
from jobmond.model.state import Bucket
from jobmond.registry import rules
from tests.training import PARSERS, STEP_RULES, reader

RULES = [rules[name]() for name in STEP_RULES]


def mirror(steps, norm=lambda step: 0.02):
    """A fork's log of these steps."""
    return [
        b'WANDB_MIRROR kind=train step=%d metrics={"reward/avg_raw_reward": %.4f, '
        b'"policy/raw_grad_norm": %.4f, "policy/policy_entropy": 0.5}\n'
        % (n, 0.1 + n / 1000, norm(n))
        for n in steps
    ]


def sft(steps):
    """A Hugging Face run's log of these steps, with a bar before and after each record."""

    def bar(n):
        since = n - steps.start
        return b" 1%%|#         | %d/5000 [%02d:%02d<10:00,  1.00it/s]\r" % (
            n,
            since // 60,
            since % 60,
        )

    return [
        bar(n)
        + b"\n{'loss': '%.3f', 'grad_norm': '%.2f', 'learning_rate': '1e-05', 'epoch': '0.1'}\n"
        % (3 - n / 2000, 200 if n % 97 == 0 else 1.5)
        + bar(n)
        for n in steps
    ]


def in_one(lines):
    replay = Replay(RULES, frozenset(), None)
    following = reader(judge=replay.judge)
    for line in lines:
        following.feed(line)
    replay.judge(following.best.state)
    return following.best.state, fired(replay)


def in_sweeps(lines, cuts):
    kept, found = None, set()
    for begin, end in zip([0, *cuts], [*cuts, len(lines)], strict=True):
        replay = Replay(RULES, frozenset(), None)
        following = reader(judge=replay.judge)
        if kept is not None:
            following = bookmark.unpacked(kept, PARSERS.values(), judge=replay.judge)
        following.feed(b"".join(lines[begin:end]))
        if following.best is not None:
            replay.judge(following.best.state)
        found |= fired(replay)
        kept = bookmark.packed(following)
    return following.best.state, found, kept


def fired(replay):
    """Where a rule began to fire, or was seen to go on, by life."""
    return {
        (f.life, f.signal.rule, step)
        for f in replay.firings
        for step in range(f.signal.step, f.signal.last_step + 1)
    }


def shown(state):
    return trend_facts(state, Bucket.RL), trend_facts(state, Bucket.SFT)


FEW = st.integers(1, 20)
LIVES = st.lists(st.tuples(st.integers(0, 300), FEW | st.integers(1, 300)), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
@given(
    lives=LIVES,
    cuts=st.lists(FEW | st.integers(0, 900), max_size=6),
    dialect=st.sampled_from("ms"),
)
def test_wherever_it_is_put_down_rules_and_tables_see_the_same(lives, cuts, dialect):
    lines = [
        line
        for begin, count in lives
        for line in (
            mirror(range(begin, begin + count), lambda n: 0.02 * (n % 7 + 1))
            if dialect == "m"
            else sft(range(begin + 1, begin + count + 1))
        )
    ]
    whole, expected = in_one(lines)
    places = sorted(max(0, len(lines) - cut) for cut in cuts)
    state, found, _ = in_sweeps(lines, places)
    assert found == expected
    assert shown(state) == shown(whole)
    assert (state.life, state.step, state.records) == (whole.life, whole.step, whole.records)
    assert state.track.first_made == whole.track.first_made


def test_what_is_at_hand_stays_small_however_long_the_run():
    lines = mirror(range(1, 3001))
    _, _, kept = in_sweeps(lines, [1000, 2000, 2990])
    length = int.from_bytes(kept[:4])
    head = json.loads(zlib.decompress(kept[4 : 4 + length]))
    track = head["candidates"][0]["state"]["track"]
    assert AT_HAND <= len(track["current"]) <= 2 * AT_HAND
    assert {len(points) for points in track["settled"].values()} == {LOOK_BACK}


def test_what_was_put_away_goes_along_as_it_is():
    lines = mirror(range(1, 1001))
    _, _, before = in_sweeps(lines[:990], [500])
    following = bookmark.unpacked(before, PARSERS.values())
    following.feed(b"".join(lines[990:993]))
    after = bookmark.packed(following)
    away = before[4 + int.from_bytes(before[:4]) :]
    assert len(away) > 1000
    assert after.endswith(away)


def test_a_run_that_goes_back_has_its_whole_past_again():
    lines = mirror(range(1, 1001))
    _, _, kept = in_sweeps(lines, [900])
    following = bookmark.unpacked(kept, PARSERS.values())
    following.feed(b"".join(mirror(range(11, 13))))
    column = following.best.state.track.columns()["reward"]
    assert column.steps == tuple(range(1, 1001))
    assert column.before(11, 2) == (0.109, 0.11)


@pytest.mark.parametrize("broken", [b"", b"\0\0\0\0", b"\0\0\0\x02{}", b"\xff" * 40])
def test_damage_begins_again(broken):
    assert bookmark.unpacked(broken, PARSERS.values()) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_taken(broken):
    assert bookmark.unpacked(broken, PARSERS.values()) is None
