"""A person's words, joined with earlier ones."""

import pytest

from jobmond.model.job import Choices, Classified
from jobmond.model.state import Bucket
from jobmond.store.choosing import Place, joined, placed


def test_only_what_is_given_changes():
    old = Choices(name="a", description="d", user="u", last_status="RUNNING", owner_uid=1)
    assert joined(old, Choices()) == old
    assert joined(old, Choices(name="b", last_status="FAILED")) == Choices(
        name="b", description="d", user="u", last_status="FAILED", owner_uid=1
    )


def test_the_first_owner_stays():
    first = Choices(owner="alice", owner_uid=1)
    assert joined(first, Choices(owner="bob", owner_uid=2)).owner_uid == 1
    assert joined(Choices(), first) == first


@pytest.mark.parametrize(
    ("added", "removed", "then_added", "then_removed", "wanted"),
    [
        ("a", "", "", "a", ("", "a")),
        ("", "a", "a", "", ("a", "")),
        ("a", "b", "c", "d", ("ac", "bd")),
    ],
)
def test_the_later_word_about_a_label_wins(added, removed, then_added, then_removed, wanted):
    old = Choices(labels_added=frozenset(added), labels_removed=frozenset(removed))
    new = Choices(labels_added=frozenset(then_added), labels_removed=frozenset(then_removed))
    result = joined(old, new)
    assert (set(result.labels_added), set(result.labels_removed)) == (
        set(wanted[0]),
        set(wanted[1]),
    )


def test_a_place_changes_where_it_was_spoken_of():
    old = Place(Choices(), Bucket.RL, "rl", "cell", frozenset({"x", "smoke"}))
    elsewhere = Classified(Bucket.EVAL, "eval", "else", frozenset())
    assert placed(old, Choices(name="n"), elsewhere) == Place(
        Choices(name="n"), Bucket.RL, "rl", "cell", frozenset({"x", "smoke"})
    )
    assert placed(old, Choices(run="else"), elsewhere).run == "else"
    assert placed(old, Choices(type="t"), elsewhere).type == "eval"
    label = Choices(labels_removed=frozenset({"smoke"}), labels_added=frozenset({"y"}))
    assert placed(old, label, elsewhere).labels == {"x", "y"}
