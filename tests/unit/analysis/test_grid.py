from random import Random

from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.grid import GridJob, Standing, rollup
from jobmond.model.state import State

RUNNING, PENDING, DONE, STOPPED = Standing
R, P, C, T, F = State.RUNNING, State.PENDING, State.COMPLETED, State.TIMEOUT, State.FAILED


def job(number, run, state, *steps, eta_s=None, rate=None):
    return GridJob(f"leonardo/{number}", run, state, *steps, eta_s=eta_s, rate_s_per_step=rate)


# Six cells; restart chains queued every one of them several times over.
SIX = [
    job(1, "1b-lr1", C, 916, 916),
    job(2, "1b-lr1", P),
    job(3, "1b-lr2", R, 700, 916, eta_s=2_000.0),
    job(4, "1b-lr2", P),
    job(5, "1b-lr2", P),
    job(6, "7b-lr1", T, 200, 916),
    job(7, "7b-lr1", R, 320, 916, eta_s=60_000.0),
    job(8, "7b-lr1", P),
    job(9, "7b-lr2", P),
    job(10, "7b-lr2", P),
    job(11, "7b-lr2", P),
    job(12, "70b-lr1", T, 91, 916, rate=300.0),
    job(13, "70b-lr1", P),
    job(14, "70b-lr1", P),
    job(15, "70b-lr2", F, 12, 916),
]


def tally(grid):
    return {standing: grid.count(standing) for standing in Standing}


def test_six_cells_with_resume_copies():
    grid = rollup(SIX)
    assert tally(grid) == {RUNNING: 2, PENDING: 2, DONE: 1, STOPPED: 1}
    assert {cell.run: cell.standing for cell in grid.cells} == {
        "1b-lr1": DONE,
        "1b-lr2": RUNNING,
        "7b-lr1": RUNNING,
        "7b-lr2": PENDING,
        "70b-lr1": PENDING,
        "70b-lr2": STOPPED,
    }
    assert [(c.run, c.job.ref, c.job.left_s) for c in grid.running] == [
        ("7b-lr1", "leonardo/7", 60_000.0),
        ("1b-lr2", "leonardo/3", 2_000.0),
    ]
    assert round(grid.running[0].progress, 3) == 0.349  # 320 of 916
    # It waits, but what it has left at its own pace is the longest: 825 steps of 300 s.
    assert grid.long_pole.run == "70b-lr1"
    assert grid.long_pole.job.left_s == 247_500.0


def test_without_any_pace_the_most_steps_are_the_long_pole():
    grid = rollup([job(1, "a", R, 10, 100), job(2, "b", R, 10, 300), job(3, "c", P)])
    assert grid.long_pole.run == "b"
    assert rollup([job(1, "a", R), job(2, "b", P)]).long_pole is None


def test_what_is_done_is_no_long_pole():
    grid = rollup([job(1, "a", C, 100, 900, rate=100.0), job(2, "b", R, 10, 100, eta_s=50.0)])
    assert grid.long_pole.run == "b"
    assert rollup([job(1, "a", C), job(2, "b", C)]).long_pole is None


def test_an_early_end_with_a_copy_waiting_is_not_done():
    early = [job(1, "a", C, 100, 900), job(2, "a", P), job(3, "b", R)]
    assert tally(rollup(early)) == {RUNNING: 1, PENDING: 1, DONE: 0, STOPPED: 0}
    full = [job(1, "a", C, 900, 900), job(2, "a", P), job(3, "b", R)]
    assert tally(rollup(full)) == {RUNNING: 1, PENDING: 0, DONE: 1, STOPPED: 0}


def test_one_cell_is_no_grid():
    assert rollup([]) is None
    assert rollup([job(1, "a", R), job(2, "a", P)]) is None


def test_progress_stays_within_its_bounds():
    grid = rollup([job(1, "a", R, 5, 0), job(2, "b", R, 950, 916), job(3, "c", R, None, 916)])
    assert [cell.progress for cell in grid.cells] == [None, 1.0, None]


JOBS = st.lists(
    st.builds(
        GridJob,
        ref=st.text("abc/1", max_size=4),
        run=st.sampled_from("abcdef"),
        state=st.sampled_from(list(State)),
        step=st.none() | st.integers(0, 1000),
        max_step=st.none() | st.integers(0, 1000),
        eta_s=st.none() | st.floats(0, 1e6),
    ),
    max_size=20,
)


@given(JOBS, st.randoms(use_true_random=False))
def test_each_cell_is_counted_once_in_whatever_order(jobs, order: Random):
    grid = rollup(jobs)
    runs = {job.run for job in jobs}
    if grid is None:
        assert len(runs) < 2
        return
    assert sum(tally(grid).values()) == len(runs)
    mixed = list(jobs)
    order.shuffle(mixed)
    assert tally(rollup(mixed)) == tally(grid)


@given(JOBS)
def test_more_waiting_copies_change_no_running_count(jobs):
    copies = [GridJob("x/1", job.run, State.PENDING) for job in jobs]
    grid, more = rollup(jobs), rollup([*jobs, *copies])
    if grid is not None:
        assert more.count(RUNNING) == grid.count(RUNNING)
        assert len(more.cells) == len(grid.cells)
