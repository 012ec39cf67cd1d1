"""What stays as it is while something breaks between jobmond and the jobs it watches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.live.lab import Lab, Submission, User
from tests.live.product import MakeProduct, Product, doubled

# What hangs must be given up soon: three sweeps of each fault are waited for.
HASTY: dict[str, Any] = {
    "connect_timeout": "3s",
    "keepalive": "2s",
    "sweep_budget": "15s",
}
GATED = "until [ -e ~/gate ]; do sleep 0.2; done; exit 3"
SWEEPS = 3
TROUBLE = ("cluster", "ok", "unreachable")
RECOVERY = ("cluster", "unreachable", "ok")


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
        assert self.product.jobs()[self.ending]["stale"] is True
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


def set_scene(
    lab: Lab,
    make_product: MakeProduct,
    *,
    settings: dict[str, Any] | None = None,
    **cluster: Any,
) -> Scene:
    """A user with the three jobs, and a jobmond that has seen them.

    `settings` and `cluster` are those of `Product`; the latter has short timeouts to begin with.
    """
    user = lab.add_user()
    jobs = lab.sbatch_many(
        user,
        [
            Submission("echo begun; sleep 600"),
            Submission("true", ("--begin=now+1hour",)),
            Submission(GATED),
        ],
    )
    lab.wait_for_state(jobs[0], "RUNNING")
    lab.wait_for_state(jobs[2], "RUNNING")
    product = make_product(lab, user, settings=settings, cluster=HASTY | cluster)
    product.add(*jobs)
    product.sweep_well()
    scene = Scene(lab, user, product, *jobs)
    scene.assert_unmoved()
    return scene
