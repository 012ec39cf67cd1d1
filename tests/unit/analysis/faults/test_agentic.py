"""Words that look bad in a run that is well, among thousands of trials that fail as expected."""

import pytest

from jobmond.analysis.choosing import diagnose_file
from tests.benchmarks.rl_log import OOM, pieces
from tests.unit.analysis.faults.variations import STEPS, trace

WELL = [
    "2026-03-01 10:41:00 | INFO | step 41/900 | loss=1.21 dataset=finance_qa lr=1e-05",
    "comm_wait=12 nanoseconds",
    "(w pid=8) reduce took 12 nanoseconds, dataset=finance_qa",
    "note: core dumped is disabled (ulimit -c 0)",
    "core dumped is disabled",
    "2026-03-01 10:41:00 | WARNING | RuntimeError: reward server returned 503 (recovered)",
    "WARNING:reward:caught RuntimeError: connection lost, retrying in 2 s",
    "(entry pid=8) harbor.trial - WARNING - Trial t-9 failed: AssertionError: expected 4, got 5",
    "E       AssertionError: expected 4, got 5",
    "| AssertionError: expected 4, got 5",
    "oom_kill_disable 0",
    "under_oom 0",
    "oom_kill 0",
    "memory.events: low 0 high 0 max 0 oom 0 oom_kill 0",
]
BROKEN = [
    "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been "
    "OOM Killed.",
    "slurmstepd: error: Detected 2 oom-kill event(s) in StepId=77.batch cgroup. Some of your "
    "processes may have been killed by the cgroup out-of-memory handler.",
    "srun: error: n05: task 3: Out Of Memory",
    "OOM Killed.",
    "slurmstepd: error: task 0: oom_kill",
    "n17: oom_kill event",
]
MORE = "".join(f"2026-03-01 11:{n:02}:00 | INFO | step {n}/900 | loss 2.1\n" for n in range(41, 55))


def log(*extras: str) -> bytes:
    return b"".join(pieces(3_000_000, *extras))


@pytest.mark.parametrize("line", WELL)
@pytest.mark.parametrize("rest", ["", MORE])
def test_a_line_of_a_run_that_is_well(line, rest):
    assert diagnose_file([f"{STEPS}{line}\n{rest}".encode()]) is None


@pytest.mark.parametrize("line", BROKEN)
@pytest.mark.parametrize("rest", ["", "srun: error: n05: task 3: Exited with exit code 1\n"])
def test_a_line_of_a_run_whose_memory_ran_out(line, rest):
    found = diagnose_file([f"{STEPS}{line}\n{rest}".encode()])
    assert found is not None
    assert (found.cause, found.line) == ("host-oom", STEPS.count("\n") + 1)


def test_a_trials_assertion_in_a_traceback_that_its_log_record_announces():
    said = (
        "(entry pid=8) 2026-03-01 10:00:00 | WARNING | Trial t-9 failed, counted as reward 0\n"
        + trace("AssertionError: expected 4, got 5", "(entry pid=8) ", "/w/tasks/test_state.py")
    ).replace("<module>", "run_trial")
    assert diagnose_file([(STEPS + said + MORE).encode()]) is None
    assert diagnose_file([(STEPS + said).encode()]) is None


@pytest.mark.parametrize("lines", [WELL, WELL[::-1]])
def test_all_of_it_among_expected_tracebacks(lines):
    middle, end = log("trials"), log("trials", "oom")
    noise = "".join(f"{line}\n" for line in lines).encode()
    assert diagnose_file([middle + noise + middle]) is None
    found = diagnose_file([middle + noise + end])
    assert found is not None
    assert found.cause == "cuda-oom"
    lines_of_log = (middle + noise + end).split(b"\n")
    assert lines_of_log[found.line - 1].endswith(OOM.encode())
