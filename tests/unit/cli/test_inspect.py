"""`jobmonctl inspect` on logs, offline."""

import json

import jsonschema
import pytest
from click.testing import CliRunner

from jobmond.cli.main import program
from jobmond.reports.schema import schema
from tests.training import lines_of, log


def run(*arguments, stdin=None):
    return CliRunner().invoke(program, ["inspect", *map(str, arguments)], input=stdin)


def seen(*arguments, stdin=None):
    found = run("--json", *arguments, stdin=stdin)
    assert found.exit_code == 0, found.output
    objects = [json.loads(line) for line in found.stdout.splitlines()]
    for one in objects:
        jsonschema.validate(one, schema("inspect"))
    return objects[0] if len(objects) == 1 else objects


@pytest.fixture
def path(tmp_path):
    def write(name, raw):
        where = tmp_path / name
        where.write_bytes(raw)
        return where

    return write


def test_the_whole_object(path):
    where = path("run.out", log("megatron_ok"))
    found = seen(where)
    assert found["path"] == str(where)
    assert (found["dialect"], found["bucket"], found["phase"]) == ("megatron", "sft", "done")
    assert (found["bytes"], found["lines"]) == (23986, 84)
    assert (found["step"], found["max_step"], found["life"]) == (300, 300, 1)
    assert found["checkpoints"] == [100, 200, 300]
    assert found["series"]["loss"][0] == [5, 6.508462]
    assert found["metrics"]["lm loss"] == found["metrics"]["loss"] == 1.471432
    assert found["eta_s"] is None
    assert found["signals"] == []
    assert found["diagnosis"] is None


def test_standard_input(path):
    assert seen("-", stdin=log("megatron_ok"))["step"] == 300


def test_an_empty_log(path):
    found = seen(path("empty", b""))
    assert (found["dialect"], found["bucket"], found["phase"]) == ("unknown", "other", "bring-up")
    assert (found["bytes"], found["lines"], found["step"]) == (0, 0, None)


def test_several_logs_are_an_object_a_line_in_order(path):
    found = seen(path("a", log("megatron_ok")), path("b", log("hf5_sft_nan")))
    assert [one["dialect"] for one in found] == ["megatron", "hf"]


def test_joined_logs_are_lives_of_one_run(path):
    first = path("1", lines_of("composite/restart_chain/run_1001.out"))
    second = path("2", lines_of("composite/restart_chain/run_1002.out"))
    found = seen("--join", first, second)
    assert (found["life"], found["resumed_from"], found["step"]) == (2, 5, 10)
    rewards = dict(found["series"]["reward"])
    assert rewards[1] == 0.31
    assert rewards[6] == 0.39
    assert found["bytes"] == first.stat().st_size + second.stat().st_size


def test_as_if_it_ended_there(path):
    where = path("run.out", log("megatron_ok"))
    found = seen("--at", 1975, where)
    assert (found["bytes"], found["step"], found["phase"]) == (1975, 15, "training")
    assert found["eta_s"] == pytest.approx((300 - 15) * found["rate_s_per_step"], rel=1e-3)


def test_no_numbers_are_words():
    found = seen("-", stdin=log("hf5_sft_nan"))
    assert found["metrics"]["grad_norm"] == "nan"
    assert found["series"]["grad_norm"][-1][1] == "nan"


class TestSignals:
    def test_what_stands_at_the_end(self):
        found = seen("-", stdin=log("skyrl_legacy_collapse"))["signals"]
        (collapse,) = [one for one in found if one["rule"] == "rl-collapse"]
        assert (collapse["step"], collapse["last_step"]) == (49, 72)
        assert (collapse["severity"], collapse["action"]) == ("alarm", "cancel-and-salvage")
        assert "replayed" not in collapse

    def test_a_replay_has_an_entry_a_run_of_steps(self):
        found = seen("--rules", "-", stdin=log("skyrl_legacy_collapse"))["signals"]
        spans = [(s["step"], s["last_step"]) for s in found if s["rule"] == "rl-collapse"]
        assert spans == [(49, 50), (52, 72)]
        assert all(one["replayed"] is True for one in found)

    def test_labels_are_obeyed(self):
        found = seen("--label", "no-kill", "-", stdin=log("skyrl_legacy_collapse"))["signals"]
        assert {one["action"] for one in found} == {"inspect"}

    def test_the_bucket_decides(self):
        found = seen("--bucket", "sft", "--rules", "-", stdin=log("skyrl_legacy_collapse"))
        assert found["bucket"] == "sft"
        assert not [s for s in found["signals"] if s["rule"].startswith("rl-")]


def test_every_metric_on_request():
    few = seen("-", stdin=log("verl_ok"))["series"]
    everything = seen("--series", "all", "-", stdin=log("verl_ok"))["series"]
    assert "actor/grad_norm" not in few
    assert [v for _, v in everything["actor/grad_norm"]] == [v for _, v in few["grad_norm"]]


def test_a_dialect_may_be_forced():
    assert seen("--dialect", "verl", "-", stdin=log("megatron_ok"))["step"] is None
    wrong = run("--dialect", "verll", "-", stdin=b"")
    assert wrong.exit_code == 2
    assert "verl" in wrong.stderr


def test_a_failure_that_the_log_proves():
    found = seen("-", stdin=log("hf5_sft_exception"))
    assert (found["phase"], found["step"]) == ("failed", 60)
    assert found["diagnosis"]["cause"] == "python-exception"


def test_what_cannot_be_read(tmp_path):
    missing = run(tmp_path / "nothing")
    assert missing.exit_code == 2
    assert "nothing" in missing.stderr
    assert run("--at", "-1", "-").exit_code == 2


def test_for_a_person(path):
    found = run("--rules", path("run.out", log("skyrl_legacy_collapse")))
    assert found.exit_code == 0
    assert "skyrl, rl, done" in found.output
    assert "step 80/80" in found.output
    assert "alarm rl-collapse" in found.output


def test_hostile_names_never_reach_a_terminal():
    evil = b'WANDB_MIRROR kind=train step=1 metrics={"a\\u001b]0;x": 1.0}\n'
    for options in ([], ["--json"], ["--json", "--series", "all"]):
        assert "\x1b" not in run(*options, "-", stdin=evil).output


LAUNCHER_TRACEBACK = b"""\
Traceback (most recent call last):
  File "/x/nemo_run/run/experiment.py", line 700, in run
    self._wait_for_jobs()
paramiko.ssh_exception.SSHException: Error reading SSH protocol banner
"""


@pytest.mark.parametrize(
    ("name", "phase", "cause", "last"),
    [
        ("ptq_ok.log", "done", None, "finished"),
        ("ptq_oom.log", "failed", "cuda-oom", "finished"),
        ("detach.log", "queued", None, "slurm-job"),
        ("partial_7_export_cut.log", "training", None, "calibration"),
        ("submit_failed.stdout", "failed", "network", "error"),
    ],
)
def test_a_launchers_output_has_events(name, phase, cause, last):
    found = seen("-", stdin=lines_of(f"launcher/{name}"))
    assert (found["dialect"], found["bucket"], found["phase"]) == ("launcher", "other", phase)
    assert (found["diagnosis"] and found["diagnosis"]["cause"]) == cause
    assert found["events"][-1]["event"] == last
    assert (found["step"], found["max_step"]) == (None, None)


def test_what_breaks_in_the_launcher_says_nothing_about_its_job():
    running = lines_of("launcher/partial_4_import.log")
    found = seen("-", stdin=running + LAUNCHER_TRACEBACK)
    assert (found["phase"], found["diagnosis"]) == ("bring-up", None)
    own = b"AULT_CFG_0/0 " + LAUNCHER_TRACEBACK.replace(b"\n", b"\nAULT_CFG_0/0 ")
    assert seen("-", stdin=running + own)["phase"] == "failed"


def test_the_text_names_a_launchers_events():
    text = run("-", stdin=lines_of("launcher/detach.log")).output
    assert "slurm-job: task 0, name long_sleep_0, id 4712007" in text
