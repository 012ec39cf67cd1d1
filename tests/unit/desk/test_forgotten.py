"""Jobs of a cluster that was taken out of the configuration."""

from jobmond.desk.forgotten import as_left, forgotten
from jobmond.model.state import State
from tests.doubles_desk import LEONARDO, ME, Scene
from tests.doubles_store import NOW, health, job

RUNS = job("jureca/1", id=1, state=State.RUNNING)
OVER = job("marenostrum/2", id=2, state=State.COMPLETED, tracked=False)
ASKED = job("leonardo/3", id=3, state=State.RUNNING)


def test_only_what_nobody_asks_about_any_more_is_stale():
    left = as_left([RUNS, OVER, ASKED], {"leonardo"})
    assert [j.stale for j in left] == [True, False, False]
    assert [j.state for j in left] == [State.RUNNING, State.COMPLETED, State.RUNNING]


def test_a_forgotten_cluster_is_inactive_and_says_why():
    [one] = forgotten([RUNS, OVER, ASKED], [health("jureca"), health("other")], {"leonardo"}, NOW)
    assert (one.name, one.active, one.status) == ("jureca", False, "inactive")
    assert one.error == "not in the configuration"
    assert one.last_ok_at == health("jureca").last_ok_at


def test_a_forgotten_cluster_that_never_answered():
    [one] = forgotten([RUNS], [], {"leonardo"}, NOW)
    assert (one.name, one.kind, one.since, one.last_ok_at) == ("jureca", "slurm", NOW, None)


async def test_status_shows_a_forgotten_cluster_while_it_has_tracked_jobs():
    scene = Scene(clusters=[LEONARDO])
    scene.store.healths = [health("leonardo"), health("jureca"), health("unused")]
    scene.store.rows = [RUNS, ASKED]
    document = await scene.desk().status(ME)
    assert [(c["name"], c["status"]) for c in document["clusters"]] == [
        ("jureca", "inactive"),
        ("leonardo", "ok"),
    ]
    assert {j["ref"]: j["stale"] for j in document["jobs"]} == {
        "jureca/1": True,
        "leonardo/3": False,
    }
