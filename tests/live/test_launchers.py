"""nel and the launcher on a real cluster, through real ssh: SLURM says how their jobs are."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.live.lab import Lab, User
from tests.live.product import MakeProduct, Product
from tests.live.scene import HASTY, SWEEPS
from tests.nel_package import nel_program
from tests.training import lines_of

# The first of them installs the package.
pytestmark = [pytest.mark.live, pytest.mark.timeout(1200)]

RUNNING, DONE, FAILED = "aaaa0000bbbb0001", "aaaa0000bbbb0002", "aaaa0000bbbb0003"
CHAIN = "aaaa0000bbbb0004"
RESULTS = Path(__file__).parents[1] / "transcripts" / "nel" / "results" / "mmlu_pro"
ENGINE = (
    "(EngineCore_DP0 pid=231) ERROR 11-20 12:03:00 [core.py:710] EngineCore encountered a fatal "
    "error.\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.\n"
)
CLIENT = "requests.exceptions.ConnectionError: HTTPConnectionPool: Connection refused\n"


@dataclass
class Evaluations:
    """Invocations of nel by one user, whose jobs run on the lab."""

    lab: Lab
    user: User
    product: Product
    jobs: dict[str, str] = field(default_factory=dict)

    def folder(self, invocation: str) -> Path:
        return self.user.home / "runs" / invocation / "simple_evals.mmlu_pro.0"

    def launch(self, invocation: str, script: str, files: Mapping[str, str] | None = None) -> str:
        """Submit a job and write it down as nel does; gives its id in SLURM."""
        folder = self.folder(invocation)
        made = "; ".join(f"mkdir -p {folder}/{name}" for name in ("logs", "artifacts"))
        self.lab.run(["sh", "-c", made], user=self.user).checked()
        for name, text in (files or {}).items():
            self.lab.run(["tee", str(folder / name)], user=self.user, text=text).checked()
        listed = f"echo $SLURM_JOB_ID >> {folder}/.slurm_job_id.list\n"
        job = self.lab.sbatch(self.user, f"{listed}{script}", f"--job-name=nel-{invocation}")
        self.jobs[invocation] = job
        self._record(invocation, job)
        return job

    def _record(self, invocation: str, job: str) -> None:
        data = {
            "slurm_job_id": job,
            "remote_rundir_path": str(self.folder(invocation)),
            "hostname": self.user.name,
            "username": self.user.name,
            "eval_image": "nvcr.io/nvidia/eval-factory/simple-evals:26.03",
        }
        entry = {
            "invocation_id": invocation,
            "job_id": f"{invocation}.0",
            "timestamp": time.time(),
            "executor": "slurm",
            "data": data,
            "config": {},
        }
        path = self.product.folder / "home" / ".nemo-evaluator" / "exec-db" / "exec.v1.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as database:
            database.write(json.dumps(entry) + "\n")

    def add(self, *invocations: str) -> None:
        for invocation in invocations:
            answer = self.product.ctl("add", invocation, "--json").checked()
            assert json.loads(answer.out)["ref"] == f"lab/{invocation}"

    def row(self, invocation: str) -> dict[str, Any]:
        return self.product.jobs()[invocation]


def evaluations(lab: Lab, user: User, make_product: MakeProduct) -> Evaluations:
    """A jobmond that calls the real nel, whose ssh finds the lab."""
    product = make_product(
        lab,
        user,
        start=False,
        cluster=HASTY | {"ssh_config_file": str(lab.sshd.client_config_file)},
    )
    programs = product.folder / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(
        f'#!/bin/sh\nexec /usr/bin/ssh -F {lab.sshd.client_config_file} "$@"\n'
    )
    call = programs / "nel-of-this-test"
    call.write_text(f'#!/bin/sh\nPATH={programs}:$PATH exec {nel_program()} "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    with product.config.open("a") as config:
        config.write(f'\n[nel]\ncommand = ["{call}"]\ntimeout = "20s"\n')
    product.start()
    return Evaluations(lab, user, product)


@pytest.fixture
def evals(lab: Lab, user: User, make_product: MakeProduct) -> Evaluations:
    return evaluations(lab, user, make_product)


def test_running_finished_with_scores_and_failed(evals: Evaluations) -> None:
    lab, product = evals.lab, evals.product
    evals.launch(RUNNING, "sleep 600")
    results = {f"artifacts/{one.name}": one.read_text() for one in RESULTS.iterdir()}
    evals.launch(DONE, "true", results)
    evals.launch(FAILED, "exit 1", {"logs/server-1-2-3.log": ENGINE, "logs/client-2.log": CLIENT})
    lab.wait_for_state(evals.jobs[RUNNING], "RUNNING")
    lab.wait_for_accounting(evals.jobs[DONE], "COMPLETED")
    lab.wait_for_accounting(evals.jobs[FAILED], "FAILED")
    evals.add(RUNNING, DONE, FAILED)
    product.swept_until(
        lambda: product.states() == {RUNNING: "RUNNING", DONE: "COMPLETED", FAILED: "FAILED"},
        120,
        what="the three states",
    )
    done, failed, running = evals.row(DONE), evals.row(FAILED), evals.row(RUNNING)
    assert done["scores"] == [{"name": "MMLU-Pro", "value": 42.26}]
    assert done["kind"] == "nel"
    assert {row["bucket"] for row in (done, failed, running)} == {"eval"}
    assert (running["exit_code"], done["exit_code"], failed["exit_code"]) == (None, 0, 1)
    product.swept_until(lambda: evals.row(FAILED)["diagnosis"], what="the cause")
    assert evals.row(FAILED)["diagnosis"]["cause"] in ("cuda-oom", "engine-dead")
    line = product.status()["summary"]["line"]
    assert line == "1 of 3 completed (MMLU-Pro: 42.3%), 1 failed, 1 running"
    assert [event.after for event in product.events_of(FAILED)] == ["FAILED"]
    lab.scancel(evals.jobs[RUNNING])
    product.swept_until(lambda: product.states()[RUNNING] == "CANCELLED", what="its end")


def test_a_chain_is_told_by_its_length_and_never_cancelled(evals: Evaluations) -> None:
    lab, product = evals.lab, evals.product
    script = "until [ -e ~/go ]; do sleep 0.2; done"
    first = evals.launch(CHAIN, script)
    folder = evals.folder(CHAIN)
    listed = f"echo $SLURM_JOB_ID >> {folder}/.slurm_job_id.list\n"
    second = lab.sbatch(evals.user, f"{listed}{script}", f"--dependency=afternotok:{first}")
    lab.wait_for_state(first, "RUNNING")
    evals.add(CHAIN)
    product.swept_until(lambda: product.states().get(CHAIN) == "RUNNING", 120, what="RUNNING")
    assert second not in product.jobs()
    (evals.user.home / "go").touch()
    lab.wait_for_accounting(first, "COMPLETED")
    product.swept_until(lambda: product.states()[CHAIN] == "COMPLETED", 120, what="COMPLETED")
    # The successor can never start; whether that is seen at the end depends on SLURM's pace.
    assert evals.row(CHAIN).get("message") in (
        None,
        f"{second} is left waiting for what never comes: scancel {second} removes it",
    )
    assert lab.job_state(second) == "PENDING"
    lab.scancel(second)


def test_nel_says_failed_while_nobody_knows(whole_lab: Lab, make_product: MakeProduct) -> None:
    user = whole_lab.add_user()
    evals = evaluations(whole_lab, user, make_product)
    lab, product = whole_lab, evals.product
    evals.launch(RUNNING, "until [ -e ~/go ]; do sleep 0.2; done; exit 3")
    lab.wait_for_state(evals.jobs[RUNNING], "RUNNING")
    evals.add(RUNNING)
    product.swept_until(lambda: product.states().get(RUNNING) == "RUNNING", 120, what="RUNNING")
    for broken in ("sshd", "slurmdbd"):
        lab.stop(broken)
        lab.kill_sessions()
        for _ in range(SWEEPS):
            product.sweep()
            assert product.states() == {RUNNING: "RUNNING"}
        lab.start(broken)
        product.swept_until(lambda: not evals.row(RUNNING)["stale"], 120, what="an answer")
    assert [event.words for event in product.events_of(RUNNING)] == []
    (user.home / "go").touch()
    lab.wait_for_accounting(evals.jobs[RUNNING], "FAILED")
    product.swept_until(lambda: product.states()[RUNNING] == "FAILED", 120, what="its end")
    assert product.told(RUNNING) == [("transition", "RUNNING", "FAILED")]
    assert evals.row(RUNNING)["exit_code"] == 3


def test_a_launchers_log_leads_to_its_job_which_is_followed_after_it_died(
    lab: Lab, user: User, make_product: MakeProduct
) -> None:
    product = make_product(lab, user)
    job = lab.sbatch(user, "until [ -e ~/gone ]; do sleep 0.2; done; exit 3")
    lab.wait_for_state(job, "RUNNING")
    raw = lines_of("launcher/partial_4_import.log").replace(b"host='vm'", b"host='127.0.0.1'")
    output = product.folder / "ptq.log"
    output.write_bytes(raw[: raw.index(b"[16:16:38] Launching job")])
    answer = product.ctl("add", "--kind", "launcher", "--log", str(output), "--json").checked()
    added = json.loads(answer.out)
    experiment = "cicd_1795968996253503257"
    # The launcher submits: its file grows, and names its job.
    output.write_bytes(raw.replace(b"4712008", job.encode()))
    product.swept_until(
        lambda: product.states().get(experiment) == "RUNNING", 60, what="the job behind the file"
    )
    row = product.jobs()[experiment]
    assert (row["kind"], row["name"]) == ("launcher", "Qwen3-8B_NVFP4_DEFAULT_CFG_0")
    assert added["ref"] in (f"lab/{experiment}", "lab/file:ptq.log")
    shown = json.loads(product.ctl("show", added["ref"], "--json").checked().out)
    assert shown["ref"] == f"lab/{experiment}"
    # It dies: nothing more comes, and its job goes on.
    product.sweep_well(2)
    assert product.states() == {experiment: "RUNNING"}
    (user.home / "gone").touch()
    lab.wait_for_accounting(job, "FAILED")
    product.swept_until(lambda: product.states()[experiment] == "FAILED", what="its end")
    row = product.jobs()[experiment]
    assert (row["exit_code"], row["tracked"]) == (3, False)
    assert [event.after for event in product.events() if event.type == "transition"][-1] == "FAILED"
