"""At most 30 sweeps an hour and cluster, ten of them at once."""

from hypothesis import given
from hypothesis import strategies as st

from jobmond.desk.budget import SweepBudget


def test_ten_at_once_and_no_eleventh():
    budget = SweepBudget()
    assert [budget.take("leonardo", 100.0) for _ in range(11)] == [True] * 10 + [False]


def test_a_token_comes_back_after_two_minutes():
    budget = SweepBudget()
    for _ in range(10):
        budget.take("leonardo", 0.0)
    assert not budget.take("leonardo", 119.0)
    assert budget.take("leonardo", 120.0)
    assert not budget.take("leonardo", 121.0)


def test_clusters_do_not_share():
    budget = SweepBudget(burst=1)
    assert budget.take("leonardo", 0.0)
    assert budget.take("jureca", 0.0)
    assert not budget.take("leonardo", 0.0)


def test_one_every_two_minutes_goes_on_for_ever():
    budget = SweepBudget()
    assert all(budget.take("leonardo", 120.0 * i) for i in range(500))


def test_a_burst_does_not_come_on_top_of_thirty():
    budget = SweepBudget()
    taken = [t for t in range(3600) if budget.take("leonardo", float(t))]
    assert len(taken) == 30
    assert taken[:10] == list(range(10))


def test_a_clock_that_goes_back_gives_nothing():
    budget = SweepBudget(burst=1)
    assert budget.take("leonardo", 1000.0)
    assert not budget.take("leonardo", 10.0)
    assert not budget.take("leonardo", 1000.0)
    assert budget.take("leonardo", 1120.0)


@given(st.lists(st.floats(0, 600), max_size=300))
def test_no_hour_holds_more_than_thirty(gaps):
    budget, now, taken = SweepBudget(), 0.0, []
    for gap in gaps:
        now += gap
        if budget.take("leonardo", now):
            taken.append(now)
    for start in taken:
        assert sum(1 for t in taken if start <= t < start + 3600) <= 30
        assert sum(1 for t in taken if t == start) <= 10
