"""What is asked about by a name or an id that nobody registered."""

import pytest

from jobmond.desk.refusals import UnknownJob
from jobmond.desk.requests import AddRequest, LogRequest, Wish
from jobmond.desk.shelf import Found
from jobmond.desk.unregistered import called, pointer
from jobmond.errors import ConfigError, Refused
from jobmond.model.job import Choices
from jobmond.model.state import Bucket, Kind
from tests.doubles_desk import ME, Scene, seen
from tests.doubles_store import NOW, job


def found(native="4711", name="grid", kind=Kind.SLURM, cluster="leonardo"):
    return Found(cluster, kind, native, seen(name=name, user="alice"), NOW)


def test_nel_runs_come_before_the_queue_and_that_before_experiments():
    queue, run = found("4711"), found("65f6", kind=Kind.NEL)
    experiment, pod = found("cicd_1", kind=Kind.LAUNCHER), found("ns/grid", kind=Kind.KUBERNETES)
    assert called("grid", [pod, experiment, queue, run]) == [run]
    assert called("grid", [pod, experiment, queue]) == [queue]
    assert called("grid", [pod, experiment]) == [experiment]
    assert called("grid", [pod]) == [pod]
    assert called("4711", [pod, run, queue]) == [queue]
    assert called("leonardo/4711", [queue]) == [queue]
    assert called("other", [queue]) == []
    assert called("other", []) == []


def test_a_pointer_says_where_it_is_and_how_to_track_it():
    assert pointer("grid", [found()]) == (
        "'grid' is not tracked: it is leonardo/4711 (slurm), RUNNING at the last sweep; "
        "`jobmonctl add leonardo/4711` tracks it"
    )
    assert pointer("grid", [found(), found("12")]) == (
        "no tracked job is called 'grid'; found by the last sweep: leonardo/12, leonardo/4711; "
        "`jobmonctl add REF` tracks one"
    )
    assert pointer("x\x1b", [found()]) is None


async def test_a_question_about_it_is_told_where_it_is():
    scene = Scene(found=[found()])
    for question in (scene.desk().show("grid", ME), scene.desk().log(LogRequest("4711"), ME)):
        with pytest.raises(UnknownJob, match="is not tracked: it is leonardo/4711"):
            await question
    with pytest.raises(UnknownJob, match=r"^unknown job 'gird'"):
        await scene.desk().show("gird", ME)


async def test_the_registry_comes_first():
    scene = Scene(found=[found("4712", name="grid")])
    scene.store.rows = [job("leonardo/4711", choices=Choices(name="grid"))]
    assert (await scene.desk().show("grid", ME))["ref"] == "leonardo/4711"


async def test_a_job_is_added_by_its_name():
    scene = Scene(found=[found(), found("12", name="other")])
    [row] = await scene.desk().add(AddRequest(("grid",), wish=Wish(bucket=Bucket.RL)), ME)
    assert (row["ref"], row["word"], row["created"]) == ("leonardo/4711", "grid", True)
    assert row["guessed"] == "'grid' taken as leonardo/4711: the slurm job of that name"
    [kept] = scene.store.rows
    assert (kept.birth, kept.bucket) == ("1764434999", Bucket.RL)
    assert scene.sweeps == [("leonardo", False)]


async def test_a_name_of_two_is_no_guess_and_of_none_is_no_id():
    scene = Scene(found=[found(), found("12")])
    with pytest.raises(Refused, match="'grid' can mean leonardo/12, leonardo/4711: say which"):
        await scene.desk().add(AddRequest(("grid",)), ME)
    with pytest.raises(ConfigError, match="a SLURM id looks like 4711"):
        await scene.desk().add(AddRequest(("grids",)), ME)
    with pytest.raises(ConfigError):
        await scene.desk().add(AddRequest(("grid",), kind=Kind.LOCAL), ME)
    assert scene.store.rows == []
