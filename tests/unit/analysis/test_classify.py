"""Where a job belongs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.classify import classified, run_name
from jobmond.model.job import Choices, ClassifyRule
from jobmond.model.observation import Facts
from jobmond.model.state import Bucket

RL = ClassifyRule(
    name=r"^rl__(?P<cell>.*)__seqnorm",
    bucket=Bucket.RL,
    labels=("agentic", "seqnorm"),
    run=r"\g<cell>",
    type="grpo",
)


@pytest.mark.parametrize(
    ("name", "bucket"),
    [
        ("rl__x", Bucket.RL),
        ("sft__x", Bucket.SFT),
        ("datagen__x", Bucket.DATAGEN),
        ("eval-x", Bucket.EVAL),
        ("my-rl__x", Bucket.OTHER),
        ("", Bucket.OTHER),
    ],
)
def test_known_prefixes(name, bucket):
    assert classified(Choices(), Facts(name=name), "1", ()).bucket is bucket


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("cell_r7", "cell"),
        ("cell-restart2", "cell"),
        ("cell_restart", "cell"),
        ("cell_2", "cell"),
        ("cell", "cell"),
        ("cell_r", "cell_r"),
        ("step_100", "step_100"),
        ("_2", "_2"),
    ],
)
def test_restart_copies_share_a_run(name, run):
    assert run_name(name) == run


def test_a_rule_gives_bucket_labels_run_and_type():
    place = classified(Choices(), Facts(name="rl__cell9__seqnorm_r3"), "1", (RL,))
    assert (place.bucket, place.run, place.type) == (Bucket.RL, "cell9", "grpo")
    assert place.labels == {"agentic", "seqnorm"}


def test_all_conditions_of_a_rule_must_be_met():
    rule = ClassifyRule(name="^x", partition="gpu", bucket=Bucket.EVAL)
    assert classified(Choices(), Facts(name="x", partition="cpu"), "1", (rule,)).bucket is (
        Bucket.OTHER
    )
    assert classified(Choices(), Facts(name="x", partition="gpu"), "1", (rule,)).bucket is (
        Bucket.EVAL
    )


def test_a_rule_without_a_name_and_a_source_that_says_nothing():
    rule = ClassifyRule(account="a", bucket=Bucket.SFT, run="fixed")
    assert classified(Choices(), Facts(name="n"), "1", (rule,)).bucket is Bucket.OTHER
    place = classified(Choices(), Facts(name="n", account="a"), "1", (rule,))
    assert (place.bucket, place.run) == (Bucket.SFT, "fixed")


def test_the_first_matching_rule_wins():
    second = ClassifyRule(name="rl__", bucket=Bucket.EVAL)
    assert classified(Choices(), Facts(name="rl__a__seqnorm"), "1", (RL, second)).bucket is (
        Bucket.RL
    )


def test_what_a_person_chose_wins_over_every_rule():
    choices = Choices(
        bucket=Bucket.SFT,
        run="mine",
        type="probe",
        labels_added=frozenset({"no-kill"}),
        labels_removed=frozenset({"seqnorm"}),
    )
    place = classified(choices, Facts(name="rl__a__seqnorm"), "1", (RL,))
    assert (place.bucket, place.run, place.type) == (Bucket.SFT, "mine", "probe")
    assert place.labels == {"agentic", "no-kill"}


def test_a_job_without_a_name_is_its_id():
    assert classified(Choices(), Facts(), "4711", ()).run == "4711"


@given(st.text())
def test_any_name_has_a_run(name):
    assert run_name(name) or not name
