"""The tables of the buckets that run trials, from job objects."""

from dataclasses import replace
from pathlib import Path

import pytest

from jobmond.model.state import Bucket
from jobmond.reports import datagen, evals
from jobmond.reports.document import job_object, summary_line, tasks_line
from jobmond.reports.status import status_text

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def stored(make_job, now):
    """A job object with stored numbers."""

    def make(run="<run>", bucket=Bucket.EVAL, **changes):
        return {**job_object(make_job(run=run, bucket=bucket), now), **changes}

    return make


@pytest.fixture
def chunked(stored):
    return stored(
        bucket=Bucket.DATAGEN,
        labels=["agentic", "tracker-N"],
        metrics={
            "chunks_done": 18,
            "chunks_total": 20,
            "trials_done": 8612,
            "avg_turns": 5.1,
            "mean_reward": 0.53,
            "exception_fraction": 0.19,
        },
        trend="2 chunks running",
    )


@pytest.fixture
def evaluation(stored):
    return stored(
        model="<model>",
        benchmark="<benchmark>",
        metrics={"trials_done": 142, "trials_total": 300, "pass_rate": 0.21},
        top_exception="AgentTimeoutError",
        infra={"tunnel": True, "engine": True},
        trend="healthy",
    )


def text(lines):
    return "".join(f"{line}\n" for line in lines).encode()


def test_the_datagen_table_is_the_known_one_byte_for_byte(chunked, view):
    lines = datagen.lines([chunked], replace(view, brief=True))
    assert text(lines) == (GOLDEN / "datagen_table.txt").read_bytes()


def test_the_eval_table_is_the_known_one_byte_for_byte(evaluation, view):
    lines = evals.lines([evaluation], replace(view, brief=True))
    assert text(lines) == (GOLDEN / "eval_table.txt").read_bytes()


def cells(lines, row=0):
    first = next(i for i, line in enumerate(lines) if line.startswith("├")) + 1
    return [cell.strip() for cell in lines[first + row].strip("│").split("│")]


def test_what_is_not_known_is_a_dash_and_a_zero_is_a_zero(stored, view):
    bare = stored(bucket=Bucket.DATAGEN, metrics={"trials_done": 0, "exception_fraction": 0.0})
    assert cells(datagen.lines([bare], view))[1:] == ["—", "0", "—", "—", "0%", "—"]
    bare = stored(metrics={"trials_done": 0, "trials_total": 300, "pass_rate": 0.0})
    assert cells(evals.lines([bare], view))[1:] == ["0/300", "0.00", "—", "—"]


@pytest.mark.parametrize(
    ("done", "wanted"), [(None, None), (0, "0"), (999, "999"), (1000, "~1.0k"), (8612, "~8.6k")]
)
def test_trials_in_thousands(done, wanted):
    assert datagen.trials_cell(done) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(None, None), (0, "0%"), (0.001, "<1%"), (0.19, "19%"), (0.225, "22%"), (1.0, "100%")],
)
def test_shares(value, wanted):
    job = {"metrics": {} if value is None else {"x": value}}
    assert datagen.share_cell(job, "x") == wanted


@pytest.mark.parametrize(
    ("labels", "row"),
    [
        (["tracker-42"], "42"),
        (["row=7"], "7"),
        (["tracker_row:#9"], "9"),
        (["agentic"], None),
        (["brow-1"], None),
    ],
)
def test_the_tracker_row_from_labels(labels, row):
    assert datagen.tracker_row(labels) == row


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (None, None),
        ("AgentTimeoutError", "AgentTO"),
        ("DaytonaValidationError", "DaytonaValidation"),
        ("Timeout", "Timeout"),
        ("Error", "Error"),
    ],
)
def test_exceptions_in_short(name, wanted):
    assert evals.short_exception(name) == wanted


def test_every_check_has_its_mark(stored, view):
    infra = {"trials": False, "tunnel": True, "api_base": None, "engine": True}
    job = stored(metrics={"trials_done": 1}, infra=infra, trend="healthy")
    assert cells(evals.lines([job], view))[-1] == "tunnel✓ api_base— engine✓ trials✗ ; healthy"


def test_the_headline_comes_with_the_end(stored, view):
    scores = [{"name": "MMLU-Pro", "value": 42.26}]
    running = stored(scores=scores, trend="healthy")
    assert "42.3%" not in cells(evals.lines([running], view))[-1]
    done = stored(scores=scores, state="COMPLETED", native_state="COMPLETED")
    assert cells(evals.lines([done], view))[-1].startswith("MMLU-Pro: 42.3%. COMPLETED")


def test_evaluations_of_one_group_have_an_aggregate_line(stored, view):
    def one(native_id, state, *scores):
        return stored(native_id=native_id, state=state, native_state=state, scores=[
            {"name": name, "value": value} for name, value in scores])  # fmt: skip

    four = [
        one("65f68ad6c803b542.0", "COMPLETED", ("MMLU-Pro", 42.26)),
        one("65f68ad6c803b542.1", "COMPLETED", ("GSM8K", 67.1)),
        one("65f68ad6c803b542.2", "RUNNING"),
        one("65f68ad6c803b542.3", "PENDING"),
    ]
    wanted = "2 of 4 completed (MMLU-Pro: 42.3%, GSM8K: 67.1%), 1 running, 1 pending"
    assert evals.lines(four, view)[-1] == f"65f68ad6c803b542: {wanted}"
    assert summary_line(four) == wanted
    labelled = [{**job, "native_id": str(i), "run": str(i), "labels": ["group=nightly"]}
                for i, job in enumerate(four)]  # fmt: skip
    assert evals.lines(labelled, view)[-1] == f"nightly: {wanted}"


def test_tasks_of_one_invocation_have_the_same_line(stored):
    tasks = {"total": 4, "by_state": {"COMPLETED": 2, "RUNNING": 1, "PENDING": 1}, "failed": []}
    scores = [{"name": "MMLU-Pro", "value": 42.26}, {"name": "GSM8K", "value": 67.1}]
    assert tasks_line(stored(tasks=tasks, scores=scores)) == (
        "2 of 4 completed (MMLU-Pro: 42.3%, GSM8K: 67.1%), 1 running, 1 pending"
    )
    failed = {"total": 2, "by_state": {"FAILED": 1, "LOST": 1}, "failed": ["x.0"]}
    assert tasks_line(stored(tasks=failed)) == "0 of 2 completed, 2 failed"
    assert tasks_line(stored()) is None


def test_a_finished_evaluation_with_scores_alone_is_in_the_table(stored, view):
    done = stored(state="COMPLETED", native_state="COMPLETED",
                  scores=[{"name": "GSM8K", "value": 67.1}])  # fmt: skip
    report = {"daemon": {"running": True, "host": "h"}, "clusters": [], "summary": {"line": ""},
              "jobs": [done]}  # fmt: skip
    lines = status_text(report, view)
    assert "Eval" in lines
    assert not [line for line in lines if "no metrics yet" in line]


@pytest.mark.parametrize("width", [80, 60])
def test_narrow_tables_cut_no_number(chunked, evaluation, view, width):
    narrow = replace(view, fit=width, brief=True)
    shown = datagen.lines([chunked], narrow)
    assert cells(shown)[1:6] == ["18/20 done", "~8.6k", "5.1", "0.53", "19%"]
    shown = evals.lines([evaluation], narrow)
    assert cells(shown)[1:3] == ["142/300", "0.21"]
    assert all(len(line) <= width for line in shown)
