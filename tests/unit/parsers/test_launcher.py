"""Output files of the experiment launcher in every state that its real runs were seen in."""

import re
from itertools import pairwise

import pytest

from jobmond.analysis.choosing import diagnose_file
from jobmond.analysis.launcher import Launched, events, launched
from jobmond.analysis.launcher_lines import take
from jobmond.analysis.segments import Cutter
from jobmond.model.state import State
from tests.training import lines_of, read

JOB = "4712008"
NAME = "Qwen3-8B_NVFP4_DEFAULT_CFG_0"
EXPERIMENT = {"event": "experiment", "id": "cicd_1795968996253503257"}
SUBMITTED = {"event": "slurm-job", "task": 0, "name": NAME, "id": JOB}
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc20"
IMPORTED = {"event": "container", "state": "imported", "image": IMAGE}
CALIBRATED = {"event": "calibration", "done": 32, "total": 32}
EXPORTED = {"event": "export", "path": "/scratch/alice/nel/cluster/export/Qwen3-8B-NVFP4"}


def _ids(experiment: str, job: str, name: str = NAME) -> list[dict]:
    return [
        {"event": "experiment", "id": experiment},
        {"event": "slurm-job", "task": 0, "name": name, "id": job},
    ]


def _done(job: str, state: str = "COMPLETED") -> dict:
    return {"event": "finished", "task": 0, "id": job, "state": state}


# state, phase, cause, events
WANTED = {
    "ptq_ok.log": (
        State.COMPLETED,
        "done",
        None,
        [EXPERIMENT, SUBMITTED, IMPORTED, CALIBRATED, EXPORTED, _done(JOB)],
    ),
    "ptq_oom.log": (
        State.FAILED,
        "failed",
        "cuda-oom",
        [
            *_ids("cicd_1795968636204503737", "4712005", "Qwen3-8B_NVFP4_oom_0"),
            IMPORTED,
            {"event": "calibration", "done": 9, "total": 32},
            _done("4712005", "FAILED"),
        ],
    ),
    "detach.log": (
        State.PENDING,
        "queued",
        None,
        _ids("cicd_1795968911716410825", "4712007", "long_sleep_0"),
    ),
    "run_ok.stdout": (
        State.COMPLETED,
        "done",
        None,
        [*_ids("cicd_1795967937291252719", "4712001"), _done("4712001")],
    ),
    "run_ok.stderr": (None, "bring-up", None, []),
    "dryrun.log": (State.COMPLETED, "done", None, []),
    "badyaml.log": (
        State.FAILED,
        "failed",
        "config-error",
        [
            {
                "event": "error",
                "text": "Error loading config file nosuch.yaml: [Errno 2] No such file or"
                " directory: 'nosuch.yaml'",
            }
        ],
    ),
    "ssh_refused.log": (
        State.FAILED,
        "failed",
        "network",
        [
            {"event": "experiment", "id": "cicd_1795968938877960810"},
            {
                "event": "error",
                "text": "[Errno None] Unable to connect to port 22923 on 127.0.0.1",
            },
        ],
    ),
    "rsync_failed.stdout": (
        State.PENDING,
        "bring-up",
        None,
        [{"event": "experiment", "id": "cicd_1795967917653618701"}],
    ),
    "rsync_failed.stderr": (
        State.FAILED,
        "failed",
        "auth",
        [{"event": "error", "text": "Encountered a bad command exit code!"}],
    ),
    "submit_failed.stdout": (
        State.FAILED,
        "failed",
        "network",
        [
            {"event": "experiment", "id": "cicd_1795967886962140190"},
            {"event": "error", "text": f"{NAME} could not be submitted"},
        ],
    ),
    "submit_failed.stderr": (
        State.FAILED,
        "failed",
        "network",
        [{"event": "error", "text": "Encountered a bad command exit code!"}],
    ),
    "partial_1_versions.log": (None, "bring-up", None, []),
    "partial_2_wrapped_app_id_cut.log": (State.PENDING, "bring-up", None, [EXPERIMENT]),
    "partial_3_job_id.log": (State.PENDING, "queued", None, [EXPERIMENT, SUBMITTED]),
    "partial_4_import.log": (
        State.RUNNING,
        "bring-up",
        None,
        [EXPERIMENT, SUBMITTED, {**IMPORTED, "state": "importing"}],
    ),
    "partial_5_calib_start.log": (
        State.RUNNING,
        "bring-up",
        None,
        [EXPERIMENT, SUBMITTED, IMPORTED],
    ),
    "partial_7_export_cut.log": (
        State.RUNNING,
        "training",
        None,
        [EXPERIMENT, SUBMITTED, IMPORTED, CALIBRATED],
    ),
}


def told(raw: bytes, *cuts: int) -> Launched:
    """What a file says that was read in pieces, its open end included."""
    memory: dict = {}
    cutter = Cutter()
    edges = [0, *sorted(cuts), len(raw)]
    for start, stop in pairwise(edges):
        for segment in cutter.feed(raw[start:stop]):
            take(segment, memory)
    take(cutter.open(), memory)
    return launched(memory)


def raw_of(name: str) -> bytes:
    return lines_of(f"launcher/{name}")


@pytest.mark.parametrize("name", WANTED)
def test_every_run_is_understood(name):
    state, phase, cause, happened = WANTED[name]
    said = told(raw_of(name))
    assert (said.state, said.phase) == (state, phase)
    assert events(said) == happened
    found = diagnose_file([raw_of(name)])
    assert (found and found.cause) == cause


@pytest.mark.parametrize("name", WANTED)
def test_the_dialect_is_recognised(name):
    assert read(raw_of(name)).parser.name == "launcher"


# The first byte by which a state can be known: after the text that says so.
TURNS = {
    "ptq_ok.log": [
        (r"with id: cicd_\d+ \S+\n", State.PENDING),
        (r"AULT_CFG_0/0 pyxis: ", State.RUNNING),
        (r"finished: SUCCEEDED", State.COMPLETED),
    ],
    "ptq_oom.log": [
        (r"with id: cicd_\d+ \S+\n", State.PENDING),
        (r"VFP4_oom_0/0 pyxis: ", State.RUNNING),
        (r"finished: FAILED", State.FAILED),
    ],
    "detach.log": [(r"with id: cicd_\d+ \S+\n", State.PENDING)],
    "run_ok.stdout": [
        (r"with id: cicd_\d+ \S+\n", State.PENDING),
        (r"finished: SUCCEEDED", State.COMPLETED),
    ],
    "ssh_refused.log": [
        (r"with id: cicd_\d+ \S+\n", State.PENDING),
        (r"Unexpected error: \[", State.FAILED),
    ],
    "submit_failed.stdout": [
        (r"with id: cicd_\d+ \S+\n", State.PENDING),
        (r"Error running job .*\n", State.FAILED),
    ],
    "badyaml.log": [(r"Unexpected error: E", State.FAILED)],
    "dryrun.log": [(r"Dry run for launch:\n", State.COMPLETED)],
}


@pytest.mark.parametrize("name", TURNS)
def test_at_every_cut_the_state_is_the_last_that_was_proved(name):
    raw = raw_of(name)
    turns = []
    for pattern, state in TURNS[name]:
        found = re.search(pattern.encode(), raw)
        assert found is not None, pattern
        turns.append((found.end(), state))
    for cut in range(0, len(raw) + 1, 7):
        wanted = [state for at, state in turns if cut >= at]
        assert told(raw[:cut]).state is (wanted[-1] if wanted else None), cut


@pytest.mark.parametrize("name", WANTED)
def test_read_in_two_pieces_it_says_the_same(name):
    raw = raw_of(name)
    whole = told(raw)
    for cut in range(0, len(raw), 97):
        assert told(raw, cut) == whole, cut


@pytest.mark.parametrize("name", ["ptq_ok.log", "ptq_oom.log", "run_ok.stdout"])
def test_a_job_id_is_never_cut_short(name):
    raw = raw_of(name)
    (job,) = [task.job for task in told(raw).jobs]
    for cut in range(0, len(raw), 3):
        assert {task.job for task in told(raw[:cut]).jobs} <= {job}


TWO_TASKS = b"""\
\xe2\x94\x80 Entering Experiment cicd with id: cicd_1795968131544186335 \xe2\x94\x80
job two task 0 slurm_config: SlurmConfig(host='vm')
job two task 1 slurm_config: SlurmConfig(host='vm')
Experiment Status for cicd_1795968131544186335

Task 0: two_0
- Status: PENDING
- Executor: SlurmExecutor on root@vm
- Job id: 4712002
- Local Directory: /home/alice/experiments/cicd/cicd_1795968131544186335/two_0
- Remote Directory: /scratch/cicd/cicd_1795968131544186335/two_0

Task 1: two_1
- Status: PENDING
- Executor: SlurmExecutor on root@vm
- Job id: 4712003
- Local Directory: /home/alice/experiments/cicd/cicd_1795968131544186335/two_1
- Remote Directory: /scratch/cicd/cicd_1795968131544186335/two_1

"""
ENDED = b"[16:04:00] INFO     Job 4712002 finished: %s                 launcher.py:186\n"


def test_a_task_that_waits_for_one_that_failed_ends_with_it():
    said = told(TWO_TASKS + ENDED % b"FAILED")
    assert said.state is State.FAILED
    assert [task.job for task in said.jobs] == ["4712002", "4712003"]
    assert [task.folder for task in said.jobs] == [
        "/scratch/cicd/cicd_1795968131544186335/two_0",
        "/scratch/cicd/cicd_1795968131544186335/two_1",
    ]


def test_a_task_that_may_fail_holds_up_none():
    table = "│ pipeline         │   allow_to_fail=True,                         │\n".encode()
    assert told(table + TWO_TASKS + ENDED % b"FAILED").state is State.PENDING


def test_one_of_two_is_not_all():
    assert told(TWO_TASKS + ENDED % b"SUCCEEDED").state is State.PENDING


def test_an_error_after_all_is_submitted_says_nothing_about_the_jobs():
    assert told(TWO_TASKS + b"Unexpected error: Broken pipe\n").state is State.PENDING


def test_what_a_job_prints_is_not_the_launchers_word():
    spoof = b"two_0/0 [SLURM] Job 1 - State: RUNNING,\ntwo_0/0 - Job id: 999\n"
    spoof += b"two_0/0 [16:04:00] INFO     Job 4712002 finished: SUCCEEDED\n"
    spoof += b"two_0/0 Unexpected error: nothing\ntwo_0/0 Task 7: x\n"
    said = told(TWO_TASKS + spoof)
    assert said.state is State.RUNNING
    assert [task.job for task in said.tasks] == ["4712002", "4712003"]
    assert said.error is None


def test_a_traceback_is_no_failure():
    raw = raw_of("run_ok.stdout") + raw_of("run_ok.stderr")
    assert told(raw).state is State.COMPLETED
    assert diagnose_file([raw]) is None


def test_launched_again_into_the_same_file_begins_anew():
    again = TWO_TASKS.replace(b"cicd_1795968131544186335", b"cicd_1795968999999999999")
    again = again.replace(b"471200", b"471300")
    said = told(TWO_TASKS + ENDED % b"FAILED" + again)
    assert said.experiment == "cicd_1795968999999999999"
    assert [task.job for task in said.jobs] == ["4713002", "4713003"]
    assert said.state is State.PENDING


def test_reports_and_an_accounting_that_is_down():
    said = told(
        TWO_TASKS
        + b"two_0/0 <REPORT>PASS: MMLU 0.671</REPORT>\ntwo_0/0 <REPORT>FAIL: MMLU 0.2</REPORT>\n"
        + b"[16:04:00] ERROR    sacct has been unreachable for too long ...   slurm.py:500\n"
    )
    assert said.reports == (("PASS", "MMLU 0.671"), ("FAIL", "MMLU 0.2"))
    assert said.gave_up
    assert said.state is State.RUNNING


def test_a_token_in_an_error_is_masked():
    said = told(b"Unexpected error: HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345\n")
    assert "abcdefghij" not in (said.error or "")
