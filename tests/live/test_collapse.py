"""A collapse acted on, on a real cluster: evidence, then scancel, once, whoever dies between."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.live.lab import Lab, User
from tests.live.product import MakeProduct, Product, doubled
from tests.live.runs import RL, RL_CUTS, words
from tests.live.tape import Tape, tape

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

CANCELS = {"policy.on_collapse": "cancel", "policy.cancel_again_after": "1s"}
SOUND, COLLAPSED = RL_CUTS[3], RL_CUTS[4]
SCANCEL = shutil.which("scancel")
LOOKS_FIRST = "%i|%V|%T"  # in what is asked of squeue in the breath before a job is cancelled


@dataclass
class Scene:
    lab: Lab
    user: User
    tapes: list[Tape] = field(default_factory=list)

    def run(self, name: str, after: Tape | None = None) -> Tape:
        """A job that plays, or waits for one that does."""
        made = tape(self.lab, self.user, name, after=after)
        self.tapes.append(made)
        if after is None:
            self.lab.wait_for_state(made.job, "RUNNING")
            made.play(RL[:SOUND])
        return made

    def cancelled(self) -> list[str]:
        """What scancel was asked for over ssh, in order."""
        calls = self.lab.calls(self.user)
        return [" ".join(call.arguments) for call in calls if call.command == "scancel"]


@pytest.fixture
def scene(lab: Lab, user: User) -> Iterator[Scene]:
    yield Scene(lab, user)
    lab.no_faults(user)
    lab.scancel("-u", user.name)


def evidence(product: Product, job: Tape) -> Path:
    """Where what was seen of the collapse stands."""
    told = [e for e in product.events_of(job.job) if words(e) == "signal rl-collapse 49"]
    assert len(told) == 1
    return Path(told[0].whole["agent_log"])


def test_cancelled_once_its_successors_first_and_nobody_else(
    scene: Scene, make_product: MakeProduct
) -> None:
    lab, user = scene.lab, scene.user
    sick, spared = scene.run("grid"), scene.run("ablation")
    second = scene.run("grid", after=sick)
    third = scene.run("grid", after=second)
    scene.run("report", after=sick)  # of another name: meant to run afterwards
    scene.run("ablation", after=spared)
    lab.fault(user, "scancel", f'date +%s.%N >>~/asked-at\nexec {SCANCEL} "$@"')
    product = make_product(lab, user, settings=CANCELS)
    product.add(sick.job, spared.job)
    product.ctl("label", spared.job, "+no-kill").checked()
    product.sweep_well()
    assert scene.cancelled() == []

    for one in (sick, spared):
        one.play(RL[SOUND:COLLAPSED])
    product.sweep_well()
    assert scene.cancelled() == [third.job, second.job, sick.job]
    first_asked_at = float((user.home / "asked-at").read_text().split()[0])
    assert evidence(product, sick).stat().st_mtime <= first_asked_at
    assert "salvage_step: 40" in evidence(product, sick).read_text()

    lab.wait_for_accounting(sick.job, "CANCELLED")
    product.sweep_well(3)
    assert scene.cancelled() == [third.job, second.job, sick.job]
    assert [words(e) for e in product.events_of(sick.job)] == [
        "signal deep-probe None",
        "followup deep-probe open",
        "signal rl-collapse 49",
        "signal rl-watch 45",
        "transition RUNNING CANCELLED",
    ]
    assert product.jobs()[sick.job]["successor"] is None
    for job in (second, third):
        assert lab.accounted(job.job)[0].startswith("CANCELLED")
    assert "left running: it is labelled no-kill" in evidence(product, spared).read_text()
    assert product.states()[spared.job] == "RUNNING"
    assert doubled(product.events()) == []


def test_a_daemon_killed_between_evidence_and_cancel(
    scene: Scene, make_product: MakeProduct
) -> None:
    """The far side is looking at the job, and about to cancel it, when the daemon dies."""
    lab, user = scene.lab, scene.user
    sick = scene.run("grid")
    product = make_product(lab, user, settings=CANCELS)
    product.add(sick.job)
    product.sweep_well()
    real = shutil.which("squeue")
    lab.fault(
        user,
        "squeue",
        f'case "$*" in *"{LOOKS_FIRST}"*) touch ~/looking; sleep 600 ;; esac\nexec {real} "$@"',
    )
    sick.play(RL[SOUND:COLLAPSED])
    sweep = product.started("sweep", "--cluster", "lab")
    lab.wait_for((user.home / "looking").exists, 60, what="the look before a cancel")
    stands = evidence(product, sick)
    assert stands.exists()
    product.kill9()
    sweep.communicate(timeout=60)
    assert scene.cancelled() == []
    lab.no_faults(user)

    product.start()
    product.swept_until(scene.cancelled, what="the cancel")
    lab.wait_for_accounting(sick.job, "CANCELLED")
    product.sweep_well(3)
    assert scene.cancelled() == [sick.job]
    assert evidence(product, sick) == stands
    assert product.told(sick.job)[-1] == ("transition", "RUNNING", "CANCELLED")
    assert doubled(product.events()) == []


def test_a_daemon_killed_as_soon_as_the_evidence_is_there(
    scene: Scene, make_product: MakeProduct
) -> None:
    """Whatever it had time for: the job is cancelled in the end, and once."""
    lab, user = scene.lab, scene.user
    sick = scene.run("grid")
    product = make_product(lab, user, settings=CANCELS)
    product.add(sick.job)
    product.sweep_well()
    sick.play(RL[SOUND:COLLAPSED])
    sweep = product.started("sweep", "--cluster", "lab")
    while not list(product.agent_logs.glob("*/*-collapse-49.md")):
        assert product.daemon.running
    product.kill9()
    sweep.communicate(timeout=60)

    product.start()
    product.swept_until(scene.cancelled, what="the cancel")
    lab.wait_for_accounting(sick.job, "CANCELLED")
    product.sweep_well(3)
    assert scene.cancelled() == [sick.job]
    assert evidence(product, sick).exists()
    assert product.told(sick.job)[-1] == ("transition", "RUNNING", "CANCELLED")
    assert doubled(product.events()) == []


def test_a_daemon_killed_before_it_hears_of_the_cancel(
    scene: Scene, make_product: MakeProduct
) -> None:
    """It looks and does not repeat."""
    lab, user = scene.lab, scene.user
    sick = scene.run("grid")
    product = make_product(lab, user, settings=CANCELS)
    product.add(sick.job)
    product.sweep_well()
    lab.fault(user, "scancel", f'{SCANCEL} "$@"; touch ~/cancelled; sleep 600')
    sick.play(RL[SOUND:COLLAPSED])
    sweep = product.started("sweep", "--cluster", "lab")
    lab.wait_for((user.home / "cancelled").exists, 60, what="the cancel")
    product.kill9()
    sweep.communicate(timeout=60)
    lab.no_faults(user)
    lab.wait_for_accounting(sick.job, "CANCELLED")

    product.start()
    product.sweep_well(3)
    assert scene.cancelled() == [sick.job]
    assert evidence(product, sick).exists()
    assert product.told(sick.job)[-1] == ("transition", "RUNNING", "CANCELLED")
