"""Requeues, chains, adoption: what becomes of a cluster's jobs together."""

from dataclasses import replace

from jobmond.analysis.settle import Found, settled
from jobmond.model.job import Choices, Classified
from jobmond.model.observation import Facts, TaskCounts, Unreachable
from jobmond.model.state import Bucket, Kind, State
from tests.unit.builders import DAY, NOW, at, by_name, ended, job, seen, unseen


def as_rl(choices, facts, native_id, read_as=None, /):
    return Classified(Bucket.RL, "rl", "grid", frozenset())


def settle(
    jobs, sightings, found=(), *, adopt=False, adopt_ended=True, lives=None, classify=by_name
):
    moves = settled(
        "lab",
        jobs,
        {(Kind.SLURM, i): s for i, s in sightings.items()},
        [Found(Kind.SLURM, i, s) for i, s in found],
        adopt=adopt,
        adopt_ended=adopt_ended,
        lives=lives or {},
        classify=classify,
        now=NOW,
        unknown_for=DAY,
    )
    return {(m.job.native_id, m.job.birth): m for m in moves}


def timeout(**facts):
    return seen(State.TIMEOUT, ended_at=at(-5), **facts)


def test_a_timeout_nothing_continues_stands_alone():
    moves = settle([job()], {"4711": timeout()})
    move = moves["4711", "100"]
    assert (move.restarted_as, move.job.successor) == (None, None)


def test_a_tracked_successor_whose_dependency_was_remembered_takes_over():
    waiting = job(
        "4712",
        state=State.PENDING,
        facts=Facts(name="train", dependency="afterany:4711(unfulfilled)"),
        life=2,
    )
    moves = settle(
        [job(), waiting],
        {"4711": timeout(), "4712": seen(State.RUNNING, started_at=at(-5))},
    )
    first, second = moves["4711", "100"], moves["4712", "100"]
    assert (first.restarted_as, first.restarted_in) == ("lab/4712", State.RUNNING)
    assert first.job.successor == "lab/4712"
    assert second.silent
    assert second.job.predecessor == first.job.id


def test_a_successor_with_another_name_joins_the_run():
    waiting = job(
        "4712",
        state=State.PENDING,
        run="resume",
        facts=Facts(name="resume", dependency="afterany:4711"),
    )
    moves = settle(
        [job(), waiting],
        {"4711": timeout(), "4712": seen(State.RUNNING, name="resume")},
        lives={"train": 1, "resume": 1},
    )
    assert (moves["4712", "100"].job.run, moves["4712", "100"].job.life) == ("train", 2)


def test_an_untracked_successor_is_tracked_with_what_people_chose():
    choices = Choices(description="the big one", owner="alice", log_path="/x.out")
    moves = settle(
        [job(choices=choices)],
        {"4711": timeout()},
        [("4712", seen(State.PENDING, birth="150", dependency="afterany:4711(unfulfilled)"))],
        lives={"train": 1},
    )
    new = moves["4712", "150"]
    assert new.before is None
    assert (new.job.tracked, new.job.run, new.job.life) == (True, "train", 2)
    assert new.job.choices == Choices(description="the big one", owner="alice")
    assert new.silent


def test_an_unseen_successor_is_known_by_directory_script_and_name():
    work = {"workdir": "/w", "command": "/w/run.sh", "submitted_at": at(-90)}
    before = job(facts=Facts(name="train", **work))
    started = seen(State.RUNNING, birth="150", started_at=at(-5), **work)
    moves = settle([before], {"4711": timeout(**work)}, [("4712", started)])
    assert moves["4711", "100"].restarted_as == "lab/4712"


def test_a_sibling_that_ran_beside_it_is_no_successor():
    work = {"workdir": "/w", "command": "/w/run.sh", "submitted_at": at(-90)}
    before = job(facts=Facts(name="train", **work))
    beside = seen(State.RUNNING, birth="150", started_at=at(-60), **work)
    moves = settle([before], {"4711": timeout(**work)}, [("4712", beside)])
    assert moves["4711", "100"].restarted_as is None
    assert ("4712", "150") not in moves


def test_a_failure_is_no_restart_even_with_a_successor():
    waiting = job("4712", state=State.PENDING, facts=Facts(dependency="afterany:4711"))
    moves = settle(
        [job(), waiting],
        {"4711": seen(State.FAILED, exit_code=1), "4712": seen(State.RUNNING)},
    )
    assert moves["4711", "100"].restarted_as is None
    assert not moves["4712", "100"].silent


def test_a_successor_that_has_ended_meanwhile_still_continued_it_and_says_its_end():
    waiting = job("4712", state=State.PENDING, facts=Facts(dependency="afterany:4711"))
    moves = settle(
        [job(), waiting],
        {"4711": timeout(), "4712": seen(State.COMPLETED, started_at=at(-5))},
    )
    assert moves["4711", "100"].restarted_as == "lab/4712"
    assert not moves["4712", "100"].silent


def test_a_successor_cancelled_before_it_started_continues_nothing():
    waiting = job("4712", state=State.PENDING, facts=Facts(dependency="afterany:4711"))
    moves = settle(
        [job(), waiting], {"4711": timeout(), "4712": seen(State.CANCELLED, started_at=None)}
    )
    assert moves["4711", "100"].restarted_as is None


def test_a_long_chain_moves_one_link_at_a_time():
    b = job("4712", state=State.PENDING, facts=Facts(dependency="afterany:4711"))
    c = job("4713", state=State.PENDING, facts=Facts(dependency="afterany:4712"))
    moves = settle(
        [job(), b, c],
        {
            "4711": timeout(),
            "4712": timeout(started_at=at(-50)),
            "4713": seen(State.RUNNING, started_at=at(-5)),
        },
    )
    assert moves["4711", "100"].job.successor == "lab/4712"
    assert moves["4712", "100"].job.successor == "lab/4713"
    assert moves["4713", "100"].silent


def test_a_requeue_is_told_once_and_both_lives_are_kept():
    sighting = seen(State.PENDING, birth="200", previous=(ended(State.NODE_FAIL),))
    moves = settle([job()], {"4711": sighting}, lives={"train": 1})
    old, new = moves["4711", "100"], moves["4711", "200"]
    assert (old.restarted_as, old.restarted_in) == ("lab/4711", State.PENDING)
    assert (new.silent, new.job.life) == (True, 2)


def test_discovery_takes_the_living_and_what_ended_since_the_last_look():
    found = [("1", seen(State.RUNNING)), ("2", seen(State.FAILED, ended_at=at(-3)))]
    moves = settle([], {}, found, adopt=True)
    assert sorted(i for i, _ in moves) == ["1", "2"]
    assert all(m.job.discovered for m in moves.values())
    assert moves["2", "100"].job.tracked is False


def test_at_first_contact_discovery_takes_only_the_living():
    found = [("1", seen(State.RUNNING)), ("2", seen(State.FAILED, ended_at=at(-1)))]
    moves = settle([], {}, found, adopt=True, adopt_ended=False)
    assert [i for i, _ in moves] == ["1"]


def test_without_discovery_nothing_is_taken():
    assert settle([], {}, [("1", seen(State.RUNNING))]) == {}


def test_jobs_of_one_name_are_lives_of_one_run():
    found = [("1", seen(State.RUNNING)), ("2", seen(State.RUNNING))]
    moves = settle([], {}, found, adopt=True, lives={"train": 3})
    assert sorted(m.job.life for m in moves.values()) == [4, 5]


def test_the_run_gets_its_name_with_the_first_sighting():
    moves = settle([unseen()], {"4711": seen(State.RUNNING)}, lives={"4711": 1})
    move = moves["4711", "100"]
    assert (move.job.run, move.job.life) == ("train", 1)


def test_the_first_failure_among_many_parts_is_noticed_once():
    def tasks(*failed):
        return TaskCounts(4, {State.RUNNING: 4 - len(failed)}, tuple(failed))

    before = job(facts=Facts(name="train", tasks=tasks()))
    moves = settle([before], {"4711": seen(State.RUNNING, tasks=tasks("4711_2"))})
    assert moves["4711", "100"].first_part_failed
    again = replace(before, facts=replace(before.facts, tasks=tasks("4711_2")))
    moves = settle([again], {"4711": seen(State.RUNNING, tasks=tasks("4711_2", "4711_3"))})
    assert not moves["4711", "100"].first_part_failed


def test_a_job_nobody_asked_about_comes_back_as_it_was():
    over = job(state=State.FAILED, tracked=False)
    assert settle([over], {})["4711", "100"].job == over


def test_an_ended_life_waiting_for_its_log_is_not_moved_by_the_next_life():
    over = job(id=1, state=State.FAILED, tracked=False)
    live = job(id=2, birth="200", state=State.PENDING)
    moves = settle([over, live], {"4711": seen(State.RUNNING, birth="200")})
    assert moves["4711", "100"].job == over
    assert moves["4711", "200"].job.state is State.RUNNING


def array(*running):
    return TaskCounts(9, {State.RUNNING: len(running)}, (), running)


def test_running_tasks_of_an_array_are_rows_of_their_own_where_metrics_matter():
    moves = settle(
        [job()], {"4711": seen(State.RUNNING, tasks=array("4711_3", "4711_4"))}, classify=as_rl
    )
    part = moves["4711_3", None]
    assert (part.silent, part.job.tracked, part.job.id, part.transition) == (True, True, 0, None)
    assert ("4711_4", None) in moves


def test_tasks_of_other_arrays_are_not_and_known_ones_not_twice():
    sighting = {"4711": seen(State.RUNNING, tasks=array("4711_3"))}
    assert list(settle([job()], sighting)) == [("4711", "100")]
    moves = settle([job(), job("4711_3")], sighting, classify=as_rl)
    assert sorted(moves) == [("4711", "100"), ("4711_3", "100")]


def test_the_end_of_a_part_is_not_told_by_itself():
    moves = settle(
        [job(), job("4711_3")],
        {"4711": seen(State.RUNNING), "4711_3": seen(State.FAILED, exit_code=1)},
    )
    assert moves["4711_3", "100"].silent
    alone = settle([job("4711_3")], {"4711_3": seen(State.FAILED, exit_code=1)})
    assert not alone["4711_3", "100"].silent


def waiting_for_4711(**changes):
    facts = Facts(name="train", dependency="afterany:4711(unfulfilled)")
    return job("4712", state=State.PENDING, facts=facts, life=2, **changes)


def test_a_start_is_told_with_the_end_it_waited_for():
    unsettled = Unreachable("the queue no longer knows it; accounting says RUNNING")
    first = settle(
        [job(), waiting_for_4711()],
        {"4711": unsettled, "4712": seen(State.RUNNING, started_at=at(-1))},
    )
    held = first["4712", "100"]
    assert (held.transition, held.job.state, held.job.stale) == (None, State.PENDING, True)
    second = settle(
        [first["4711", "100"].job, held.job],
        {"4711": timeout(), "4712": seen(State.RUNNING, started_at=at(-1))},
    )
    assert second["4711", "100"].restarted_as == "lab/4712"
    assert second["4712", "100"].silent


def test_but_no_longer_than_one_sweep():
    unsettled = Unreachable("accounting does not answer")
    moves = settle(
        [job(stale=True), waiting_for_4711(stale=True)],
        {"4711": unsettled, "4712": seen(State.RUNNING)},
    )
    assert moves["4712", "100"].transition.after is State.RUNNING
