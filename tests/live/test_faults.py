"""Whatever stops answering, a job keeps its state until the truth is known.

Every fault lasts three sweeps. Meanwhile one job runs, one waits, and one ends unseen: no state
moves, the cluster's trouble is told once, its end once, and then the one true change once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.live.lab import Lab
from tests.live.scene import RECOVERY, TROUBLE, MakeScene

pytestmark = pytest.mark.live


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
