"""The script that cancels, run by a real /bin/sh against a squeue and scancel of a few lines."""

from pathlib import Path

import pytest

from jobmond.backends.slurm import SlurmBackend
from jobmond.model.intent import Stop, Stopped, Target
from tests.doubles import ShellTransport

SQUEUE = r"""#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -j) id=$2; shift ;; esac; shift; done
[ -e "$JOBS/down" ] && { echo 'error: Unable to contact slurm controller' >&2; exit 1; }
[ -e "$JOBS/$id" ] || { echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1; }
cat "$JOBS/$id"
"""
SCANCEL = r"""#!/bin/sh
echo "$1" >> "$JOBS/cancelled"
if [ -e "$JOBS/refuse-$1" ]; then echo 'scancel: error: Access denied' >&2; exit 1; fi
"""


@pytest.fixture
def queue(tmp_path):
    """A folder with one file a job."""
    for name, text in (("squeue", SQUEUE), ("scancel", SCANCEL)):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    return jobs


@pytest.fixture
def cancel(queue):
    transport = ShellTransport(queue.parent / "bin", JOBS=str(queue))
    backend = SlurmBackend(transport)

    async def stopped(*targets: Target):
        return await backend.cancel(targets, timeout_s=60)

    return stopped


def cancelled(jobs: Path) -> list[str]:
    known = jobs / "cancelled"
    return known.read_text().split() if known.exists() else []


RUN = Target("7", "100")
NEXT = Target("8", "200", waiting=True)


@pytest.mark.parametrize("state", ["RUNNING", "SUSPENDED", "CONFIGURING"])
async def test_one_that_is_still_itself_is_cancelled(cancel, queue, state):
    (queue / "7").write_text(f"7|100|{state}\n")
    assert await cancel(RUN) == {"7": Stopped(Stop.ASKED)}
    assert cancelled(queue) == ["7"]


@pytest.mark.parametrize(
    ("line", "stopped"),
    [
        ("7|100|COMPLETING\n", Stopped(Stop.ENDED, "COMPLETING")),
        ("7|100|PENDING\n", Stopped(Stop.ENDED, "PENDING")),  # another life may begin
        ("7+0|100|RUNNING\n7+1|100|RUNNING\n", Stopped(Stop.ANOTHER)),
        ("7|100|COMPLETED\n", Stopped(Stop.ENDED, "COMPLETED")),
        ("7|101|RUNNING\n", Stopped(Stop.ANOTHER)),
        ("7_1|100|RUNNING\n7_2|100|RUNNING\n", Stopped(Stop.ANOTHER)),
        ("", Stopped(Stop.GONE)),
    ],
)
async def test_anything_else_is_left_alone(cancel, queue, line, stopped):
    (queue / "7").write_text(line)
    assert await cancel(RUN) == {"7": stopped}
    assert cancelled(queue) == []


async def test_one_that_the_queue_forgot_is_gone_and_a_dead_controller_is_no_answer(cancel, queue):
    assert await cancel(RUN) == {"7": Stopped(Stop.GONE)}
    (queue / "down").touch()
    told = (await cancel(RUN))["7"]
    assert told.stop is Stop.REFUSED
    assert "Unable to contact" in told.said
    assert cancelled(queue) == []


async def test_what_waits_goes_first(cancel, queue):
    (queue / "7").write_text("7|100|RUNNING\n")
    (queue / "8").write_text("8|200|PENDING\n")
    assert {t.stop for t in (await cancel(NEXT, RUN)).values()} == {Stop.ASKED}
    assert cancelled(queue) == ["8", "7"]


async def test_an_array_that_waits_goes_first(cancel, queue):
    (queue / "7").write_text("7|100|RUNNING\n")
    (queue / "8").write_text("8_[1-40%2]|200|PENDING\n")
    assert {t.stop for t in (await cancel(NEXT, RUN)).values()} == {Stop.ASKED}
    assert cancelled(queue) == ["8", "7"]


@pytest.mark.parametrize(
    "lines",
    [
        "8_[3-4]|200|PENDING\n8_2|200|RUNNING\n",
        "8_[3]|200|PENDING\n8_2|200|RUNNING\n8_[4]|200|PENDING\n",
        "8_2|200|PENDING\n",
        "80_[1]|200|PENDING\n",
        "8|201|PENDING\n",
    ],
)
async def test_a_job_is_kept_where_nobody_can_tell_what_waits_for_it(cancel, queue, lines):
    (queue / "7").write_text("7|100|RUNNING\n")
    (queue / "8").write_text(lines)
    told = await cancel(NEXT, RUN)
    assert told == {
        "8": Stopped(Stop.ANOTHER),
        "7": Stopped(Stop.KEPT, "8 waits for it and could not be cancelled"),
    }
    assert cancelled(queue) == []


async def test_what_has_started_meanwhile_is_not_cancelled(cancel, queue):
    (queue / "7").write_text("7|100|RUNNING\n")
    (queue / "8").write_text("8|200|RUNNING\n")
    told = await cancel(NEXT, RUN)
    assert told == {"8": Stopped(Stop.ENDED, "RUNNING"), "7": Stopped(Stop.ASKED)}


async def test_a_job_is_kept_where_its_successor_could_not_be_cancelled(cancel, queue):
    """It would start on what the collapsed run leaves."""
    (queue / "7").write_text("7|100|RUNNING\n")
    (queue / "8").write_text("8|200|PENDING\n")
    (queue / "refuse-8").touch()
    told = await cancel(NEXT, RUN)
    assert told["8"].stop is Stop.REFUSED
    assert "Access denied" in told["8"].said
    assert told["7"] == Stopped(Stop.KEPT, "8 waits for it and could not be cancelled")
    assert cancelled(queue) == ["8"]


async def test_hostile_words_are_quoted(cancel, queue):
    told = await cancel(Target("7'; touch pwned; '", "$(touch pwned)"))
    assert set(told) <= {"7'; touch pwned; '"}
    assert not Path("pwned").exists()
