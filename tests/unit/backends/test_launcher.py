"""The launcher as a source: output files on this host, its map, and the jobs they lead to."""

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.backends.launcher import LauncherBackend
from jobmond.backends.launcher.jobs_map import mapped
from jobmond.backends.launcher.verdict import began_at
from jobmond.model.observation import Ask, Facts, Gone, Link, Part, Seen, Sighting, Unreachable
from jobmond.model.state import State
from tests.doubles import ShellTransport
from tests.nel_scene import settled
from tests.training import lines_of
from tests.unit.builders import seen

EXPERIMENT = "cicd_1795968996253503257"
JOB = "4712008"


@dataclass
class Scene:
    """A home of the launcher and a backend that keeps reading its files."""

    folder: Path
    hosts: frozenset[str] = frozenset({"vm", "127.0.0.1"})
    backend: LauncherBackend = field(init=False)

    def __post_init__(self) -> None:
        self.backend = LauncherBackend(
            ShellTransport(HOME=str(self.folder)),
            hosts=self.hosts,
            maps=(str(self.folder / ".slurm_jobs"),),
        )

    @property
    def output(self) -> Path:
        return self.folder / "ptq.log"

    def write(self, name: str, stop: int | None = None) -> None:
        self.output.write_bytes(lines_of(f"launcher/{name}")[:stop])

    def map(self, slurm_id: str, experiment: str = EXPERIMENT, host: str = "vm") -> None:
        """A line as NeMo-Run writes it."""
        local = self.folder / "experiments" / "cicd" / experiment / "ptq_0"
        tunnel = json.dumps({"host": host, "user": "alice", "job_dir": "/scratch/exp"})
        logs = f"/scratch/exp/cicd/{experiment}/ptq_0/log-acct.ptq_0_{slurm_id}_*.out"
        with (self.folder / ".slurm_jobs").open("a") as file:
            file.write(f"{slurm_id} = {logs},{local},SSHTunnel,{tunnel}\n")

    async def poll(self, native_id: str = "file:ptq.log", **ask) -> Sighting:
        now = datetime.now(UTC)
        path = ask.pop("path", str(self.output))
        asked = Ask(native_id, None, now - timedelta(hours=2), facts=Facts(log_path=path), **ask)
        poll = await self.backend.poll([asked], since=now, now=now, timeout_s=20)
        assert poll.trouble is None
        return poll.sightings[native_id]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("native_id", [EXPERIMENT, "cicd_1759395000", "file:ptq.log", "file:a b"])
def test_good_ids(scene, native_id):
    assert scene.backend.valid_id(native_id) is None


@pytest.mark.parametrize("native_id", ["4711", "cicd", "cicd_12", "file:", "file:a/b", "-x_12", ""])
def test_bad_ids(scene, native_id):
    complaint = scene.backend.valid_id(native_id)
    assert complaint is not None
    assert "\n" not in complaint


async def test_a_file_leads_to_its_job_and_gets_its_real_name(scene):
    scene.write("ptq_ok.log")
    own = await scene.poll()
    assert isinstance(own, Seen)
    assert own.native_id == own.birth == EXPERIMENT
    [part] = own.parts
    assert part.links == (Link(JOB),)
    assert part.folder == (
        "/scratch/alice/nel/cluster/experiments/cicd/cicd_1795968996253503257"
        "/Qwen3-8B_NVFP4_DEFAULT_CFG_0"
    )
    assert own.facts.name == "Qwen3-8B_NVFP4_DEFAULT_CFG_0"
    assert own.facts.submitted_at == datetime(2026, 11, 29, 16, 16, 36, tzinfo=UTC)


async def test_slurm_is_the_truth(scene):
    scene.write("ptq_ok.log")
    own = await scene.poll()
    running = settled(own, {JOB: seen(State.RUNNING)})
    assert isinstance(running, Seen)
    assert running.state is State.RUNNING  # though the file says SUCCEEDED
    failed = settled(own, {JOB: seen(State.FAILED, exit_code=1)})
    assert isinstance(failed, Seen)
    assert (failed.state, failed.facts.exit_code) == (State.FAILED, 1)
    quick = settled(own, {})
    assert isinstance(quick, Seen)
    assert quick.state is State.COMPLETED  # the launcher has this from accounting


async def test_a_launcher_that_says_failed_is_not_believed_alone(scene):
    scene.write("ptq_oom.log")
    own = await scene.poll()
    assert isinstance(settled(own, {}), Unreachable)


async def test_it_is_read_as_it_grows(scene):
    raw = lines_of("launcher/ptq_ok.log")
    progress = []
    for stop in (3000, 6300, 7147, 8258, 12000, 20000, len(raw)):
        scene.write("ptq_ok.log", stop)
        own = await scene.poll()
        assert isinstance(own, Seen)
        progress.append((own.state, own.facts.progress))
    image = "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc20"
    export = "/scratch/alice/nel/cluster/export/Qwen3-8B-NVFP4"
    assert progress == [
        (State.PENDING, None),
        (State.PENDING, None),
        (State.RUNNING, f"importing container {image}"),
        (State.RUNNING, "job is up"),
        (State.RUNNING, "calibration complete, exporting checkpoint"),
        (State.RUNNING, "calibration complete, exporting checkpoint"),
        (State.COMPLETED, f"exported to {export}"),
    ]


async def test_only_what_is_new_is_read(scene):
    scene.write("ptq_ok.log", 9000)
    await scene.poll()
    scene.write("ptq_ok.log", 9100)
    shell = scene.backend._here
    await scene.poll()
    inode = scene.output.stat().st_ino
    assert f" {inode} 9000\n" in shell.scripts[-1].decode()


async def test_another_file_under_the_name_is_read_from_its_beginning(scene):
    scene.write("ptq_ok.log")
    await scene.poll()
    other = scene.folder / "other"
    other.write_bytes(lines_of("launcher/ptq_oom.log"))
    other.replace(scene.output)
    own = await scene.poll("file:ptq.log")
    assert isinstance(own, Seen)
    assert own.native_id == "cicd_1795968636204503737"


async def test_a_file_that_is_used_again_says_nothing_about_the_first_experiment(scene):
    scene.write("ptq_oom.log")
    known = (Part("ptq_0", links=(Link(JOB),)),)
    own = await scene.poll(EXPERIMENT, parts=known)
    assert isinstance(own, Unreachable)
    before = seen(State.RUNNING)
    from jobmond.analysis.links import joined

    whole = joined(own, known, {JOB: seen(State.COMPLETED)}, before=before, now=datetime.now(UTC))
    assert isinstance(whole, Seen)
    assert whole.state is State.COMPLETED


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ssh_refused.log", "[Errno None] Unable to connect to port 22923 on 127.0.0.1"),
        ("submit_failed.stdout", "Qwen3-8B_NVFP4_DEFAULT_CFG_0 could not be submitted"),
        ("rsync_failed.stderr", "Encountered a bad command exit code!"),
    ],
)
async def test_a_submission_that_failed_has_failed(scene, name, reason):
    scene.write(name)
    own = settled(await scene.poll(), {})
    assert isinstance(own, Seen)
    assert (own.state, own.native, own.facts.reason) == (
        State.FAILED,
        "submission failed",
        reason,
    )


async def test_one_that_only_stopped_talking_is_unknown_after_an_hour(scene):
    scene.write("rsync_failed.stdout")
    own = await scene.poll()
    assert isinstance(own, Seen)
    assert (own.state, own.native) == (State.PENDING, "submitting")
    old = (datetime.now(UTC) - timedelta(hours=2)).timestamp()
    os.utime(scene.output, (old, old))
    assert isinstance(await scene.poll(), Gone)


async def test_a_launcher_that_died_after_submitting_says_nothing_about_its_job(scene):
    scene.write("partial_4_import.log")
    old = (datetime.now(UTC) - timedelta(hours=9)).timestamp()
    os.utime(scene.output, (old, old))
    own = settled(await scene.poll(), {JOB: seen(State.RUNNING)})
    assert isinstance(own, Seen)
    assert own.state is State.RUNNING


async def test_a_dry_run_is_over(scene):
    scene.write("dryrun.log")
    own = await scene.poll()
    assert isinstance(own, Seen)
    assert (own.state, own.native) == (State.COMPLETED, "dry run")


async def test_a_file_that_is_not_there_or_is_none(scene, tmp_path):
    own = await scene.poll()
    assert own == Unreachable(f"its output file {scene.output}: it is not there")
    own = await scene.poll(path=str(tmp_path))
    assert own == Unreachable(f"its output file {tmp_path}: it is no file")
    os.mkfifo(tmp_path / "fifo")
    own = await scene.poll(path=str(tmp_path / "fifo"))
    assert isinstance(own, Unreachable)


async def test_a_file_that_vanishes_leaves_what_is_known(scene):
    scene.write("ptq_ok.log")
    await scene.poll()
    scene.output.unlink()
    own = settled(await scene.poll(), {JOB: seen(State.RUNNING)})
    assert isinstance(own, Seen)
    assert own.state is State.RUNNING


async def test_jobs_of_another_cluster_are_not_looked_for_here(tmp_path):
    scene = Scene(tmp_path, hosts=frozenset({"juwels"}))
    scene.write("ptq_ok.log")
    own = await scene.poll()
    assert isinstance(own, Unreachable)
    assert "run on vm" in own.error


async def test_what_is_not_submitted_yet_is_a_part_that_waits(scene):
    raw = lines_of("launcher/detach.log")
    second = b"job long_sleep task 1 slurm_config: SlurmConfig(host='vm')\n"
    at = raw.index(b"[16:15:13]")
    scene.output.write_bytes(raw[:at] + second + raw[at:])
    own = await scene.poll()
    assert isinstance(own, Seen)
    assert [(p.name, p.native, p.state) for p in own.parts] == [
        ("long_sleep_0", "PENDING", None),
        ("task 1", "not submitted", State.PENDING),
    ]


class TestMap:
    async def test_an_experiment_is_followed_without_its_output(self, scene):
        scene.map(JOB)
        own = await scene.poll(EXPERIMENT, path=None)
        assert isinstance(own, Seen)
        assert own.parts == (
            Part("ptq_0", links=(Link(JOB),), folder=f"/scratch/exp/cicd/{EXPERIMENT}/ptq_0"),
        )

    async def test_an_unknown_experiment(self, scene):
        own = await scene.poll(EXPERIMENT, path=None)
        assert isinstance(own, Unreachable)
        assert EXPERIMENT in own.error

    async def test_recent_experiments_of_this_cluster_are_found(self, scene):
        now = datetime.now(UTC)
        fresh = f"cicd_{int(now.timestamp()) - 60}000000000"
        scene.map("4713001", fresh)
        scene.map("4713002", f"cicd_{int(now.timestamp()) - 90000}")
        scene.map("4713003", f"cicd_{int(now.timestamp()) - 50}", host="juwels")
        poll = await scene.backend.poll([], since=now, now=now, timeout_s=20)
        assert [(i, s.parts[0].links[0].native_id) for i, s in poll.found] == [(fresh, "4713001")]

    async def test_it_knows_whose_cluster_an_experiment_runs_on(self, scene, tmp_path):
        scene.map(JOB)
        now = datetime.now(UTC)
        assert await scene.backend.knows(Ask(EXPERIMENT, None, now))
        scene.write("ptq_oom.log")
        by_file = Ask("file:ptq.log", None, now, facts=Facts(log_path=str(scene.output)))
        assert await scene.backend.knows(by_file)
        elsewhere = Scene(tmp_path, hosts=frozenset({"juwels"}))
        assert not await elsewhere.backend.knows(by_file)
        assert not await elsewhere.backend.knows(Ask(EXPERIMENT, None, now))

    @given(st.binary(max_size=300))
    def test_any_bytes(self, text):
        assert isinstance(mapped(text), dict)

    def test_lines_that_are_none_are_passed_over(self):
        text = b"x\n12 = relative,/a/b,SSHTunnel,{}\n; = /a,/b\n7 = /l/o,/h/cicd_1759395000/t,X,{"
        assert mapped(text) == {}


def test_an_experiment_says_when_it_began():
    assert began_at("cicd_1759395000") == began_at("cicd_1759395000123456789")
