"""A launcher of two processes whose second one raises, three times over, on a real cluster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.live.lab import Lab
from tests.live.machine import SAFE_PATH
from tests.live.product import Product, ref
from tests.needs import need

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

# The launcher speaks as torchrun does. Its first process waits for the second and is terminated.
LAUNCHER = '''\
#!/usr/bin/python3
import os, pathlib, subprocess, sys, time

RANK = """
import os, sys, time
rank = int(os.environ["RANK"])
def step(n):
    if rank == 1 and n == 3:
        raise ValueError(f"expected 8 rows, got {os.getpid()}")
def main():
    for n in range(1, 1000):
        print(f"rank {rank} step {n}", flush=True)
        step(n)
        time.sleep(0.05)
main()
"""
path = pathlib.Path.home() / "rank.py"
path.write_text(RANK)
while not (pathlib.Path.home() / f"gate-{os.environ['SLURM_JOB_ID']}").exists():
    time.sleep(0.1)
ranks = [
    subprocess.Popen([sys.executable, str(path)], env={**os.environ, "RANK": str(rank)})
    for rank in (0, 1)
]
code = ranks[1].wait()
print(f"W Sending process {ranks[0].pid} closing signal SIGTERM", file=sys.stderr, flush=True)
ranks[0].terminate()
ranks[0].wait()
print(f"E failed (exitcode: {code}) local_rank: 1 (pid: {ranks[1].pid}) of binary: python3",
      file=sys.stderr)
print("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", file=sys.stderr)
sys.exit(1)
'''


@dataclass
class Runs:
    """Three runs of one name, each watched from its start to its end."""

    product: Product
    user_home: Path
    ids: list[str] = field(default_factory=list)

    def job(self, nth: int) -> dict[str, object]:
        return self.product.jobs()[self.ids[nth]]

    def show(self, nth: int) -> str:
        return self.product.ctl("show", ref(self.ids[nth])).checked().out

    def entry(self, nth: int) -> str:
        return Path(str(self.job(nth)["agent_log"])).read_text()

    def log(self, nth: int) -> list[str]:
        return (self.user_home / f"slurm-{self.ids[nth]}.out").read_text().splitlines()


@pytest.fixture(scope="module")
def runs(lab: Lab) -> Iterator[Runs]:
    """Everything happens here."""
    need(shutil.which("python3", path=SAFE_PATH), "there is no python3 for the lab's users")
    user = lab.add_user()
    product = Product(lab, user)
    try:
        product.start()
        story = Runs(product, user.home)
        for _ in range(3):
            job = lab.sbatch(user, LAUNCHER, "--job-name=pair", "--ntasks=1")
            story.ids.append(job)
            lab.wait_for_state(job, "RUNNING")
            product.add(job)
            product.sweep_well()
            (user.home / f"gate-{job}").touch()
            lab.wait_for_accounting(job, "FAILED")
            product.swept_until(lambda: product.states()[job] == "FAILED", what="the end")  # noqa: B023
        product.sweep_well()
        yield story
    finally:
        product.close()


def test_the_one_that_raised_is_the_cause_and_the_other_its_victim(runs: Runs) -> None:
    for nth in range(3):
        found = runs.job(nth)["diagnosis"]
        assert isinstance(found, dict)
        assert found["cause"] == "python-exception"
        assert found["summary"].startswith("ValueError: expected 8 rows, got ")
        assert found["victims"] == 1
        assert runs.log(nth)[found["line"] - 1].startswith("ValueError: expected 8 rows")
        first = runs.log(nth)[found["first_line"] - 1]
        assert first.startswith("Traceback (most recent call last)")


def test_the_three_have_one_signature(runs: Runs) -> None:
    prints = {runs.job(nth)["diagnosis"]["fingerprint"] for nth in range(3)}  # type: ignore[index] # a diagnosis
    assert len(prints) == 1
    assert prints.pop().startswith("python-exception:ValueError:rank.py/step:")


def test_the_third_time_is_said_with_how_long_each_lived(runs: Runs) -> None:
    counts = []
    for nth in range(3):
        known = runs.job(nth)["diagnosis"]["recurrence"]  # type: ignore[index] # a diagnosis
        counts.append((known["count"], known["transient"]))
    assert counts == [(1, None), (2, False), (3, False)]
    words = known["words"]
    assert words.startswith("third time in ")
    assert ", each after about " in words
    assert words.endswith(": not transient")
    [event] = [e for e in runs.product.events_of(runs.ids[2]) if e.after == "FAILED"]
    assert event.whole["title"].endswith(words)
    assert words in runs.show(2)
    assert words in runs.job(2)["note"]  # type: ignore[operator] # a text


def test_the_entry_proves_it_and_leads_to_those_before(runs: Runs) -> None:
    text = runs.entry(2)
    head = yaml.safe_load(text.split("---\n")[1])
    assert (head["cause"], head["victims"], head["recurrence"]["count"]) == (
        "python-exception",
        1,
        3,
    )
    log = runs.user_home / f"slurm-{runs.ids[2]}.out"
    assert head["logs"] == {str(log): [[0, log.stat().st_size]]}
    for nth in (0, 1):
        name = Path(str(runs.job(nth)["agent_log"])).name
        assert f"[`{ref(runs.ids[nth])}`](../" in text
        assert name in text
    ruled_out = text.partition("## Ruled out")[2].partition("## Log")[0]
    assert "closing signal SIGTERM` (line " in ruled_out
    index = (Path(str(runs.job(2)["agent_log"])).parent / "INDEX.md").read_text()
    assert index.count("python-exception") == 3


def test_they_are_one_row_of_what_failed(runs: Runs) -> None:
    answer = runs.product.ctl("failures", "--json").checked()
    [row] = json.loads(answer.out)["failures"]
    assert (row["count"], row["runs"]) == (3, ["pair"])
    assert row["jobs"] == [ref(native) for native in reversed(runs.ids)]
    assert "python-exception" in runs.product.ctl("failures").checked().out
