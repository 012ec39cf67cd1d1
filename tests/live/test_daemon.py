"""The daemon's manners: idle without work, answering while it waits, finishing what it began."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from tests.live.lab import Lab, Submission, User
from tests.live.options import LabOptions
from tests.live.product import MakeProduct, Product

pytestmark = pytest.mark.live

MakeLab = Callable[[LabOptions], Lab]
SMALL = LabOptions(nodes=1, users=1, accounting=False)
GATED = "until [ -e ~/go ]; do sleep 0.2; done; exit 3"


def let_pass(lab: Lab, seconds: float) -> None:
    until = time.monotonic() + seconds
    lab.wait_for(lambda: time.monotonic() >= until, seconds + 60)


def test_it_sleeps_until_the_first_job_and_wakes_by_itself(
    lab: Lab, user: User, make_product: MakeProduct
) -> None:
    product = make_product(lab, user, settings={"poll_interval": "1s"})
    let_pass(lab, 4)
    assert lab.logins(user) == 0
    assert lab.counts(user).commands == {}
    assert product.status()["daemon"]["next_sweep_at"] is None

    job = lab.sbatch(user, GATED)
    product.add(job)
    lab.wait_for(lambda: product.states().get(job) == "RUNNING", 60, what="RUNNING")
    (user.home / "go").touch()
    lab.wait_for(lambda: product.states()[job] == "FAILED", 60, what="FAILED, without being asked")
    assert product.told(job)[-1] == ("transition", "RUNNING", "FAILED")

    # The cause is looked for in a few sweeps more; then there is nothing to watch again.
    lab.wait_for(
        lambda: product.status()["daemon"]["next_sweep_at"] is None, 60, what="sleep again"
    )
    before = lab.counts(user)
    let_pass(lab, 3)
    assert lab.counts(user) == before
    assert lab.logins(user) == 1


def test_what_nobody_added_is_found_where_that_is_wanted(
    lab: Lab, user: User, make_product: MakeProduct
) -> None:
    other = lab.add_user()
    make_product(lab, user)
    product = make_product(lab, user, settings={"poll_interval": "1s"}, cluster={"discover": True})
    job, stranger = lab.sbatch(user, "exit 3"), lab.sbatch(other, "true")
    lab.wait_for(lambda: product.states().get(job) == "FAILED", 60, what="the found job")
    assert stranger not in product.states()
    row = product.jobs()[job]
    assert (row["owner"], row["user"], row["tracked"]) == (None, user.name, False)
    (event,) = product.events_of(job)
    assert event.after == "FAILED"


def test_what_nobody_registered_is_listed_and_tracked_when_asked(
    lab: Lab, user: User, make_product: MakeProduct
) -> None:
    other = lab.add_user()
    running, waiting, known = lab.sbatch_many(
        user,
        [
            Submission(GATED, ("--job-name=run me",)),
            Submission("true", ("--hold",)),
            Submission("sleep 600"),
        ],
    )
    stranger = lab.sbatch(other, "sleep 600")
    for job in (running, known, stranger):
        lab.wait_for_state(job, "RUNNING")
    product = make_product(lab, user)
    product.add(known)
    product.sweep_well()

    def found() -> dict[str, str]:
        rows = json.loads(product.ctl("discover", "--json").checked().out)["jobs"]
        return {row["ref"]: row["state"] for row in rows}

    assert found() == {f"lab/{running}": "RUNNING", f"lab/{waiting}": "PENDING"}
    listed = product.ctl("discover").checked().out
    assert "run me" in listed
    assert f"lab/{stranger} " not in listed
    assert product.states() == {known: "RUNNING"}

    product.ctl("discover", "--track").checked()
    product.sweep_well()
    assert product.states() == {known: "RUNNING", running: "RUNNING", waiting: "PENDING"}
    assert {row["tracked"] for row in product.jobs().values()} == {True}
    assert {row["owner"] for row in product.jobs().values()} == {"root"}
    assert found() == {}
    assert product.ctl("discover", "--track").checked().out.startswith("No jobs")

    (user.home / "go").touch()
    lab.wait_for_accounting(running, "FAILED")
    product.swept_until(lambda: product.states()[running] == "FAILED", what="its end")
    assert product.told(running)[-1] == ("transition", "RUNNING", "FAILED")
    lab.scancel(known, waiting, stranger)


def test_status_answers_while_a_sweep_hangs(make_lab: MakeLab, make_product: MakeProduct) -> None:
    own = make_lab(SMALL)
    job = own.sbatch(own.user, "sleep 600")
    own.wait_for_state(job, "RUNNING")
    product = make_product(own, own.user, cluster={"connect_timeout": "40s", "keepalive": "30s"})
    product.add(job)
    product.sweep_well()
    own.freeze("sshd")
    hanging = product.started("sweep", "--wait", "--cluster", "lab")
    let_pass(own, 1)
    for _ in range(3):
        status = product.status()
        assert status["daemon"]["running"] is True
        assert [row["state"] for row in status["jobs"]] == ["RUNNING"]
    second = own.sbatch(own.user, "sleep 600")
    product.add(second)
    product.ctl("label", job, "+smoke").checked()
    product.ctl("events", "--json").checked()
    assert hanging.poll() is None, "the sweep was over before status was asked"
    own.thaw("sshd")
    assert hanging.wait(120) == 0
    product.swept_until(lambda: product.states().get(second) == "RUNNING", what="the second job")
    assert product.states() == {job: "RUNNING", second: "RUNNING"}


def test_a_slow_cluster_does_not_hold_up_another(
    lab: Lab, user: User, make_lab: MakeLab, make_product: MakeProduct
) -> None:
    own = make_lab(SMALL)
    product = make_product(lab, user, start=False, cluster={"discover": True})
    slow = own.jobmond_cluster_toml(own.user, "slow", discover=True, connect_timeout="40s")
    with product.config.open("a") as config:
        config.write(slow)
    own.freeze("sshd")
    product.start()
    job = lab.sbatch(user, "sleep 600")
    lab.wait_for_state(job, "RUNNING")
    product.sweep_well()
    assert product.states() == {job: "RUNNING"}
    own.thaw("sshd")
    lab.scancel(job)


def test_sigterm_finishes_the_sweep_in_hand(
    lab: Lab, user: User, make_product: MakeProduct
) -> None:
    job = lab.sbatch(user, "exit 3")
    lab.wait_for_accounting(job, "FAILED")
    lab.fault(user, "squeue", 'sleep 2; exec /usr/bin/squeue "$@"')
    product = make_product(lab, user)
    product.add(job)
    lab.wait_for(lambda: lab.counts(user).squeue, 60, what="a sweep that has begun")
    product.stop()
    assert product.told(job) == [("transition", None, "FAILED")]
    assert not product.daemon.running
    lab.no_faults(user)


def test_the_last_report_is_shown_without_a_daemon(
    lab: Lab, user: User, make_product: MakeProduct
) -> None:
    job = lab.sbatch(user, "exit 3")
    lab.wait_for_accounting(job, "FAILED")
    product = make_product(lab, user)
    product.add(job)
    product.sweep_well()
    product.stop()
    answer = product.ctl("status", "--json")
    assert answer.code == 3
    document = json.loads(answer.out)
    assert document["daemon"]["running"] is False
    assert [one["state"] for one in document["jobs"]] == ["FAILED"]
    assert product.ctl("events").code == 3


def test_a_sweep_without_a_daemon_and_a_second_daemon_are_told_apart(
    lab: Lab, user: User, make_product: MakeProduct
) -> None:
    job = lab.sbatch(user, GATED)
    lab.wait_for_state(job, "RUNNING")
    product = make_product(lab, user)
    product.add(job)
    product.sweep_well()
    for word in ("run", "sweep"):
        refused = product.run(product.argv(word))
        assert refused.code == 1
        assert_one_line(refused.err or refused.out)
    product.stop()
    (user.home / "go").touch()
    lab.wait_for_accounting(job, "FAILED")
    alone = product.run(product.argv("sweep"))
    assert alone.code == 0, alone.err
    assert product.told(job) == [("transition", "RUNNING", "FAILED")]
    document = json.loads(product.ctl("status", "--json").out)
    assert [one["state"] for one in document["jobs"]] == ["FAILED"]


def test_an_unknown_job_is_refused_alone(lab: Lab, user: User, make_product: MakeProduct) -> None:
    job = lab.sbatch(user, "sleep 600")
    lab.wait_for_state(job, "RUNNING")
    product = make_product(lab, user)
    answer = product.ctl("add", job, "no-such-thing", "--cluster", "lab")
    assert answer.code != 0
    assert "no-such-thing" in answer.err + answer.out
    product.sweep_well()
    assert product.states() == {job: "RUNNING"}
    lab.scancel(job)


def assert_one_line(text: str) -> None:
    assert len(text.strip().splitlines()) == 1, text
    assert "Traceback" not in text


def test_check_says_that_all_is_well_and_what_is_not(
    lab: Lab, user: User, make_product: MakeProduct
) -> None:
    product: Product = make_product(lab, user, start=False)
    good = product.run(product.argv("check"))
    assert good.code == 0, good.out + good.err
    assert "lab" in good.out
    user.key_file.rename(user.key_file.with_suffix(".away"))
    bad = product.run(product.argv("check"))
    assert bad.code != 0
    assert str(user.key_file) in bad.out + bad.err
    user.key_file.with_suffix(".away").rename(user.key_file)
