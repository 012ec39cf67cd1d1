"""Who may do what."""

import os

import pytest

from jobmond.desk.peer import Peer, Rights, user_name
from jobmond.desk.refusals import NotYours
from jobmond.errors import ConfigError
from tests.doubles_store import job

OWNER, ROOT = Peer(1000, 1000, 1), Peer(0, 0, 1)
ALICE, BOB = Peer(1001, 50, 1, frozenset({50})), Peer(1002, 1002, 1, frozenset({50, 60}))
STRANGER = Peer(1003, 1003, 1, frozenset({60}))
ALONE = Rights(daemon_uid=1000)
SHARED = Rights(daemon_uid=1000, socket_gid=50, admin_uids=frozenset({1002, 1003}))


@pytest.mark.parametrize("peer", [OWNER, ROOT])
def test_owner_and_root_do_everything(peer):
    for rights in (ALONE, SHARED):
        assert rights.may_read(peer)
        assert rights.over_all(peer)
        rights.check_change(peer, job())


@pytest.mark.parametrize("peer", [ALICE, BOB, STRANGER])
def test_without_a_group_nobody_else_gets_in(peer):
    assert not ALONE.may_read(peer)
    with pytest.raises(NotYours):
        ALONE.check_read(peer)


def test_an_admin_outside_the_group_is_a_stranger():
    assert not SHARED.may_read(STRANGER)
    assert not SHARED.over_all(STRANGER)


def test_members_read_and_change_their_own():
    hers = job(choices=job().choices.__class__(owner="alice", owner_uid=1001))
    SHARED.check_read(ALICE)
    SHARED.check_change(ALICE, hers)
    with pytest.raises(NotYours, match="leonardo/4711 belongs to alice"):
        SHARED.check_change(ALICE, job())


def test_nobody_owns_what_was_discovered():
    found = job(choices=job().choices.__class__())
    with pytest.raises(NotYours, match="belongs to nobody"):
        SHARED.check_change(ALICE, found)
    SHARED.check_change(BOB, found)


def test_admins_who_are_members_change_all():
    SHARED.check_change(BOB, job())


def test_names_of_the_configuration():
    rights = Rights.of(socket_group="root", admins=["root"])
    assert rights == Rights(os.geteuid(), 0, frozenset({0}))
    with pytest.raises(ConfigError, match="no group 'no-such-group'"):
        Rights.of(socket_group="no-such-group")
    with pytest.raises(ConfigError, match="no user 'no-such-user'"):
        Rights.of(admins=["no-such-user"])


def test_a_uid_without_a_name_is_its_number():
    assert user_name(0) == "root"
    assert user_name(3_999_999_999) == "3999999999"
