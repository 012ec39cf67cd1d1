"""Logins: what needs a person is not tried again, and one connection is enough."""

from __future__ import annotations

import pytest

from tests.live.scene import RECOVERY, SWEEPS, TROUBLE, MakeScene

pytestmark = pytest.mark.live


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
    told = product.cluster_told()
    # A tick may have met the restart of sshd itself.
    assert told in (
        [("cluster", "ok", "needs-login")],
        [TROUBLE, ("cluster", "unreachable", "needs-login")],
    )
    event = [one for one in product.events() if one.type == "cluster"][-1]
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


@pytest.mark.parametrize("sessions", [2, 1])
def test_few_sessions_a_connection_are_enough(make_scene: MakeScene, sessions: int) -> None:
    scene = make_scene(sweep_budget="120s")
    lab, product = scene.lab, scene.product
    lab.restart_sshd(max_sessions=sessions)
    try:
        product.swept_until(lambda: product.cluster()["status"] == "ok", what="a new connection")
        told = product.cluster_told()
        for _ in range(SWEEPS):
            reading = [product.started("logs", scene.running, heard=True) for _ in range(6)]
            product.sweep_well()
            said = [one.communicate(timeout=60)[1] for one in reading]
            assert said == [b""] * 6
            assert [one.returncode for one in reading] == [0] * 6
            scene.assert_unmoved()
        scene.end_one()
        scene.assert_truth_told_once()
        assert product.cluster_told() == told
        assert told in ([], [TROUBLE, RECOVERY])
    finally:
        lab.restart_sshd(max_sessions=10)
