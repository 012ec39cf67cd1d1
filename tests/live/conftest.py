"""Fixtures of the live tests: one shared lab a session, own labs for what breaks things."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.live.lab import Lab
from tests.live.options import LabOptions
from tests.live.product import MakeProduct, Product
from tests.live.requirements import missing
from tests.live.scene import MakeScene, Scene, set_scene
from tests.live.users import User

REQUIRE = "JOBMOND_REQUIRE_LIVE"


LONGEST = "test_states.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the file that waits longest: the other worker has all the rest meanwhile."""
    items.sort(key=lambda item: item.path.name != LONGEST)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a live test where no lab can start; with JOBMOND_REQUIRE_LIVE=1 that is a failure."""
    if item.get_closest_marker("live") is None:
        return
    if why := missing():
        if os.environ.get(REQUIRE) == "1":
            pytest.fail(f"{item.name}: {why} ({REQUIRE}=1)", pytrace=False)
        pytest.skip(f"{item.name}: {why}")


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The lab that all live tests share; leave it whole: every daemon running and answering."""
    with Lab() as shared:
        yield shared


@pytest.fixture
def user(lab: Lab) -> User:
    """A user nobody else has, so that its counts are this test's own."""
    return lab.add_user()


@pytest.fixture
def make_lab() -> Iterator[Callable[[LabOptions], Lab]]:
    """Start labs that belong to one test alone, to break them or to turn other knobs."""
    with ExitStack() as stack:
        yield lambda knobs: stack.enter_context(Lab(knobs))


@pytest.fixture
def make_product() -> Iterator[MakeProduct]:
    """Start jobmonds that end with the test; what they said shows where the test failed."""
    with ExitStack() as stack:

        def make(lab: Lab, user: User, *, start: bool = True, **knobs: Any) -> Product:
            product = Product(lab, user, **knobs)
            stack.callback(product.close)
            if start:
                product.start()
            return product

        yield make


@pytest.fixture(scope="session")
def weak_lab() -> Iterator[Lab]:
    """A lab whose Slurm commands give up early, where tests break one thing after the other."""
    with Lab(LabOptions(nodes=2, users=0)) as lab:
        lab.set_slurm(MessageTimeout=3)
        yield lab


@pytest.fixture
def whole_lab(weak_lab: Lab) -> Iterator[Lab]:
    """The same lab, made whole again after each test."""
    yield weak_lab
    for name in weak_lab.daemon_names:
        if weak_lab.running(name):
            weak_lab.thaw(name)
        weak_lab.start(name)
    weak_lab.trust_host_key()


@pytest.fixture
def make_scene(whole_lab: Lab, make_product: MakeProduct) -> Iterator[MakeScene]:
    """Set scenes, and clear them away after the test."""
    scenes: list[Scene] = []

    def make(**knobs: Any) -> Scene:
        scenes.append(set_scene(whole_lab, make_product, **knobs))
        return scenes[-1]

    yield make
    for scene in scenes:
        whole_lab.run(["scancel", "-u", scene.user.name])
