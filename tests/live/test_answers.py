"""An answer that is cut, missing, forged, empty or not understood is no verdict."""

from __future__ import annotations

from typing import Any

import pytest

from tests.live.scene import RECOVERY, SWEEPS, TROUBLE, MakeScene

pytestmark = pytest.mark.live


def test_a_connection_that_is_cut_in_the_middle_of_an_answer(make_scene: MakeScene) -> None:
    scene = make_scene(sweep_budget="120s")
    lab, product = scene.lab, scene.product
    # Half an answer, looking whole up to where it stops.
    lab.fault(scene.user, "squeue", '/usr/bin/squeue "$@" | head -n 1; sleep 60')
    scene.end_one()
    for _ in range(SWEEPS):
        asked = lab.counts(scene.user).squeue
        sweep = product.started("sweep", "--wait", "--cluster", "lab")
        lab.wait_for(lambda asked=asked: lab.counts(scene.user).squeue > asked, 60, what="squeue")

        def over(sweep: Any = sweep) -> bool:
            lab.kill_sessions()
            return sweep.poll() is not None

        lab.wait_for(over, 60, what="the sweep to give up")
        assert sweep.returncode == 1
        scene.assert_unmoved()
    assert product.cluster_told() == [TROUBLE]
    lab.no_faults(scene.user)
    scene.assert_truth_told_once()
    assert product.cluster_told() == [TROUBLE, RECOVERY]


def test_a_banner_on_standard_output_is_no_answer(make_scene: MakeScene) -> None:
    scene = make_scene()
    lab, product = scene.lab, scene.product
    forged = [f"{job}|FAILED|FAILED|0:9" for job in (scene.running, scene.waiting)]
    lab.banner(scene.user, "*** Welcome | maintenance on Friday ***", *forged, "\x1b[2J")
    for _ in range(SWEEPS):
        product.sweep_well()
        scene.assert_unmoved()
    lab.restart_sshd()  # so that a new login prints it as well
    product.swept_until(lambda: product.cluster()["status"] == "ok", what="a new connection")
    scene.assert_unmoved()
    scene.end_one()
    scene.assert_truth_told_once()


def test_a_command_that_is_missing_is_trouble_and_no_verdict(make_scene: MakeScene) -> None:
    scene = make_scene()
    lab, product = scene.lab, scene.product
    for command in ("squeue", "sacct", "scontrol"):
        lab.fault(scene.user, command, "echo 'command not found' >&2; exit 127")
    scene.end_one()
    scene.sweep_badly()
    assert product.cluster_told() == [TROUBLE]
    lab.no_faults(scene.user)
    scene.assert_truth_told_once()
    assert product.cluster_told() == [TROUBLE, RECOVERY]


def test_an_empty_answer_with_exit_code_zero_is_no_end(make_scene: MakeScene) -> None:
    scene = make_scene()
    lab, product = scene.lab, scene.product
    for command in ("squeue", "sacct", "scontrol"):
        lab.fault(scene.user, command, "exit 0")
    for _ in range(SWEEPS):
        product.sweep()
        scene.assert_unmoved()
    assert [one for one in product.events() if one.type != "cluster"] == []
    lab.no_faults(scene.user)
    scene.end_one()
    scene.assert_truth_told_once()


def test_an_unknown_word_concerns_its_job_only(make_scene: MakeScene) -> None:
    scene = make_scene()
    lab, product = scene.lab, scene.product
    # Every command calls this one job's state by a word that Slurm does not have.
    for command in ("squeue", "scontrol", "sacct"):
        lab.fault(
            scene.user,
            command,
            f'/usr/bin/{command} "$@" | sed "/{scene.running}/s/RUNNING/MARTIAN/g"',
        )
    scene.end_one()
    lab.wait_for_accounting(scene.ending, "FAILED")
    for _ in range(SWEEPS):
        product.sweep()
    jobs = product.jobs()
    assert (jobs[scene.running]["state"], jobs[scene.running]["stale"]) == ("RUNNING", True)
    assert (jobs[scene.waiting]["state"], jobs[scene.waiting]["stale"]) == ("PENDING", False)
    assert jobs[scene.ending]["state"] == "FAILED"
    assert "MARTIAN" in product.journal()
    lab.no_faults(scene.user)
    scene.assert_truth_told_once()


def test_what_ended_and_was_purged_meanwhile_is_told_from_accounting(
    make_scene: MakeScene,
) -> None:
    scene = make_scene()
    lab, product = scene.lab, scene.product
    age = lab.options.min_job_age_s
    lab.set_slurm(MinJobAge=2)
    try:
        product.stop()
        scene.end_one()
        lab.wait_for(lambda: not lab.job_state(scene.ending), 120, what="the purge")
        product.start()
        scene.assert_truth_told_once()
        assert product.cluster_told() == []
        (entry,) = product.entries()
        assert scene.ending in entry.name
    finally:
        lab.set_slurm(MinJobAge=age)
