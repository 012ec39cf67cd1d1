"""A process killed between any two statements of a commit leaves all of it or none."""

import subprocess
import sys
from pathlib import Path

import jobmond
from jobmond.store import Store

PROGRAM = """
import os, sys
from datetime import UTC, datetime
from sqlalchemy import event
from jobmond.model.commit import JobChange, SweepCommit
from jobmond.model.job import *
from jobmond.model.observation import Facts
from jobmond.model.outcome import *
from jobmond.model.state import *
from jobmond.store import Store

T = datetime(2026, 11, 29, 12, tzinfo=UTC)

def swept(n):
    job = Job(0, "leo", Kind.SLURM, str(n), "b", "train", n, Bucket.RL, "rl", frozenset(),
              Choices(), Facts(), State.RUNNING, "RUNNING", T,
              signals=(Signal("stall", Severity.WATCH, "t", {}),))
    return SweepCommit(
        "leo", T, T, ClusterHealth("leo", "slurm", True, "ok", T),
        (JobChange(job, (Transition(T, None, State.RUNNING, "RUNNING"),)),),
        (News(str(n), T, "transition", Severity.INFO, "leo", None, {}),),
        (Delivery(0, str(n), "news", {}, T, T),),
        calls={"squeue": 1})

survived = 0
for step in range(1, 60):
    child = os.fork()
    if child == 0:
        store = Store.open(sys.argv[1])
        left = iter(range(step, 0, -1))
        def count(*_):
            if next(left) == 1:
                os._exit(9)
        event.listen(store._engine, "before_cursor_execute", count)
        event.listen(store._engine, "commit", count)
        store.commit(swept(step))
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        break
print(step)
"""


def test_every_step_of_a_commit_can_be_the_last(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobmond.db"
    root = Path(jobmond.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, url],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(root)},
    )
    steps = int(done.stdout)
    assert 10 < steps < 59
    store = Store.open(url)
    (job,) = store.lives("train", "leo")
    assert job.native_id == str(steps)
    assert len(store.transitions(job.id)) == len(job.signals) == 1
    assert [news.key for news in store.events()] == [str(steps)]
    assert [one.key for one in store.due("news", job.added_at, 9)] == [str(steps)]
    store.close()
