"""Secrets that people put into names, comments and command lines."""

from jobmond.analysis.discreet import discreet_facts, discreet_seen
from jobmond.model.observation import EndedLife, Facts, Seen
from jobmond.model.state import State

SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123"


def test_free_text_is_masked_and_paths_are_not():
    facts = Facts(
        name=f"train token={SECRET}",
        comment="password=hunter2",
        command="mysql -phunter2",
        reason="None",
        workdir=f"/home/alice/{SECRET}",
        log_path=f"/home/alice/{SECRET}/a.out",
    )
    assert discreet_facts(facts) == Facts(
        name="train token=****",
        comment="password=****",
        command="mysql -p****",
        reason="None",
        workdir=facts.workdir,
        log_path=facts.log_path,
    )


def test_what_holds_no_secret_is_the_same_object():
    facts = Facts(name="rl__qwen3-8b__seqnorm_r7", command="/home/alice/run.sh --lr 1e-5")
    assert discreet_facts(facts) is facts
    seen = Seen(State.RUNNING, "RUNNING", "1", facts, "squeue")
    assert discreet_seen(seen) is seen


def test_earlier_lives_too():
    bad = Facts(name=SECRET)
    ended = EndedLife("1", State.NODE_FAIL, "NODE_FAIL", bad)
    seen = discreet_seen(Seen(State.RUNNING, "RUNNING", "2", Facts(), "squeue", (ended,)))
    assert seen.previous[0].facts.name == "hf_****"
