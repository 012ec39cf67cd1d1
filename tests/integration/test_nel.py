"""The real nemo-evaluator-launcher, asked as a sweep asks it: every state of its local executor."""

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobmond import registry
from jobmond.analysis.links import joined
from jobmond.clock import SystemClock
from jobmond.model.observation import Ask, Gone, Seen, Sighting, Unreachable
from jobmond.model.state import State
from tests.nel_package import nel_program
from tests.nel_scene import TRANSCRIPTS, NelScene, slurm_row

# The first of them installs the package.
pytestmark = pytest.mark.timeout(1200)

CONTAINER = {
    "container": "client-x",
    "eval_image": "nvcr.io/nvidia/eval-factory/simple-evals:26.03",
}


@pytest.fixture(scope="module")
def nel(tmp_path_factory: pytest.TempPathFactory) -> NelScene:
    """A home with an invocation in each state."""
    scene = NelScene(tmp_path_factory.mktemp("nel"))
    scene.home.mkdir()
    return scene


def local(nel: NelScene, native_id: str, **files: str) -> Path:
    """An invocation with one job of the local executor; `files` stand in its folder."""
    folder = nel.folder / "runs" / native_id / "simple_evals.mmlu_pro.0"
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    nel.record(f"{native_id}.0", {"output_dir": str(folder), **CONTAINER}, executor="local")
    return folder


async def known(nel: NelScene, native_id: str, *, age: timedelta = timedelta(hours=1)) -> Sighting:
    """What a sweep makes of it, on the cluster that is this host."""
    here = registry.transports["local"]()
    backend = registry.backends["nel"](
        here,
        here,
        SystemClock(),
        hosts=frozenset({"local"}),
        this_host=True,
        command=[str(nel_program())],
        home=str(nel.home),
    )
    now = datetime.now(UTC)
    ask = Ask(native_id, None, added_at=now - age)
    poll = await backend.poll([ask], since=now - age, now=now, timeout_s=120)
    assert poll.trouble is None
    return joined(poll.sightings[native_id], (), {}, now=now)


STAGES = {
    "aaaa0000bbbb0001": (State.PENDING, {}),
    "aaaa0000bbbb0002": (State.PENDING, {"logs__stage_dot_pre-start": "2026-11-29T15:00:00"}),
    "aaaa0000bbbb0003": (State.RUNNING, {"logs__stage_dot_running": "2026-11-29T15:00:00"}),
    "aaaa0000bbbb0004": (State.COMPLETED, {"logs__stage_dot_exit": "2026-11-29T15:00:00 0"}),
    "aaaa0000bbbb0005": (State.FAILED, {"logs__stage_dot_exit": "2026-11-29T15:00:00 1"}),
    "aaaa0000bbbb0006": (State.FAILED, {"logs__stage_dot_exit": "nonsense"}),
    "aaaa0000bbbb0007": (State.FAILED, {"logs__stage_dot_exit": ""}),
    "aaaa0000bbbb0008": (State.FAILED, {"logs__stage_dot_exit": "2026-11-29T15:00:00 137"}),
    "aaaa0000bbbb0009": (
        State.CANCELLED,
        {
            "logs__stage_dot_exit": "2026-11-29T15:00:00 143",
            "artifacts___dot_nemo_evaluator_interrupted": "",
        },
    ),
}


@pytest.mark.parametrize("native_id", STAGES)
async def test_every_state_of_the_local_executor(nel, native_id):
    state, files = STAGES[native_id]
    folder = local(nel, native_id, **files)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    seen = await known(nel, native_id)
    assert isinstance(seen, Seen), seen
    assert seen.state is state
    assert seen.birth == native_id
    assert seen.facts.name == "simple_evals.mmlu_pro"


async def test_scores_come_with_the_end(nel):
    native_id = "bbbb0000cccc0001"
    folder = local(nel, native_id, logs__stage_dot_exit="2026-11-29T15:00:00 0")
    shutil.copytree(TRANSCRIPTS / "results" / "mmlu_pro", folder / "artifacts")
    seen = await known(nel, native_id)
    assert isinstance(seen, Seen)
    assert seen.facts.scores == {"MMLU-Pro": 42.26}


async def test_an_end_without_results_has_no_scores(nel):
    local(nel, "bbbb0000cccc0002", logs__stage_dot_exit="2026-11-29T15:00:00 0")
    seen = await known(nel, "bbbb0000cccc0002")
    assert isinstance(seen, Seen)
    assert (seen.state, seen.facts.scores) == (State.COMPLETED, None)


async def test_a_job_whose_folder_is_gone_is_not_pending_for_ever(nel):
    folder = local(nel, "bbbb0000cccc0003", x="")
    shutil.rmtree(folder)
    assert isinstance(await known(nel, "bbbb0000cccc0003"), Unreachable)


async def test_a_job_that_a_reboot_ended_is_not_running_for_ever(nel):
    folder = local(nel, "bbbb0000cccc0004", logs__stage_dot_running="2020-01-01T00:00:00")
    os.utime(folder / "logs" / "stage.running", (1_500_000_000, 1_500_000_000))
    seen = await known(nel, "bbbb0000cccc0004")
    assert isinstance(seen, Gone)


async def test_several_jobs_are_one_row(nel):
    native_id = "bbbb0000cccc0005"
    for n, end in enumerate(("0", "0", "1")):
        folder = nel.folder / "runs" / native_id / f"task.{n}"
        (folder / "logs").mkdir(parents=True)
        (folder / "logs" / "stage.exit").write_text(f"2026-11-29T15:00:00 {end}")
        nel.record(f"{native_id}.{n}", {"output_dir": str(folder), **CONTAINER}, executor="local")
    seen = await known(nel, native_id)
    assert isinstance(seen, Seen)
    assert seen.state is State.FAILED
    assert seen.facts.tasks is not None
    assert seen.facts.tasks.failed == (f"{native_id}.2",)
    assert (await known(nel, f"{native_id}.0")).state is State.COMPLETED


async def test_the_beginning_of_an_id_stands_for_it(nel):
    local(nel, "cccc1234dddd0001", logs__stage_dot_exit="2026-11-29T15:00:00 0")
    seen = await known(nel, "cccc1234")
    assert isinstance(seen, Seen)
    assert (seen.native_id, seen.birth) == ("cccc1234dddd0001", "cccc1234dddd0001")
    local(nel, "cccc1234dddd0002")
    ambiguous = await known(nel, "cccc1234")
    assert isinstance(ambiguous, Unreachable)
    assert "write the whole id" in ambiguous.error


async def test_an_unknown_id_is_gone_after_a_while(nel):
    local(nel, "dddd0000eeee0001")
    assert await known(nel, "deadbeefdeadbeef") == Gone("not_found")
    young = await known(nel, "deadbeefdeadbeef", age=timedelta(minutes=1))
    assert isinstance(young, Unreachable)


async def test_an_executor_that_nel_does_not_have_moves_nothing(nel):
    nel.record("eeee0000ffff0001.0", {}, executor="gitlab")
    seen = await known(nel, "eeee0000ffff0001")
    assert isinstance(seen, Unreachable)


async def test_over_slurm_a_host_that_refuses_is_no_failure(nel, tmp_path, monkeypatch):
    """The real thing: nel prints `failed`, exit code 0."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    nel.record(
        "ffff0000aaaa0001.0", slurm_row("4711", tmp_path, hostname="127.0.0.1", username="nobody")
    )
    seen = await known(nel, "ffff0000aaaa0001")
    assert isinstance(seen, Unreachable)
    assert "SLURM has not answered for 4711" in seen.error
    assert list(tmp_path.iterdir()) == []


def test_the_database_of_the_tests_is_in_the_launchers_own_shape(nel):
    local(nel, "aaaa9999bbbb9999")
    path = nel.home / ".nemo-evaluator" / "exec-db" / "exec.v1.jsonl"
    last = json.loads(path.read_text().splitlines()[-1])
    assert set(last) == {"invocation_id", "job_id", "timestamp", "executor", "data", "config"}
