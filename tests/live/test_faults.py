"""Whatever breaks between jobmond and a job, the job keeps its state until the truth is known.

Every fault lasts three sweeps. Meanwhile one job runs, one waits, and one ends unseen: no state
moves, the cluster's trouble is told once, its end once, and then the one true change once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.live.lab import Lab, Submission, User
from tests.live.options import LabOptions
from tests.live.product import MakeProduct, Product, doubled

pytestmark = pytest.mark.live

# What hangs must be given up soon: three sweeps of each fault are waited for.
HASTY: dict[str, Any] = {
    "connect_timeout": "3s",
    "command_timeout": "4s",
    "keepalive": "2s",
    "sweep_budget": "15s",
}
GATED = "until [ -e ~/gate ]; do sleep 0.2; done; exit 3"
SWEEPS = 3
TROUBLE = ("cluster", "ok", "unreachable")
RECOVERY = ("cluster", "unreachable", "ok")


@pytest.fixture(scope="module")
def weak_lab() -> Iterator[Lab]:
    """A lab whose Slurm commands give up early, shared by all that is broken here in turn."""
    with Lab(LabOptions(nodes=2, users=0)) as lab:
        lab.set_slurm(MessageTimeout=3)
        yield lab


@pytest.fixture
def own(weak_lab: Lab) -> Iterator[Lab]:
    """The same lab, made whole again after each test."""
    yield weak_lab
    for name in weak_lab.daemon_names:
        if weak_lab.running(name):
            weak_lab.thaw(name)
        weak_lab.start(name)
    weak_lab.trust_host_key()


@dataclass
class Scene:
    """Three tracked jobs: one goes on running, one goes on waiting, one ends when told."""

    lab: Lab
    user: User
    product: Product
    running: str
    waiting: str
    ending: str

    def end_one(self) -> None:
        (self.user.home / "gate").touch()

    def sweep_badly(self) -> None:
        """Three sweeps that get no answer, and what they must leave as it was."""
        for _ in range(SWEEPS):
            assert self.product.sweep().code == 1
            self.assert_unmoved()
        assert self.product.cluster()["status"] == "unreachable"
        assert self.product.cluster()["error"]

    def assert_unmoved(self) -> None:
        expected = {self.running: "RUNNING", self.waiting: "PENDING", self.ending: "RUNNING"}
        assert self.product.states() == expected

    def assert_truth_told_once(self) -> None:
        """The lab is whole again: the one job that ended is told, then nothing more."""
        self.lab.wait_for_accounting(self.ending, "FAILED")
        self.product.swept_until(
            lambda: self.product.states()[self.ending] == "FAILED", what="the truth"
        )
        self.product.sweep_well(2)
        assert self.product.told(self.ending) == [("transition", "RUNNING", "FAILED")]
        assert self.product.events_of(self.ending)[0].whole["correction"] is False
        assert self.product.jobs()[self.ending]["exit_code"] == 3
        assert self.product.told(self.running) == []
        assert self.product.told(self.waiting) == []
        states = self.product.states()
        assert (states[self.running], states[self.waiting]) == ("RUNNING", "PENDING")
        assert not any(job["stale"] for job in self.product.jobs().values())
        assert doubled(self.product.events()) == []


MakeScene = Callable[..., Scene]


@pytest.fixture
def make_scene(own: Lab, make_product: MakeProduct) -> Iterator[MakeScene]:
    users: list[User] = []

    def make(*, settings: dict[str, Any] | None = None, **cluster: Any) -> Scene:
        user = own.add_user()
        users.append(user)
        jobs = own.sbatch_many(
            user,
            [
                Submission("echo begun; sleep 600"),
                Submission("true", ("--begin=now+1hour",)),
                Submission(GATED),
            ],
        )
        own.wait_for_state(jobs[0], "RUNNING")
        own.wait_for_state(jobs[2], "RUNNING")
        product = make_product(own, user, settings=settings, cluster=HASTY | cluster)
        product.add(*jobs)
        product.sweep_well()
        scene = Scene(own, user, product, *jobs)
        scene.assert_unmoved()
        return scene

    yield make
    for user in users:
        own.run(["scancel", "-u", user.name])


@contextmanager
def stopped(lab: Lab, name: str) -> Iterator[None]:
    lab.stop(name)
    yield
    lab.start(name)


@contextmanager
def frozen(lab: Lab, name: str) -> Iterator[None]:
    lab.freeze(name)
    yield
    lab.thaw(name)


@pytest.mark.parametrize("name", ["slurmctld", "slurmdbd", "sshd"])
@pytest.mark.parametrize("fault", [stopped, frozen])
def test_a_daemon_that_does_not_answer(
    make_scene: MakeScene, name: str, fault: Callable[[Lab, str], Any]
) -> None:
    scene = make_scene()
    with fault(scene.lab, name):
        scene.end_one()
        scene.sweep_badly()
        assert scene.product.cluster_told() == [TROUBLE]
    scene.assert_truth_told_once()
    assert scene.product.cluster_told() == [TROUBLE, RECOVERY]


def test_a_connection_that_is_cut_in_the_middle_of_an_answer(make_scene: MakeScene) -> None:
    scene = make_scene(command_timeout="60s", sweep_budget="120s")
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


def test_a_host_key_that_changed_waits_for_a_person(make_scene: MakeScene) -> None:
    scene = make_scene(settings={"poll_interval": "1s"})
    lab, product = scene.lab, scene.product
    lab.change_host_key()
    scene.end_one()
    lab.wait_for(lambda: product.cluster()["status"] == "needs-login", 30, what="needs-login")
    connections = lab.connections()
    ticks = {product.status()["daemon"]["next_sweep_at"]}

    def ticked() -> bool:
        ticks.add(product.status()["daemon"]["next_sweep_at"])
        return len(ticks) > SWEEPS

    lab.wait_for(ticked, 60, what="three more ticks")
    assert product.ctl("sweep", "--wait").code == 1
    assert lab.connections() == connections
    scene.assert_unmoved()
    told = [("cluster", "ok", "needs-login")]
    assert product.cluster_told() == told
    (event,) = (one for one in product.events() if one.type == "cluster")
    assert event.whole["severity"] == "alarm"
    assert "known_hosts" in event.whole["body"] or "ssh" in event.whole["body"]

    # A person who asks by name causes exactly one try, in vain as long as the key is not trusted.
    assert product.sweep().code == 1
    assert lab.connections() == connections + 1
    assert product.cluster_told() == told
    lab.trust_host_key()
    scene.assert_truth_told_once()
    assert product.cluster_told() == [*told, ("cluster", "needs-login", "ok")]


def test_a_key_that_is_no_longer_accepted_waits_for_a_person(make_scene: MakeScene) -> None:
    scene = make_scene()
    lab, product = scene.lab, scene.product
    public = scene.user.key_file.with_suffix(".pub")
    accepted = public.read_text()
    public.write_text("")
    lab.restart_sshd()
    scene.end_one()
    assert product.sweep().code == 1
    assert product.cluster()["status"] == "needs-login"
    refused = lab.failed_logins(scene.user)
    for _ in range(SWEEPS):
        assert product.ctl("sweep", "--wait").code == 1
        scene.assert_unmoved()
    assert lab.failed_logins(scene.user) == refused == 1
    public.write_text(accepted)
    scene.assert_truth_told_once()
    assert product.cluster_told() == [
        ("cluster", "ok", "needs-login"),
        ("cluster", "needs-login", "ok"),
    ]


def test_two_sessions_a_connection_are_enough(make_scene: MakeScene) -> None:
    scene = make_scene(command_timeout="60s", sweep_budget="120s")
    lab, product = scene.lab, scene.product
    lab.restart_sshd(max_sessions=2)
    try:
        product.swept_until(lambda: product.cluster()["status"] == "ok", what="a new connection")
        told = product.cluster_told()
        for _ in range(SWEEPS):
            reading = [product.started("logs", scene.running) for _ in range(6)]
            product.sweep_well()
            for one in reading:
                one.wait(60)
            scene.assert_unmoved()
        scene.end_one()
        scene.assert_truth_told_once()
        assert product.cluster_told() == told
        assert told in ([], [TROUBLE, RECOVERY])
    finally:
        lab.restart_sshd(max_sessions=10)


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
