"""Ends that were told too early, too late or about another job."""

import pytest

from jobmond.model.observation import Gone, Unavailable
from jobmond.model.state import PostMortem, State
from tests.integration.test_sweep import TRACE, Scene, text
from tests.unit.builders import NOW, seen

NOWHERE = Gone("neither queue nor accounting knows it")


@pytest.fixture
def scene(tmp_path):
    made = Scene(tmp_path)
    yield made
    made.store.close()


async def test_a_job_that_only_seemed_lost_has_nothing_to_explain(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    await scene.sweep(_1=NOWHERE)
    await scene.sweep(_1=seen(State.COMPLETED))
    scene.far.logs = {"1": text(TRACE)}
    await scene.sweep()
    over = scene.job("lab/1")
    assert (over.state, over.post_mortem) == (State.COMPLETED, PostMortem.NONE)
    assert (over.diagnosis, over.agent_log) == (None, None)
    assert [n.payload["title"] for n in scene.store.events(limit=10)][1:] == [
        "correction: lab/1 (train): LOST → COMPLETED"
    ]


@pytest.mark.parametrize("sweeps_later", [0, 5])
async def test_a_lost_job_that_is_added_again_and_has_failed_is_told(scene, sweeps_later):
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    await scene.sweep(_1=NOWHERE)
    for _ in range(sweeps_later):  # until its log is given up
        await scene.sweep(_1=NOWHERE)
    scene.add("1")
    scene.far.logs = {"1": text(TRACE)}
    for _ in range(2):
        await scene.sweep(_1=seen(State.FAILED, exit_code=1, ended_at=NOW))
    assert scene.told() == [
        ("transition", "lab/1", "RUNNING", "LOST"),
        ("transition", "lab/1", "LOST", "FAILED"),
    ]
    over = scene.job("lab/1")
    assert (over.state, over.tracked, over.diagnosis.summary) == (
        State.FAILED,
        False,
        "ValueError: no",
    )


async def test_a_lost_job_that_is_added_again_and_lives_is_tracked_as_itself(scene):
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    await scene.sweep(_1=NOWHERE)
    scene.add("1")
    await scene.sweep(_1=seen(State.RUNNING))
    await scene.sweep(_1=seen(State.FAILED, exit_code=1, ended_at=NOW))
    assert scene.told() == [
        ("transition", "lab/1", "RUNNING", "LOST"),
        ("transition", "lab/1", "LOST", "RUNNING"),
        ("transition", "lab/1", "RUNNING", "FAILED"),
    ]
    assert len(scene.store.jobs(recent_since=NOW)) == 1


async def test_a_failure_is_not_explained_by_the_log_of_an_earlier_life(scene):
    scene.add("1")
    scene.far.logs = {"1": Unavailable("permission denied")}
    await scene.sweep(_1=seen(State.FAILED, exit_code=1, log_path="/first"))
    scene.add("1")
    scene.far.logs = {"1": text(TRACE)}
    await scene.sweep(_1=seen(State.FAILED, birth="900", exit_code=2, log_path="/second"))
    assert scene.job("lab/1@100").diagnosis.summary == "ValueError: no"
    later = scene.job("lab/1")
    assert (later.log.status, later.post_mortem) == ("none", PostMortem.PENDING)
    await scene.sweep()
    assert scene.job("lab/1").post_mortem is PostMortem.DONE


async def test_a_job_that_waited_for_two_stays_with_the_run_it_continued_first(scene):
    waits = {"birth": "102", "dependency": "afterany:1:3"}
    for native_id in "132":
        scene.add(native_id, run=f"run{native_id}")
    waiting = seen(State.PENDING, **waits)
    await scene.sweep(_1=seen(State.RUNNING), _3=seen(State.RUNNING), _2=waiting)
    over = seen(State.TIMEOUT, ended_at=NOW)
    await scene.sweep(_1=over, _3=seen(State.RUNNING), _2=waiting)
    await scene.sweep(_3=over, _2=seen(State.RUNNING, **waits))
    assert scene.told()[0] == ("restart", "lab/1", "RUNNING", "PENDING")
    assert ("transition", "lab/3", "RUNNING", "TIMEOUT") in scene.told()
    third = scene.job("lab/2")
    assert (third.run, third.life, third.predecessor) == ("run1", 2, scene.job("lab/1").id)
