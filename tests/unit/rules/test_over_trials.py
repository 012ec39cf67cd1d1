"""Rules over trials, each at its edges."""

from dataclasses import replace
from datetime import timedelta
from typing import ClassVar

import pytest

from jobmond import registry
from jobmond.analysis.judge import judged
from jobmond.model.job import LogEvidence
from jobmond.model.observation import Absent, Facts, NotApplicable, Read, Unavailable
from jobmond.model.state import Bucket, Severity, State
from jobmond.model.trials import Completion, Engine, Trial, Trials
from jobmond.ports import Case
from tests.unit.builders import NOW, at, job

NO_EVIDENCE = [Unavailable("timed out"), Absent(("/x",)), NotApplicable()]


def trials(done=142, total=300, *, minutes_ago=5.0, **changes):
    last = None if minutes_ago is None else at(-minutes_ago)
    return Read(Trials(done, total, last_result_at=last, **changes), NOW)


def fired(rule, bucket, reading, *, evidence=None, **changes):
    options = changes.pop("options", {})
    facts = changes.pop("facts", Facts(started_at=at(-600)))
    case = Case(None, job(bucket=bucket, facts=facts, **changes), NOW, trials=reading)
    return list(registry.rules[rule](**options).judge(replace(case, **(evidence or {}))))


def recent(*ended):
    return {"recent": tuple(replace(trial, name=f"t{i}") for i, trial in enumerate(ended))}


FAST = Trial("t", 0.0, duration_s=2.0)
FINE = Trial("t", 1.0, output_tokens=300, duration_s=300.0, turns=9)
TIMED_OUT = Trial("t", 0.0, exception="AgentTimeoutError", output_tokens=9, duration_s=3600.0)
REFUSED = Trial("t", exception="DaytonaAuthenticationError", duration_s=30.0)


class TestEvalStall:
    @pytest.mark.parametrize(("minutes", "wanted"), [(59, 0), (60, 1), (61, 1)])
    def test_an_hour_without_a_result(self, minutes, wanted):
        found = fired("eval-stall", Bucket.EVAL, trials(minutes_ago=minutes))
        assert len(found) == wanted

    def test_what_it_says(self):
        (signal,) = fired("eval-stall", Bucket.EVAL, trials(minutes_ago=61))
        assert (signal.severity, signal.action) == (Severity.ALARM, "inspect")
        assert signal.title == "no trial has ended for 61 min (142/300 trials done)"
        assert signal.evidence["quiet_s"] == 3660

    def test_a_late_burst_of_timeouts_is_the_hard_tail(self):
        reading = trials(290, minutes_ago=1, **recent(*[TIMED_OUT] * 100))
        for rule in ("eval-stall", "instant-fail", "auth-failures", "engine-idle", "zombie"):
            assert not fired(rule, Bucket.EVAL, reading)

    @pytest.mark.parametrize(("minutes", "wanted"), [(59, 0), (61, 1)])
    def test_before_the_first_result_the_start_counts(self, minutes, wanted):
        facts = Facts(started_at=at(-minutes))
        assert len(fired("eval-stall", Bucket.EVAL, trials(0, minutes_ago=None), facts=facts)) == (
            wanted
        )

    @pytest.mark.parametrize(("minutes", "wanted"), [(59, 0), (61, 1)])
    def test_being_suspended_is_no_stall(self, minutes, wanted):
        log = LogEvidence(rested_at=at(-minutes))
        assert len(fired("eval-stall", Bucket.EVAL, trials(minutes_ago=500), log=log)) == wanted

    def test_a_restart_has_its_own_hour(self):
        facts = Facts(started_at=at(-10))
        assert not fired("eval-stall", Bucket.EVAL, trials(minutes_ago=500), facts=facts)

    @pytest.mark.parametrize("reading", NO_EVIDENCE)
    def test_a_fetch_that_failed_raises_nothing(self, reading):
        assert not fired("eval-stall", Bucket.EVAL, reading)

    @pytest.mark.parametrize(
        "changes",
        [
            {"state": State.COMPLETED},
            {"labels": frozenset({"service"})},
            {"stale": True},
            {"facts": Facts(started_at=at(-600), suspended=True)},
        ],
    )
    def test_only_a_job_at_work(self, changes):
        assert not fired("eval-stall", Bucket.EVAL, trials(minutes_ago=61), **changes)

    def test_only_with_trials_left_and_in_its_bucket(self):
        assert not fired("eval-stall", Bucket.EVAL, trials(300, minutes_ago=61))
        assert not fired("eval-stall", Bucket.DATAGEN, trials(minutes_ago=61))

    def test_an_engine_at_work_is_not_blamed(self):
        evidence = {"engine": Read(Engine(0.0, answered=40), NOW)}
        (signal,) = fired("eval-stall", Bucket.EVAL, trials(minutes_ago=61), evidence=evidence)
        assert signal.severity is Severity.WATCH
        assert "the engine is at work" in signal.title

    def test_the_threshold_is_configuration(self):
        options = {"quiet": timedelta(hours=3)}
        reading = trials(minutes_ago=61)
        assert not fired("eval-stall", Bucket.EVAL, reading, options=options)


class TestZombie:
    @pytest.mark.parametrize(
        ("done", "minutes", "wanted"), [(300, 9, 0), (300, 10, 1), (299, 600, 0), (301, 11, 1)]
    )
    def test_all_done_and_still_running(self, done, minutes, wanted):
        assert len(fired("zombie", Bucket.EVAL, trials(done, minutes_ago=minutes))) == wanted

    def test_what_it_says(self):
        (signal,) = fired("zombie", Bucket.EVAL, trials(300, minutes_ago=11))
        assert (signal.severity, signal.action) == (Severity.ALARM, "cancel")

    @pytest.mark.parametrize("reading", [*NO_EVIDENCE, trials(300, None, minutes_ago=99)])
    def test_not_without_proof(self, reading):
        assert not fired("zombie", Bucket.EVAL, reading)

    def test_not_of_a_job_that_has_just_started_on_an_old_tree(self):
        facts = Facts(started_at=at(-5))
        assert not fired("zombie", Bucket.EVAL, trials(300, minutes_ago=99), facts=facts)


class TestEngineIdle:
    @pytest.mark.parametrize(("idle_s", "wanted"), [(0, 0), (599, 0), (600, 1), (None, 0)])
    def test_ten_minutes_without_a_request(self, idle_s, wanted):
        evidence = {"engine": Read(Engine(idle_s), NOW)}
        assert len(fired("engine-idle", Bucket.EVAL, trials(), evidence=evidence)) == wanted

    @pytest.mark.parametrize(("minutes", "wanted"), [(9, 0), (10, 1)])
    def test_being_suspended_is_not_idling(self, minutes, wanted):
        evidence, log = {"engine": Read(Engine(90_000.0), NOW)}, LogEvidence(rested_at=at(-minutes))
        found = fired("engine-idle", Bucket.EVAL, trials(), evidence=evidence, log=log)
        assert len(found) == wanted

    def test_an_answer_since_then_is_a_sign_of_life(self):
        evidence = {"engine": Read(Engine(900, 3, answered_after_idle=True), NOW)}
        assert not fired("engine-idle", Bucket.EVAL, trials(), evidence=evidence)

    def test_with_every_trial_done_it_has_a_right_to(self):
        evidence = {"engine": Read(Engine(900), NOW)}
        assert not fired("engine-idle", Bucket.EVAL, trials(300), evidence=evidence)
        assert fired("engine-idle", Bucket.DATAGEN, NotApplicable(), evidence=evidence)

    @pytest.mark.parametrize("reading", NO_EVIDENCE)
    def test_a_fetch_that_failed_raises_nothing(self, reading):
        assert not fired("engine-idle", Bucket.EVAL, trials(), evidence={"engine": reading})


class TestInstantFail:
    @pytest.mark.parametrize(
        ("ended", "wanted"),
        [
            ([FINE, *[FAST] * 5], 1),
            ([FAST] * 4, 0),
            ([*[FAST] * 4, FINE], 0),
            ([FAST, FAST, FINE, FAST, FAST], 0),
            ([replace(FAST, duration_s=5.0)] * 5, 1),
            ([replace(FAST, duration_s=5.1)] * 5, 0),
            ([replace(FAST, output_tokens=1)] * 5, 0),
            ([replace(FAST, output_tokens=0)] * 5, 1),
            ([replace(FAST, duration_s=None)] * 5, 0),
        ],
    )
    def test_the_last_five(self, ended, wanted):
        assert len(fired("instant-fail", Bucket.EVAL, trials(**recent(*ended)))) == wanted

    @pytest.mark.parametrize("reading", NO_EVIDENCE)
    def test_a_fetch_that_failed_raises_nothing(self, reading):
        assert not fired("instant-fail", Bucket.EVAL, reading)


class TestAuthFailures:
    @pytest.mark.parametrize(
        ("ended", "wanted"),
        [
            ([REFUSED] * 2 + [FINE] * 18, 0),
            ([REFUSED] * 3 + [FINE] * 17, 1),
            ([REFUSED] * 3 + [FINE] * 20, 0),
            ([TIMED_OUT] * 20, 0),
            ([replace(REFUSED, exception="AuthenticationError")] * 3, 1),
        ],
    )
    def test_three_of_the_last_twenty(self, ended, wanted):
        assert len(fired("auth-failures", Bucket.EVAL, trials(**recent(*ended)))) == wanted

    @pytest.mark.parametrize("reading", NO_EVIDENCE)
    def test_a_fetch_that_failed_raises_nothing(self, reading):
        assert not fired("auth-failures", Bucket.EVAL, reading)


class TestDeadEngine:
    @pytest.mark.parametrize(
        ("average", "of", "wanted"),
        [(1.0, 10, 1), (1.05, 10, 1), (1.06, 500, 0), (1.0, 9, 0), (5.1, 500, 0)],
    )
    def test_one_turn_a_trial(self, average, of, wanted):
        reading = trials(avg_turns=average, turns_source="episodes", turns_of=of)
        assert len(fired("dead-engine", Bucket.DATAGEN, reading)) == wanted

    def test_an_engine_that_died_on_the_way(self):
        one = replace(FINE, turns=1)
        known = {"avg_turns": 4.0, "turns_source": "episodes", "turns_of": 100}
        reading = trials(**known, **recent(*[FINE] * 80, *[one] * 20))
        (signal,) = fired("dead-engine", Bucket.DATAGEN, reading)
        assert (
            signal.title
            == "one turn in each of the last 20 trials: dead engine, do not consolidate"
        )
        reading = trials(**known, **recent(*[FINE] * 80, *[one] * 19))
        assert not fired("dead-engine", Bucket.DATAGEN, reading)

    def test_a_quarter_of_exceptions_is_normal(self):
        reading = trials(errored=36, avg_turns=5.1, turns_source="episodes", turns_of=142,
                         **recent(*[TIMED_OUT, FINE, FINE, FINE] * 25))  # fmt: skip
        for rule in registry.rules:
            assert not fired(rule, Bucket.DATAGEN, reading)

    @pytest.mark.parametrize("reading", [*NO_EVIDENCE, trials()])
    def test_a_fetch_that_failed_raises_nothing(self, reading):
        assert not fired("dead-engine", Bucket.DATAGEN, reading)


class TestStrandedTraces:
    LOST: ClassVar = {"state": State.TIMEOUT, "evidence": {"exported": Read(0, NOW)}}

    def test_a_time_limit_before_the_upload(self):
        (signal,) = fired("stranded-traces", Bucket.DATAGEN, trials(), **self.LOST)
        assert (signal.severity, signal.action) == (Severity.ALARM, "consolidate")

    @pytest.mark.parametrize(
        "changes",
        [
            {"state": State.COMPLETED},
            {"state": State.RUNNING},
            {"successor": "lab/4712"},
            {"evidence": {"exported": Read(142, NOW)}},
            *({"evidence": {"exported": nothing}} for nothing in NO_EVIDENCE),
        ],
    )
    def test_not(self, changes):
        assert not fired("stranded-traces", Bucket.DATAGEN, trials(), **{**self.LOST, **changes})

    @pytest.mark.parametrize("reading", [*NO_EVIDENCE, trials(0)])
    def test_nothing_there_to_be_stranded(self, reading):
        assert not fired("stranded-traces", Bucket.DATAGEN, reading, **self.LOST)


class TestHungChunk:
    @pytest.mark.parametrize(
        ("log", "ended", "wanted"), [(119, 500, 0), (500, 119, 0), (120, 120, 1), (300, 180, 1)]
    )
    def test_log_and_trials_both_still(self, log, ended, wanted):
        evidence = LogEvidence(status="read", mtime_at=at(-log))
        found = fired("hung-chunk", Bucket.DATAGEN, trials(minutes_ago=ended), log=evidence)
        assert len(found) == wanted

    @pytest.mark.parametrize("status", ["unavailable", "not-read", "absent", "none"])
    def test_a_log_that_was_not_read_is_not_silent(self, status):
        evidence = LogEvidence(status=status, mtime_at=at(-500))
        assert not fired("hung-chunk", Bucket.DATAGEN, trials(minutes_ago=500), log=evidence)

    @pytest.mark.parametrize("reading", NO_EVIDENCE)
    def test_a_fetch_that_failed_raises_nothing(self, reading):
        evidence = LogEvidence(status="read", mtime_at=at(-500))
        assert not fired("hung-chunk", Bucket.DATAGEN, reading, log=evidence)


class TestNoTrials:
    AGENTIC: ClassVar = {"labels": frozenset({"agentic"})}

    @pytest.mark.parametrize(("minutes", "wanted"), [(119, 0), (120, 1)])
    def test_an_agentic_run(self, minutes, wanted):
        found = fired("no-trials", Bucket.RL, trials(minutes_ago=minutes), **self.AGENTIC)
        assert [one.severity for one in found] == [Severity.WATCH] * wanted

    def test_a_standard_run_is_not_in_error_for_having_no_tree(self):
        assert not fired("no-trials", Bucket.RL, Absent())
        assert not fired("no-trials", Bucket.RL, trials(minutes_ago=500))

    @pytest.mark.parametrize("reading", NO_EVIDENCE)
    def test_a_fetch_that_failed_raises_nothing(self, reading):
        assert not fired("no-trials", Bucket.RL, reading, **self.AGENTIC)


class TestCompletionMismatch:
    @pytest.mark.parametrize(
        ("last", "total", "nan", "wanted"),
        [
            (916, 916, 0, 0),
            (900, 916, 0, 1),
            (916, 916, 2, 1),
            (916, None, 0, 0),
            (None, 916, 0, 0),
        ],
    )
    def test_training(self, last, total, nan, wanted):
        evidence = {"completion": Read(Completion(last, total, nan), NOW)}
        found = fired("completion-mismatch", Bucket.SFT, NotApplicable(),
                      state=State.COMPLETED, evidence=evidence)  # fmt: skip
        assert [one.severity for one in found] == [Severity.WATCH] * wanted

    @pytest.mark.parametrize(
        ("reading", "wanted"),
        [(trials(300), 0), (trials(299), 1), (trials(299, whole=False), 0), (trials(9, None), 0)],
    )
    def test_evaluations(self, reading, wanted):
        found = fired("completion-mismatch", Bucket.EVAL, reading, state=State.COMPLETED)
        assert len(found) == wanted

    def test_only_at_the_end(self):
        assert not fired("completion-mismatch", Bucket.EVAL, trials(299), state=State.FAILED)


class TestAFetchThatFails:
    RULES: ClassVar = [registry.rules["eval-stall"]()]

    def case(self, minute, reading, *, before=None, **changes):
        now = at(minute)
        shown = job(bucket=Bucket.EVAL, facts=Facts(started_at=at(-600)), **changes)
        return Case(before, shown, now, trials=reading)

    def test_neither_raises_nor_clears(self):
        raised = judged(self.case(0, trials(minutes_ago=61)), self.RULES)
        assert [one.rule for one in raised.opened] == ["eval-stall"]
        blind = self.case(15, Unavailable("timed out"), signals=raised.signals)
        after = judged(blind, self.RULES)
        assert (after.opened, after.cleared) == ((), ())
        seen = self.case(30, trials(143, minutes_ago=-29), signals=after.signals)
        assert [one.rule for one in judged(seen, self.RULES).cleared] == ["eval-stall"]

    def test_a_job_that_ended_is_no_longer_stalled_whatever_was_read(self):
        raised = judged(self.case(0, trials(minutes_ago=61)), self.RULES)
        over = self.case(15, Unavailable("gone"), before=job(), signals=raised.signals,
                         state=State.FAILED)  # fmt: skip
        assert [one.rule for one in judged(over, self.RULES).cleared] == ["eval-stall"]
