"""What a person owes, by its edge."""

from dataclasses import replace
from typing import ClassVar

import pytest

from jobmond.analysis.owed_news import followup_news
from jobmond.analysis.owing import ended, fresh, opened, owed_paths, procedure, verified
from jobmond.analysis.settle import Move
from jobmond.model.observation import Absent, Read, Unavailable
from jobmond.model.outcome import Followup, Signal, Transition
from jobmond.model.state import Bucket, Severity, State
from jobmond.model.trials import Remains, Work
from tests.unit.builders import NOW, job

AGENTIC = frozenset({"agentic"})


def over(state=State.COMPLETED, **changes):
    made = job(**{"bucket": Bucket.EVAL, "state": state, **changes})
    return Move(job(), made, Transition(NOW, State.RUNNING, state, state.value)), made


def owed(*, signals=(), move=None, **changes):
    step, made = over(**changes)
    return opened(replace(step, **(move or {})), made, signals, now=NOW)


class TestCleanups:
    @pytest.mark.parametrize(
        ("bucket", "labels", "wanted"),
        [
            (Bucket.RL, AGENTIC, "rl-agentic-job-cleanup"),
            (Bucket.RL, frozenset({"standard"}), "rl-standard-job-cleanup"),
            (Bucket.RL, frozenset(), "rl-standard-job-cleanup"),
            (Bucket.SFT, frozenset(), "sft-job-cleanup"),
            (Bucket.DATAGEN, frozenset(), "datagen-job-cleanup"),
            (Bucket.EVAL, frozenset(), "eval-agentic-cleanup"),
            (Bucket.OTHER, frozenset(), None),
        ],
    )
    def test_by_bucket_and_flavour(self, bucket, labels, wanted):
        assert procedure(job(bucket=bucket, labels=labels)) == wanted
        found = owed(bucket=bucket, labels=labels)
        assert [one.kind for one in found] == (["cleanup"] if wanted else [])
        assert all(one.title.startswith(str(wanted)) for one in found)

    def test_it_names_the_tree(self):
        (one,) = owed(work=Work(tree="/scratch/x"))
        assert one.title == "eval-agentic-cleanup: remove the trial tree /scratch/x"
        assert one.evidence == {
            "path": "/scratch/x",
            "job": {"name": "train", "bucket": "eval", "run": "train", "birth": "100"},
        }
        (one,) = owed(bucket=Bucket.RL, labels=AGENTIC)
        assert one.title == "rl-agentic-job-cleanup: no trial tree is known"
        said = followup_news(one, at=NOW).payload["title"]
        assert said == f"{one.ref} (train): owed: rl-agentic-job-cleanup: no trial tree is known"

    @pytest.mark.parametrize("state", [State.FAILED, State.TIMEOUT, State.RUNNING, State.LOST])
    def test_only_at_completion(self, state):
        assert owed(state=state) == ()

    @pytest.mark.parametrize(
        "move", [{"transition": None}, {"silent": True}, {"restarted_as": "lab/4712"}]
    )
    def test_only_by_the_edge(self, move):
        assert owed(move=move) == ()

    def test_a_doubtful_completion_is_to_be_looked_at_first(self):
        doubt = Signal("completion-mismatch", Severity.WATCH, "only 9/10 trials done", {})
        (one,) = owed(signals=(doubt,), **{"bucket": Bucket.EVAL})
        assert "look first" not in one.title
        step, made = over(signals=(doubt,))
        (one,) = opened(step, made, (doubt,), now=NOW)
        assert one.title == "look first (only 9/10 trials done), then eval-agentic-cleanup"
        assert one.evidence["held"] == "only 9/10 trials done"


class TestOthers:
    @pytest.mark.parametrize(
        ("rule", "kind"), [("stranded-traces", "consolidate"), ("zombie", "zombie")]
    )
    def test_signals_that_leave_something_to_do(self, rule, kind):
        signal = Signal(rule, Severity.ALARM, "what it is", {})
        running = {"state": State.RUNNING, "move": {"transition": None}}
        (one,) = owed(signals=(signal,), **running)
        assert (one.kind, one.ref, one.title) == (kind, "lab/4711", "what it is")
        assert owed(signals=(), **running) == ()

    def test_a_zombie_that_is_over_need_not_be_cancelled(self):
        zombie = Followup(4, "zombie", "lab/4711", "x", NOW)
        other = Followup(5, "zombie", "lab/1", "x", NOW)
        (one,) = ended(job(state=State.CANCELLED), [zombie, other], now=NOW)
        assert (one.id, one.state, one.closed_by) == (4, "closed", "jobmond")
        assert ended(job(), [zombie], now=NOW) == ()

    def test_what_is_open_already_is_not_opened_again(self):
        zombie = Followup(4, "zombie", "lab/4711", "x", NOW)
        assert fresh([replace(zombie, id=0)], [zombie]) == []
        assert fresh([zombie], [replace(zombie, ref="lab/1")]) == [zombie]


class TestVerifying:
    SEEN: ClassVar = Followup(3, "cleanup", "lab/1", "t", NOW, evidence={
        "path": "/s/x", "mount": "/s", "inodes_free_before": 100})  # fmt: skip
    FRESH: ClassVar = Followup(3, "cleanup", "lab/1", "t", NOW, evidence={"path": "/s/x"})

    def after(self, one, reading):
        return verified([one], {"/s/x": reading}, now=NOW)

    def test_what_is_there_is_noted_once(self):
        here = Read(Remains(True, 100, "/s"), NOW)
        (noted,), closed = self.after(self.FRESH, here)
        assert (noted.evidence["mount"], noted.evidence["inodes_free_before"]) == ("/s", 100)
        assert closed == ()
        assert self.after(self.SEEN, here) == ((), ())

    def test_what_is_gone_closes_with_the_inodes_before_and_after(self):
        _, (closed,) = self.after(self.SEEN, Read(Remains(False, 900, "/s"), NOW))
        assert (closed.state, closed.closed_by) == ("closed", "jobmond")
        assert closed.note == "the tree is gone; free inodes 100 before, 900 after"

    @pytest.mark.parametrize(
        "reading",
        [
            Unavailable("connection lost"),
            Absent(),
            Read(Remains(False, 900, "/"), NOW),
            Read(Remains(False, 900, None), NOW),
        ],
    )
    def test_no_proof_closes_nothing(self, reading):
        assert self.after(self.SEEN, reading) == ((), ())

    def test_what_was_never_seen_there_is_not_taken_for_removed(self):
        assert self.after(self.FRESH, Read(Remains(False, 900, "/s"), NOW)) == ((), ())

    def test_other_kinds_are_a_persons(self):
        other = replace(self.SEEN, kind="consolidate")
        assert self.after(other, Read(Remains(False, 900, "/s"), NOW)) == ((), ())
        assert owed_paths([other, self.SEEN, self.FRESH]) == ("/s/x",)
