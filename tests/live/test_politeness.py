"""What a sweep costs the far side, as the far side counts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.live.counting import Counts
from tests.live.lab import Lab, Submission, User
from tests.live.product import MakeProduct, Product

pytestmark = pytest.mark.live

SCRIPTS = 3  # one for squeue and sacct, one for scontrol, one for the logs
JOB_USER_INFO = "REQUEST_JOB_USER_INFO"


@pytest.fixture
def tidy(lab: Lab, user: User) -> Iterator[None]:
    """Leave nothing of this user's in the shared queue."""
    yield
    lab.scancel("-u", user.name)


def first_sweep(lab: Lab, product: Product, jobs: list[str]) -> tuple[Counts, int]:
    """What the far side saw of the sweep that `add` asks for, and its squeue RPCs."""
    counts, rpcs = lab.counts(product.user), user_questions(lab)
    product.add(*jobs)
    lab.wait_for(lambda: product.cluster()["last_ok_at"], 60, what="the first sweep")
    return lab.counts(product.user) - counts, user_questions(lab) - rpcs


def user_questions(lab: Lab) -> int:
    return lab.rpc_counts().get(JOB_USER_INFO, 0)


def used(lab: Lab, user: User, act: Callable[[], object]) -> Counts:
    """What `user` asked of the far side while `act` went on."""
    before = lab.counts(user)
    act()
    return lab.counts(user) - before


def asked_about(lab: Lab, user: User) -> list[str]:
    """Native ids that scontrol was asked about, in order."""
    calls = [one.arguments for one in lab.calls(user) if one.command == "scontrol"]
    return [word for words in calls for word in words if word.isdigit()]


@pytest.mark.parametrize("many", [1, 50])
def test_running_jobs(
    lab: Lab, user: User, tidy: None, make_product: MakeProduct, many: int
) -> None:
    jobs = lab.sbatch_many(user, [Submission("echo begun; sleep 600")] * many)
    for job in jobs:
        lab.wait_for_state(job, "RUNNING")
    product = make_product(lab, user)
    first, rpcs = first_sweep(lab, product, jobs)
    assert (first.logins, first.squeue, first.sacct, rpcs) == (1, 1, 1, 1)
    assert first.scontrol <= many
    assert first.sessions <= SCRIPTS
    assert first.log_scripts <= 1
    assert product.states() == dict.fromkeys(jobs, "RUNNING")

    rpcs = user_questions(lab)
    second = used(lab, user, product.sweep_well)
    assert (second.logins, second.squeue, second.sacct, second.scontrol) == (0, 1, 1, 0)
    assert second.sessions <= SCRIPTS - 1
    assert second.log_scripts == 1
    rows = product.jobs()
    assert [job for job in jobs if rows[job]["log"]["status"] != "read"] == []
    assert user_questions(lab) - rpcs == 1
    assert second.commands.keys() == {"squeue", "sacct"}


def test_what_changed_is_asked_about_and_nothing_else(
    lab: Lab, user: User, tidy: None, make_product: MakeProduct
) -> None:
    jobs = lab.sbatch_many(
        user, [Submission("until [ -e ~/go ]; do sleep 0.2; done; exit 3")] * 2
    ) + lab.sbatch_many(user, [Submission("sleep 600")] * 6)
    for job in jobs:
        lab.wait_for_state(job, "RUNNING")
    product = make_product(lab, user)
    first_sweep(lab, product, jobs)
    product.sweep_well()
    (user.home / "go").touch()
    for job in jobs[:2]:
        lab.wait_for_accounting(job, "FAILED")
        lab.wait_for_state(job, "FAILED")
    before = len(asked_about(lab, user))
    change = used(lab, user, product.sweep_well)
    assert (change.logins, change.squeue, change.sacct) == (0, 1, 1)
    assert set(asked_about(lab, user)[before:]) <= set(jobs[:2])
    assert {product.states()[job] for job in jobs[:2]} == {"FAILED"}
    after = used(lab, user, lambda: product.sweep_well(2))
    assert after.scontrol <= 2 * len(jobs[:2])
    quiet = used(lab, user, lambda: product.sweep_well(2))
    assert quiet.scontrol == 0


def test_many_new_jobs_are_asked_about_in_turn(
    lab: Lab, user: User, tidy: None, make_product: MakeProduct
) -> None:
    jobs = lab.sbatch_many(user, [Submission("true", ("--hold",))] * 120)
    product = make_product(lab, user)
    first_sweep(lab, product, jobs)
    first = len(asked_about(lab, user))
    later = [used(lab, user, product.sweep_well).scontrol for _ in range(3)]
    assert [first, *later] == [50, 50, 20, 0]
    assert sorted(asked_about(lab, user)) == sorted(jobs)


def test_a_thousand_jobs(lab: Lab, user: User, tidy: None, make_product: MakeProduct) -> None:
    waiting = lab.sbatch_many(user, [Submission("true", ("--hold",))] * 950)
    running = lab.sbatch_many(user, [Submission("echo begun; sleep 900")] * 50)
    for job in running:
        lab.wait_for_state(job, "RUNNING")
    product = make_product(lab, user)
    product.add(*waiting, *running)
    product.sweep_well()
    product.stop()

    counts, rpcs, told = lab.counts(user), user_questions(lab), len(asked_about(lab, user))
    swept = product.last_ok_at()
    product.start()
    lab.wait_for(lambda: product.last_ok_at() != swept, 60, what="the first sweep over all")
    first = lab.counts(user) - counts
    assert (first.logins, first.squeue, first.sacct) == (1, 1, 1)
    assert user_questions(lab) - rpcs == 1
    assert 0 < first.scontrol <= 50
    assert first.sessions <= SCRIPTS
    assert first.log_scripts <= 1
    states = dict.fromkeys(running, "RUNNING") | dict.fromkeys(waiting, "PENDING")
    assert product.states() == states

    for _ in range(2):
        rpcs = user_questions(lab)
        one = used(lab, user, product.sweep_well)
        assert (one.logins, one.squeue, one.sacct) == (0, 1, 1)
        assert 0 < one.scontrol <= 50
        assert one.sessions <= SCRIPTS
        assert one.log_scripts == 1
        assert user_questions(lab) - rpcs == 1
    # The newest come first, none comes twice, and every sweep goes on with the next fifty.
    asked = asked_about(lab, user)
    assert len(asked) - told == 150
    assert len(set(asked)) == len(asked)
    assert set(running) <= set(asked)
    rows = product.jobs()
    assert [job for job in running if rows[job]["log"]["status"] != "read"] == []
