"""What is kept of looks at trials, engines and traces."""

import re
from dataclasses import replace

import pytest

from jobmond.analysis.places import has_tree, tree_places
from jobmond.analysis.worked import InfraLines, worked
from jobmond.model.observation import (
    Absent,
    Facts,
    LogTail,
    NotApplicable,
    Read,
    Unavailable,
)
from jobmond.model.state import Bucket, State
from jobmond.model.trials import TreeNews, Trial, Trials, Work
from tests.unit.builders import NOW, at, job

RECENT = (Trial("a", 1.0), Trial("b", 0.0), Trial("c"))
STATS = "INFO 10-22 09:4{}:49 [x] Engine 000: x, Running: {} reqs, Waiting: 0 reqs\n"


def evaluation(**changes):
    facts = Facts(name="eval-x", workdir="/w", started_at=at(-600))
    return job(**{"bucket": Bucket.EVAL, "facts": facts, **changes})


def tree(**changes):
    trials = Trials(3, 10, last_result_at=at(-5), recent=RECENT)
    return Read(TreeNews("/w/jobs/x", replace(trials, **changes), {}), NOW)


def log(text):
    return Read(LogTail("/l", len(text), 1, NOW, 0, text.encode()), NOW)


class TestWork:
    def test_what_a_look_leaves(self):
        work, seen = worked(evaluation(), tree(), Absent(), now=NOW)
        assert (work.tree, work.recent_done, work.recent_passed) == ("/w/jobs/x", 3, 1)
        assert (work.trials.recent, work.read_at, work.trend) == ((), NOW, "healthy")
        assert seen.trials.value.recent == RECENT

    def test_a_look_that_failed_leaves_what_was_known_and_says_why(self):
        before, _ = worked(evaluation(), tree(), Absent(), now=NOW)
        after, seen = worked(
            evaluation(work=before), Unavailable("timed out"), Unavailable("x"), now=at(15)
        )
        assert (after.trials, after.error) == (before.trials, "timed out")
        assert seen.trials == Unavailable("timed out")
        again, _ = worked(evaluation(work=after), tree(), Absent(), now=at(30))
        assert again.error is None

    def test_a_job_that_nobody_asked_about(self):
        plain = job(bucket=Bucket.SFT)
        work, seen = worked(plain, NotApplicable(), log("x"), now=NOW)
        assert work is None
        assert seen.exported == NotApplicable()

    def test_exports_add_up_over_looks(self):
        made = job(bucket=Bucket.DATAGEN, work=Work(exported=5))
        for text, rows in (("", 5), ("[traces] Exported 9 rows", 9)):
            work, seen = worked(made, NotApplicable(), log(text), now=NOW)
            assert (work.exported, seen.exported.value) == (rows, rows)

    @pytest.mark.parametrize(
        ("changes", "trend"),
        [
            ({"done": 10}, "all trials done"),
            ({"last_result_at": at(-45)}, "last trial ended 45 min ago"),
            ({"chunks_total": 20, "jobs_running": 2}, "2 chunks running"),
            ({"chunks_total": 20, "jobs_running": 1}, "1 chunk running"),
            ({"done": 0, "running": 4, "last_result_at": None}, "4 trials begun, none ended"),
        ],
    )
    def test_the_trend(self, changes, trend):
        assert worked(evaluation(), tree(**changes), Absent(), now=NOW)[0].trend == trend

    def test_no_trend_of_what_is_over(self):
        over = evaluation(state=State.COMPLETED)
        assert worked(over, tree(), Absent(), now=NOW)[0].trend is None


class TestInfra:
    def infra(self, text, reading=None, lines=None, **changes):
        work, _ = worked(
            evaluation(**changes), reading or tree(), log(text), now=NOW, lines=lines or LINES
        )
        return work.infra

    def test_the_last_line_decides(self):
        assert self.infra("tunnel up\n")["tunnel"] is True
        assert self.infra("tunnel up\ntunnel lost\n")["tunnel"] is False
        assert self.infra("tunnel lost\ntunnel up\n")["tunnel"] is True
        assert self.infra("")["tunnel"] is None
        assert self.infra("base https://x.example/v1\n")["api_base"] is True

    def test_checks_without_lines_are_left_out(self):
        assert set(self.infra("", lines=InfraLines())) == {"engine", "trials"}

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("", None),
            (STATS.format(0, 3), True),
            ('"POST /v1/chat/completions HTTP/1.1" 200 OK', True),
            ('"POST /v1/chat/completions HTTP/1.1" 503 No', False),
            (STATS.format(0, 3) + STATS.format(1, 0).replace("09:41", "09:51"), False),
        ],
    )
    def test_the_engine(self, text, wanted):
        assert self.infra(text)["engine"] is wanted

    @pytest.mark.parametrize(
        ("reading", "wanted"),
        [
            (tree(), True),
            (tree(last_result_at=at(-61)), False),
            (tree(done=10, last_result_at=at(-61)), True),
            (tree(done=0, last_result_at=None), False),
            (Unavailable("x"), None),
        ],
    )
    def test_trials(self, reading, wanted):
        assert self.infra("", reading)["trials"] is wanted

    def test_trials_that_have_just_begun(self):
        facts = Facts(started_at=at(-10))
        reading = tree(done=0, last_result_at=None)
        assert self.infra("", reading, facts=facts)["trials"] is None


LINES = InfraLines(
    {"tunnel": [re.compile("tunnel up")], "api_base": [re.compile("base https://")]},
    {"tunnel": [re.compile("tunnel lost")]},
)


class TestPlaces:
    def test_who_has_a_tree(self):
        assert has_tree(evaluation())
        assert has_tree(job(bucket=Bucket.DATAGEN))
        assert has_tree(job(bucket=Bucket.RL, labels=frozenset({"agentic"})))
        assert not has_tree(job(bucket=Bucket.RL))
        assert not has_tree(job(bucket=Bucket.SFT))
        assert has_tree(job(bucket=Bucket.OTHER, labels=frozenset({"tree=/x"})))

    def test_a_label_is_the_only_place(self):
        named = evaluation(labels=frozenset({"tree=/scratch/x"}))
        assert tree_places(named, ("/more",)) == ("/scratch/x",)
        assert tree_places(evaluation(labels=frozenset({"tree=jobs/x"})), ()) == ("/w/jobs/x",)

    def test_by_name_below_the_work_directory_and_others(self):
        places = tree_places(evaluation(run="x"), ("/more",))
        assert places[:6] == (
            "/more/eval-x/eval-x/trace_jobs",
            "/more/eval-x/trace_jobs",
            "/more/experiments/eval-x/eval-x/trace_jobs",
            "/more/trace_jobs/eval-x",
            "/more/jobs/eval-x",
            "/more/eval-x",
        )
        assert "/w/jobs/x" in places
        assert len(places) == 24

    def test_where_it_was_found_comes_first(self):
        known = evaluation(work=Work(tree="/there"))
        assert tree_places(known, ())[0] == "/there"

    def test_names_that_are_no_names(self):
        facts = Facts(name="../../etc", workdir="/w")
        assert tree_places(evaluation(facts=facts, run=".."), ()) == ()
        assert tree_places(evaluation(facts=Facts(name="x\ny", workdir="/w"), run="z"), ()) == (
            "/w/z/z/trace_jobs",
            "/w/z/trace_jobs",
            "/w/experiments/z/z/trace_jobs",
            "/w/trace_jobs/z",
            "/w/jobs/z",
            "/w/z",
        )
