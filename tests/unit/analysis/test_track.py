"""Series in bounded memory, where a later life wins."""

from itertools import pairwise

from jobmond.analysis.pace import Pace
from jobmond.analysis.track import POINTS, Track, thinned
from jobmond.model.metrics import Column


def track(*points, **options):
    found = Track(**options)
    for step, value in points:
        found.put(step, {"loss": value})
    return found


class TestColumns:
    def test_the_later_value_wins_at_each_step(self):
        found = track((1, 1.0), (2, 2.0), (3, 3.0))
        found.settle(3)
        found.put(2, {"loss": 20.0})
        assert found.columns()["loss"] == Column((1, 2, 3), (1.0, 20.0, 3.0))

    def test_records_of_one_step_are_one(self):
        found = track((1, 1.0))
        found.put(1, {"reward": 0.5})
        assert len(found.current) == 1
        assert found.columns().keys() == {"loss", "reward"}

    def test_a_record_without_a_step_is_in_no_series(self):
        assert track((None, 1.0)).columns() == {}

    def test_window_and_value(self):
        column = Column((1, 2, 5, 9), (1.0, 2.0, 5.0, 9.0))
        assert column.before(9, 2) == (2.0, 5.0)
        assert column.before(1, 10) == ()
        assert column.before(7, 10) == (1.0, 2.0, 5.0)
        assert (column.at(5), column.at(6)) == (5.0, None)


class TestJudging:
    def test_what_a_step_says_later_is_judged_too(self):
        """A look fell between two records of one step, or between its validation and itself."""
        found = track((1, 1.0), (2, 2.0))
        found.for_rules(1, ())
        found.put(2, {"grad_norm": float("inf")})
        assert found.for_rules(1, ()).judged == [2]
        found.put(3, {"eval_loss": 1.0}, trained=False)
        assert found.for_rules(1, ()).judged == []
        found.put(3, {"loss": 3.0})
        assert found.for_rules(1, ()).judged == [3]

    def test_every_step_once(self):
        found = track((1, 1.0), (2, 2.0))
        assert found.for_rules(1, ()).judged == [1, 2]
        found.put(3, {"loss": 3.0})
        assert found.for_rules(1, ()).judged == [3]
        assert found.for_rules(1, ()).columns["loss"].steps == (1, 2, 3)

    def test_what_is_no_training_is_not_judged(self):
        found = track((1, 1.0))
        found.put(5, {"eval_loss": 1.0}, trained=False)
        assert found.for_rules(1, ()).judged == [1]


class TestThinning:
    def test_few_points_stay(self):
        assert thinned({1: 1.0, 9: 2.0}, 2) == {1: 1.0, 9: 2.0}

    def test_at_most_so_many_with_the_last_and_the_protected(self):
        points = dict.fromkeys(range(100_000), 1.0)
        found = thinned(points, 2000, {777, 31_337})
        assert len(found) <= 2000
        assert {0, 777, 31_337, 99_999} <= found.keys()

    def test_evenly(self):
        steps = list(thinned(dict.fromkeys(range(100_000), 1.0), 2000))
        gaps = [b - a for a, b in pairwise(steps)]
        assert max(gaps) <= 2 * sorted(gaps)[len(gaps) // 2]

    def test_twice_is_as_good_as_once(self):
        points = dict.fromkeys(range(0, 50_000, 3), 1.0)
        assert thinned(thinned(points, 2000), 2000) == thinned(points, 2000)

    def test_hostile_steps(self):
        points = {0: 1.0, 10**12: 1.0, **dict.fromkeys(range(5, 5000), 1.0)}
        assert len(thinned(points, 2000)) <= 2000

    def test_memory_is_bounded(self):
        found = Track()
        for step in range(5 * POINTS):
            found.put(step, {"loss": 1.0})
            if len(found.current) > 100:
                found.settle(50)
        assert len(found.settled["loss"]) <= 2 * POINTS

    def test_everything_is_kept_where_asked(self):
        found = track(*((step, 1.0) for step in range(5 * POINTS)), thin=False)
        found.settle(5 * POINTS)
        assert len(found.columns()["loss"].steps) == 5 * POINTS


class TestPace:
    def frames(self, *frames):
        pace = Pace()
        for n, elapsed_s in frames:
            pace.painted(n, elapsed_s)
        return pace.s_per_step()

    def test_unknown_before_two_steps(self):
        assert self.frames() is None
        assert self.frames((0, 0.0), (1, 30.0)) is None

    def test_saving_does_not_count(self):
        steps = [(n, 30.0 * n + (600.0 if n > 20 else 0.0)) for n in range(40)]
        assert self.frames(*steps) == 30.0

    def test_a_resumed_bar_leaps(self):
        assert self.frames((0, 0.0), (61, 30.0), (62, 60.0), (63, 90.0)) == 30.0

    def test_a_bar_that_starts_again(self):
        assert self.frames((0, 0.0), (1, 90.0), (0, 0.0), (1, 30.0), (2, 60.0)) == 30.0

    def test_durations_that_the_trainer_prints_are_better(self):
        pace = Pace()
        for seconds in (1.0, 1.0, 9.0, 1.0, float("nan"), float("inf")):
            pace.took(seconds)
        assert pace.s_per_step() == 1.0
