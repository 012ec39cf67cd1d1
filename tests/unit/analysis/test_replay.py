"""Rules over a log that nobody watches any more."""

from jobmond.analysis.logstate import JUDGE_EVERY
from jobmond.analysis.replay import Firing, Replay, standing
from jobmond.model.outcome import Signal
from jobmond.model.state import Severity
from jobmond.registry import rules
from tests.training import fired_at, firings, reader

LINE = (
    b'WANDB_MIRROR kind=train step=%d metrics={"policy/raw_grad_norm": %s, '
    b'"policy/policy_entropy": %s}\n'
)


def steps(first, last, grad=b"0.02", entropy=b"0.4"):
    return b"".join(LINE % (n, grad, entropy) for n in range(first, last + 1))


def test_each_life_by_itself():
    bad = steps(11, 13, b"3.0", b"0.1")
    found = firings(steps(1, 10) + bad + b"Total training steps: 80\n" + steps(10, 12) + bad)
    spans = [
        (f.life, f.signal.step, f.signal.last_step) for f in found if f.signal.rule == "rl-collapse"
    ]
    # The second life's values win: its steps 11 and 12 come a second time, calm and then bad.
    assert spans == [(1, 11, 13), (3, 11, 13)]


def test_a_run_of_steps_across_batches_is_one():
    bad = JUDGE_EVERY - 5
    log = steps(1, bad) + steps(bad + 1, bad + 20, b"3.0", b"0.01")
    assert fired_at(firings(log), "rl-watch") == list(range(bad + 2, bad + 21))
    assert sum(f.signal.rule == "rl-watch" for f in firings(log)) == 1


def test_what_a_signal_names_stays_in_the_series():
    log = steps(1, 20_000) + steps(20_001, 20_003, b"3.0", b"0.1") + steps(20_004, 60_000)
    replay = Replay([rules["rl-collapse"]()], frozenset())
    following = reader("skyrl", judge=replay.judge)
    following.feed(log)
    state = following.finish().state
    column = state.track.columns()["grad_norm"]
    assert column.at(20_001) == column.at(20_003) == 3.0
    assert len(column.steps) < 10_000


def signal(rule, first, last):
    return Signal(rule, Severity.ALARM, rule, {}, step=first, last_step=last)


def test_what_stands_at_the_end():
    found = [
        Firing(1, signal("rl-collapse", 5, 6)),
        Firing(2, signal("rl-collapse", 15, 17)),
        Firing(2, signal("rl-collapse", 19, 19)),
        Firing(2, signal("rl-watch", 3, 3)),
        Firing(2, signal("other", 18, 20)),
    ]
    kept = standing(found, life=2, newest=20, latched=["rl-collapse"])
    assert [(s.rule, s.step, s.last_step) for s in kept] == [
        ("rl-collapse", 15, 19),
        ("other", 18, 20),
    ]
