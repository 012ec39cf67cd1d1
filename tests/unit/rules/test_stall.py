"""Jobs that run and do not get on, alone and together."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jobmond import registry
from jobmond.analysis import notices
from jobmond.analysis.judge import judged
from jobmond.analysis.settle import Move
from jobmond.analysis.silence import said_once, view_of
from jobmond.model.commit import JobChange
from jobmond.model.job import LogEvidence
from jobmond.model.observation import Absent, Facts, LogTail, NotApplicable, Read, Unavailable
from jobmond.model.outcome import Signal
from jobmond.model.state import Bucket, Severity, State
from jobmond.model.training import Training
from jobmond.ports import Case, SweepView
from jobmond.sweep.postmortem import evidence
from tests.unit.builders import NOW, at, job

READ = Read(LogTail("/x.out", 7, 1, NOW, 0, b"x"), NOW)


def still(minutes, *, native_id="7", **more):
    log = LogEvidence("read", "/x.out", 7, 1, at(-minutes), NOW, changed_at=at(-minutes))
    return job(native_id, **{"bucket": Bucket.SFT, "log": log, **more})


def training(phase="training", *, since=0, **more):
    return Training(
        dialect="hf", bucket=Bucket.SFT, phase=phase, step=9, stepped_at=at(-since), **more
    )


def fired(one, reading=READ, *, view=None, **options):
    case = Case(one, one, NOW, log=reading, view=view or SweepView())
    return list(registry.rules["stall"](**options).judge(case))


@pytest.mark.parametrize(
    ("bucket", "phase", "limit"),
    [
        (Bucket.RL, "training", 60),
        (Bucket.SFT, "training", 45),
        (Bucket.DATAGEN, "training", 180),
        (Bucket.EVAL, "training", 60),
        (Bucket.OTHER, "training", 360),
        (Bucket.SFT, "bring-up", 90),
        (Bucket.SFT, "finishing", 90),
        (Bucket.DATAGEN, "bring-up", 180),
    ],
)
def test_each_bucket_and_phase_has_its_limit(bucket, phase, limit):
    known = training(phase)
    assert fired(still(limit, bucket=bucket, training=known)) == []
    (signal,) = fired(still(limit + 1, bucket=bucket, training=known))
    assert signal.title.startswith("nothing new in its log for ")
    assert signal.evidence["limit_s"] == limit * 60
    grave = Severity.WATCH if bucket is Bucket.OTHER else Severity.ALARM
    assert signal.severity is grave


def test_a_log_that_no_trainer_is_known_of_gets_the_time_to_start():
    assert fired(still(90)) == []
    assert len(fired(still(91))) == 1


def test_a_run_with_slow_steps_is_given_six_of_them():
    slow = training(rate_s_per_step=1200.0)
    assert fired(still(120, training=slow)) == []
    assert len(fired(still(121, training=slow))) == 1
    absurd = training(rate_s_per_step=1e12)
    assert len(fired(still(12 * 60 + 1, training=absurd))) == 1


def test_heartbeats_are_no_steps():
    (signal,) = fired(still(1, training=training(since=121)))
    assert (signal.severity, signal.title) == (
        Severity.WATCH,
        "its log grows and no step has come for 121 min",
    )
    assert fired(still(1, training=training(since=120))) == []
    assert fired(still(1, training=training(since=300, rate_s_per_step=1800.0))) == []
    assert fired(still(1, training=training(since=300, behind_bytes=1))) == []
    assert fired(still(1, training=training("finishing", since=300))) == []


@pytest.mark.parametrize("reading", [Unavailable("no"), Absent(), NotApplicable()])
def test_a_log_that_was_not_read_stalls_nothing(reading):
    assert fired(still(9999), reading) == []
    assert fired(still(9999, training=training(since=9999)), reading) == []


def test_and_a_failed_look_ends_no_stall():
    known = Signal("stall", Severity.ALARM, "nothing new", {}, opened_at=at(-60))
    one = still(9999, signals=(known,))
    rules = [registry.rules["stall"]()]
    failed = judged(Case(one, one, NOW, log=Unavailable("no")), rules)
    assert failed.signals == (known,)
    moved = still(1, signals=(known,))
    assert len(judged(Case(moved, moved, NOW, log=READ), rules).cleared) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": frozenset({"service"})},
        {"facts": Facts(suspended=True)},
        {"state": State.PENDING},
        {"state": State.COMPLETED},
        {"stale": True},
    ],
)
def test_what_is_not_at_work_does_not_stall(changes):
    assert fired(still(9999, **changes)) == []


def test_silence_counts_from_the_start_of_this_life():
    """A requeued job, or a chain's next link, may go on in a log that is hours old."""
    assert fired(still(600, facts=Facts(started_at=at(-90)))) == []
    assert len(fired(still(600, facts=Facts(started_at=at(-91))))) == 1


def test_silence_counts_from_when_it_was_resumed():
    held = still(600)
    resumed = replace(held, log=replace(held.log, rested_at=at(-90)))
    assert fired(resumed) == []
    steps = training(since=600)
    young = still(1, training=steps, facts=Facts(started_at=at(-120)))
    assert fired(young) == []
    assert len(fired(still(1, training=steps, facts=Facts(started_at=at(-121))))) == 1


def test_a_clock_that_was_set_back_delays_no_alarm():
    ahead = LogEvidence("read", "/x.out", 1, 1, NOW, NOW, changed_at=at(48 * 60))
    same = Read(LogTail("/x.out", 1, 1, NOW, 0, b"x"), NOW)
    assert evidence(ahead, same, now=NOW).changed_at == NOW
    earlier = replace(ahead, changed_at=at(-5))
    assert evidence(earlier, same, now=NOW).changed_at == at(-5)


def view(*jobs, readings=None):
    known = readings or {one.native_id: READ for one in jobs}
    return view_of(jobs, known, now=NOW)


def silent(*minutes, **more):
    return [still(m, native_id=str(n), **more) for n, m in enumerate(minutes, 1)]


def test_most_jobs_silent_at_once_are_one_thing():
    seen = view(*silent(40, 45, 50, 55, 1))
    assert seen == SweepView(5, frozenset("1234"))
    (one,) = silent(400)
    assert fired(one, view=seen) == []
    (signal,) = registry.rules["mass-silence"]().judge(Case(one, one, NOW, log=READ, view=seen))
    assert signal.title == (
        "4 of 5 running jobs of lab fell silent together: look at the file system before the jobs"
    )


@pytest.mark.parametrize(
    "minutes",
    [
        (40, 45),  # too few
        (40, 45, 50, 1),  # three of four
        (40, 65, 90, 115),  # one after the other
        (29, 29, 29),  # not long enough
    ],
)
def test_otherwise_each_is_its_own(minutes):
    assert view(*silent(*minutes)).hushed == frozenset()


def test_jobs_that_were_just_resumed_together_did_not_fall_silent():
    jobs = [still(100, native_id=str(n), facts=Facts(started_at=at(-10))) for n in range(5)]
    assert view(*jobs) == SweepView(5)


def test_only_logs_that_were_read_count():
    jobs = silent(40, 40, 40, 40)
    readings = {"1": READ, "2": READ, "3": Unavailable("no"), "4": READ}
    assert view(*jobs, readings=readings) == SweepView(3, frozenset("124"))


MASS = Signal("mass-silence", Severity.WATCH, "all", {}, opened_at=NOW)
OVER = Signal("mass-silence", Severity.WATCH, "all", {}, opened_at=at(-60), cleared_at=NOW)
STALL = Signal("stall", Severity.ALARM, "still", {}, opened_at=NOW)


def news(*pairs):
    return [notices.signal_news(one, s, kind, at=NOW) for one, s, kind in pairs]


def test_it_is_said_once_for_all_of_them():
    one, two = silent(40, 40)
    told = news((one, MASS, "signal"), (two, STALL, "signal"), (two, MASS, "signal"))
    changes = [JobChange(still(40, native_id=n, signals=(MASS,))) for n in "12"]
    assert said_once(told, [Move(one, one), Move(two, two)], changes) == told[:2]


def test_and_not_again_for_one_that_joins_later():
    old, new = still(40, native_id="1", signals=(MASS,)), still(40, native_id="2")
    told = news((new, MASS, "signal"))
    assert said_once(told, [Move(old, old), Move(new, new)], []) == []


def test_its_end_is_said_when_nobody_is_left():
    before = [still(40, native_id=n, signals=(MASS,)) for n in "12"]
    after = [still(1, native_id=n, signals=(OVER,)) for n in "12"]
    moves = [Move(b, a) for b, a in zip(before, after, strict=True)]
    told = news((after[0], OVER, "cleared"), (after[1], OVER, "cleared"))
    assert said_once(told, moves, [JobChange(a) for a in after]) == told[:1]
    one_left = [JobChange(after[0]), JobChange(before[1])]
    assert said_once(told[:1], [Move(before[0], after[0]), Move(*before[1:] * 2)], one_left) == []


def test_limits_are_configuration():
    assert len(fired(still(11, training=training()), sft=timedelta(minutes=10))) == 1
