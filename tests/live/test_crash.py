"""A daemon that is killed at any moment loses nothing and tells nothing twice."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

import pytest

from tests.live.lab import Lab, Submission, User
from tests.live.product import MakeProduct, Product, doubled, ref

pytestmark = pytest.mark.live

ROUNDS = 6
A_ROUND = 4  # jobs that end in each
LATEST_S = 0.5  # a sweep on loopback is about over then
GATE = "until [ -e ~/gate-{} ]; do sleep 0.1; done; exit {}"
ENDS = {0: "COMPLETED", 3: "FAILED"}


@pytest.fixture
def tidy(lab: Lab, user: User) -> Iterator[None]:
    yield
    lab.scancel("-u", user.name)


def let_pass(lab: Lab, seconds: float) -> None:
    until = time.monotonic() + seconds
    lab.wait_for(lambda: time.monotonic() >= until, seconds + 60)


@pytest.mark.timeout(400)
def test_killed_at_random_moments_of_a_sweep(
    lab: Lab, user: User, tidy: None, make_product: MakeProduct
) -> None:
    seed = int.from_bytes(os.urandom(4))
    print(f"seed {seed}")  # shown where the test fails
    moments = random.Random(seed)
    codes = [(round_, 3 * (n % 2)) for round_ in range(ROUNDS) for n in range(A_ROUND)]
    jobs = lab.sbatch_many(user, [Submission(GATE.format(*one)) for one in codes])
    ends = {job: ENDS[code] for job, (_, code) in zip(jobs, codes, strict=True)}
    for job in jobs:
        lab.wait_for_state(job, "RUNNING")
    product = make_product(lab, user)
    product.add(*jobs)
    product.sweep_well()
    for round_ in range(ROUNDS):
        (user.home / f"gate-{round_}").touch()
        ending = jobs[round_ * A_ROUND : (round_ + 1) * A_ROUND]
        for job in ending:
            lab.wait_for_accounting(job, ends[job])
        # Half of the kills meet the sweep that was asked for, half the one of a start.
        asked = lab.counts(user).squeue
        sweep = product.started("sweep", "--cluster", "lab")
        lab.wait_for(lambda asked=asked: lab.counts(user).squeue > asked, 60, what="a sweep")
        let_pass(lab, moments.uniform(0, LATEST_S))
        product.kill9()
        told = sum(bool(product.told(job)) for job in ending)
        print(f"round {round_}: {told} of {len(ending)} ends were told before the kill")
        sweep.wait(60)
        product.daemon.start()
        if round_ % 2:
            let_pass(lab, moments.uniform(0.5, 2.5))
            product.kill9()
        product.start()
    product.swept_until(lambda: product.states() == ends, what="every end")
    product.sweep_well(4)

    assert {job: product.told(job) for job in jobs} == {
        job: [("transition", "RUNNING", end)] for job, end in ends.items()
    }
    assert doubled(product.events()) == []
    assert {one.ref for one in product.events()} == {ref(job) for job in jobs}
    assert_entries_stand(product, [job for job in jobs if ends[job] == "FAILED"])


def assert_entries_stand(product: Product, failed: list[str]) -> None:
    """One whole entry a failed job, under the path that was told."""
    told = {product.events_of(job)[-1].whole["agent_log"] for job in failed}
    assert {str(path) for path in product.entries()} == told
    assert len(told) == len(failed)
    for path in product.entries():
        text = path.read_text()
        assert text.startswith("---\n")
        assert text.endswith("\n")
