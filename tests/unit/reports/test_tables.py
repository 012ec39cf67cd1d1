"""The tables of the buckets that train, from job objects."""

from dataclasses import replace
from pathlib import Path

import pytest

from jobmond.analysis.figures import figure
from jobmond.model.state import Bucket, State
from jobmond.reports import rl, sft
from jobmond.reports.document import job_object
from jobmond.reports.figures import progress
from jobmond.reports.status import status_text

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def trained(make_job, now):
    """A job object with stored numbers."""

    def make(run="<run>", bucket=Bucket.RL, **changes):
        shown = job_object(make_job(run=run, bucket=bucket), now)
        return {**shown, **changes}

    return make


@pytest.fixture
def arms(trained):
    return [
        trained(
            "<run> (shaped)",
            step=15,
            max_step=80,
            metrics={"reward": 0.619, "policy_loss": -0.004, "grad_norm": 0.006},
            trend="Checkpoint saved. Slight dip from 0.652",
        ),
        trained(
            "<run> (base)",
            step=26,
            max_step=80,
            metrics={"reward": 0.451, "policy_loss": -0.093, "grad_norm": 0.021},
            trend="Stable, gradients strong",
        ),
    ]


def text(lines):
    return "".join(f"{line}\n" for line in lines).encode()


def test_the_brief_rl_table_is_the_known_one_byte_for_byte(arms, view):
    lines = rl.lines(arms, replace(view, brief=True))
    assert text(lines) == (GOLDEN / "rl_table.txt").read_bytes()


def test_the_brief_sft_table_is_the_known_one_byte_for_byte(trained, view):
    job = trained(
        "<run> cold-start 2ep",
        Bucket.SFT,
        step=320,
        max_step=916,
        metrics={"loss": 1.21, "grad_norm": 0.84},
        trend="Loss descending; healthy",
    )
    lines = sft.lines([job], replace(view, brief=True))
    assert text(lines) == (GOLDEN / "sft_table.txt").read_bytes()


def test_jobs_without_metrics_have_a_table_of_their_own(arms, trained, view):
    document = {
        "daemon": {"running": True, "host": "login7"},
        "clusters": [],
        "summary": {"line": "x"},
        "jobs": [*arms, trained("fresh", ref="vega/9")],
    }
    lines = status_text(document, view)
    titles = [lines[i + 1] for i, line in enumerate(lines) if not line]
    assert titles == ["RL", "RL, no metrics yet"]
    assert lines[-2].startswith("│ vega/9 │ —    │ RUNNING │")


@pytest.mark.parametrize(
    ("value", "decimals", "shown"),
    [
        (0.619, 3, "0.619"),
        (-0.004, 4, "-0.0040"),
        (0, 3, "0.000"),
        (-0.0, 3, "0.000"),
        (0.0004, 3, "4.0e-04"),
        (-0.00001234, 4, "-1.2e-05"),
        (1234567.0, 2, "1.2e+06"),
        (999999.0, 2, "999999.00"),
        ("nan", 3, "nan"),
        (float("nan"), 3, "nan"),
        (float("inf"), 3, "inf"),
        (float("-inf"), 3, "-inf"),
    ],
)
def test_a_figure_never_becomes_another_number(value, decimals, shown):
    assert figure(value, decimals) == shown


def test_progress():
    assert progress(15, 80) == "15/80"
    assert progress(0, 80) == "0/80"
    assert progress(15, None) == "15"
    assert progress(None, 80) == "—/80"
    assert progress(None, None) is None


def test_an_end_comes_before_the_trend(trained, view):
    job = trained(
        state=State.FAILED.value,
        native_state="FAILED",
        ended_at="2026-11-29T11:00:00Z",
        note="needs action: out of memory",
        step=3,
        trend="Stable",
    )
    cell = rl.lines([job], view)[3].split("│")[-2].strip()
    assert cell == "FAILED 1h00m ago: needs action: out of memory"
