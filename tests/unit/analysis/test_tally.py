"""Trials of jobs summed up, with the job's own numbers or against them."""

import pytest

from jobmond.analysis.harbor import JobResult
from jobmond.analysis.tally import JobTree, tally
from jobmond.model.trials import Trial, Trials


def trials(*rewards, **fields):
    return tuple(Trial(f"t{i}", reward, **fields) for i, reward in enumerate(rewards))


def test_nothing_yet():
    found = tally([JobTree()])
    assert (found.done, found.total, found.pass_rate, found.mean_reward) == (0, None, None, None)
    assert not found.finished
    assert not found.all_done


def test_the_jobs_own_numbers_come_first():
    own = JobResult(10, 9, 5, 1, {"AgentTimeoutError": 5}, {1.0: 3, 0.0: 6}, 1 / 3, "all-trials")
    found = tally([JobTree(own, trials(1.0, 0.0))])
    assert (found.done, found.total, found.errored, found.passed) == (9, 10, 5, 3)
    assert found.exception_fraction == pytest.approx(5 / 9)
    assert found.top_exception == "AgentTimeoutError"


def test_trials_that_are_ahead_of_a_stale_or_torn_job_file_win():
    stale = JobResult(4, 1, 0, 0, {}, {1.0: 1}, 1.0, "all-trials")
    for own, total in ((stale, 4), (None, None), (JobResult(total=4), 4)):
        found = tally([JobTree(own, trials(1.0, 0.0, 0.0))])
        assert (found.done, found.total, found.passed) == (3, total, 1)
        assert (found.mean_reward, found.mean_reward_basis) == (
            pytest.approx(1 / 3),
            "all-trials",
        )


def test_a_job_file_without_rewards_does_not_hide_those_of_trials():
    bare = JobResult(4, 2)
    assert tally([JobTree(bare, trials(1.0, 0.0))]).passed == 1


def test_trials_that_are_not_scored_are_left_out_of_the_mean_and_in_the_pass_rate():
    some = (Trial("a", 1.0), Trial("b", None, scored=False, exception="DaytonaError"))
    found = tally([JobTree(None, some)])
    assert (found.mean_reward, found.mean_reward_basis) == (1.0, "scored-trials")
    assert (found.pass_rate, found.exception_fraction) == (0.5, 0.5)


def test_no_verifier_no_mean():
    found = tally([JobTree(None, trials(None, None))])
    assert (found.mean_reward, found.mean_reward_basis, found.pass_rate) == (None, None, 0.0)


def test_chunks():
    done = JobTree(JobResult(5, 5, mean=0.5, basis="all-trials", rewards={0.5: 5}, finished=True))
    half = JobTree(JobResult(5, 2, mean=1.0, basis="all-trials", rewards={1.0: 2}))
    found = tally([done, half], chunks=3)
    assert (found.chunks_done, found.chunks_total) == (1, 3)
    assert found.total is None, "the third chunk has not said how many it will be"
    assert found.mean_reward == pytest.approx((5 * 0.5 + 2 * 1.0) / 7)
    assert tally([done, half], chunks=2).total == 10
    assert tally([done, half]).chunks_total is None


def test_means_over_different_trials_are_said_to_be_mixed():
    one = JobTree(JobResult(1, 1, mean=1.0, basis="all-trials", rewards={1.0: 1}))
    two = JobTree(JobResult(2, 2, mean=0.0, basis="scored-trials", rewards={0.0: 1}))
    found = tally([one, two])
    assert (found.mean_reward, found.mean_reward_basis) == (0.5, "mixed")


def test_turns_by_the_best_source_alone():
    some = (
        Trial("a", turns=4, turns_source="episodes"),
        Trial("b", turns=6, turns_source="episodes"),
        Trial("c", turns=90, turns_source="agent-steps"),
        Trial("d"),
    )
    found = tally([JobTree(None, some)])
    assert (found.avg_turns, found.turns_source, found.turns_of) == (5.0, "episodes", 2)
    found = tally([JobTree(None, some[2:])])
    assert (found.avg_turns, found.turns_source) == (90.0, "agent-steps")


def test_the_last_hundred_are_the_newest():
    found = tally([JobTree(None, trials(*[0.0] * 150))])
    assert [t.name for t in found.recent] == [f"t{i}" for i in range(50, 150)]


def test_results_that_were_not_read_make_it_a_lower_bound():
    assert not tally([JobTree(unread=1)]).whole


@pytest.mark.parametrize(("done", "total", "wanted"), [(9, 10, 0), (10, 10, 1), (11, 10, 1)])
def test_all_done(done, total, wanted):
    assert Trials(done, total).all_done is bool(wanted)
    assert not Trials(0, 0).all_done


def test_of_equally_frequent_exceptions_the_first_by_name():
    assert Trials(3, exceptions={"B": 1, "A": 1}).top_exception == "A"
