"""The tables of the buckets that train, from job objects."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from jobmond.analysis.figures import figure
from jobmond.analysis.followed import with_trend
from jobmond.model.state import Bucket, State
from jobmond.model.training import Training
from jobmond.reports import rl, sft
from jobmond.reports.document import job_object, sft_grid
from jobmond.reports.figures import progress
from jobmond.reports.status import status_text
from jobmond.reports.view import View
from jobmond.store import codec

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
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


FULL = {"entropy": 0.412, "log_ratio_abs_mean": 0.0081}


def test_the_full_rl_table_adds_entropy_and_log_ratio(trained, view):
    shaped = trained(
        step=15,
        max_step=80,
        shaping="shaped",
        metrics={"reward": 0.619, "policy_loss": -0.004, "grad_norm": 0.006, **FULL},
        trend="Checkpoint saved. Slight dip from 0.652",
    )
    base = {
        **shaped,
        "ref": "vega/9",
        "step": 26,
        "shaping": "base",
        "metrics": {
            "reward": 0.451,
            "policy_loss": -0.093,
            "grad_norm": 0,
            "policy/tis/log_ratio_abs_mean": 0.05,
        },
        "trend": "Stable, gradients zero",
    }
    assert text(rl.lines([shaped, base], view)) == (GOLDEN / "rl_table_full.txt").read_bytes()


@pytest.mark.parametrize(("fit", "titles"), [(120, 8), (80, 6), (60, 4)])
def test_where_the_width_forbids_columns_their_numbers_head_the_trend(arms, view, fit, titles):
    arms[0]["metrics"] |= FULL
    lines = rl.lines(arms, replace(view, fit=fit))
    assert len(lines[1].split("│")) - 2 == titles
    if titles < 8:
        assert "entropy 0.412, log-ratio 0.0081. Checkpoint saved." in flat(lines)
        assert "entropy —, log-ratio —. Stable" in flat(lines)


def flat(lines):
    """The last column as one text."""
    return " ".join(line.split("│")[-2].strip() for line in lines if line.startswith("│"))


NUMBERS = st.one_of(
    st.floats(-1e7, 1e7), st.floats(-1e-3, 1e-3), st.sampled_from([0, float("nan"), 1e-5])
)
NAMES = st.text(min_size=1, max_size=40)


@given(
    st.lists(
        st.tuples(NAMES, st.lists(NUMBERS, min_size=5, max_size=5), st.integers(0, 99_999)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([60, 80, 100, 120, 150]),
    st.booleans(),
    st.booleans(),
)
def test_no_width_cuts_a_number_or_a_ref(jobs, fit, brief, ascii_only):
    view = View(now=NOW, tz=UTC, fit=fit, brief=brief, ascii_only=ascii_only)
    keys = ("reward", "policy_loss", "grad_norm", "entropy", "log_ratio_abs_mean")
    shown = [
        {
            "ref": f"leonardo/{number}", "native_id": str(number), "cluster": "leonardo",
            "run": run, "name": run, "state": "RUNNING", "native_state": "RUNNING",
            "step": number, "max_step": 99_999,
            "metrics": dict(zip(keys, values, strict=True)),
            "trend": "Checkpoint saved. Slight dip from 0.652",
        }
        for run, values, number in jobs
    ]  # fmt: skip
    lines = rl.lines(shown, view)
    assert {wcswidth(line) for line in lines} == {wcswidth(lines[0])}
    assert wcswidth(lines[0]) <= fit
    words = [word for line in lines for word in re.split(r"[\s│|]+", line)]
    bare = {word.rstrip(".,") for word in words}
    for job in shown:
        assert f"{job['step']}/99999" in bare
        assert brief or job["ref"] in bare
        for key, decimals in zip(keys[: 3 if brief else 5], (3, 4, 3, 3, 4), strict=False):
            assert figure(job["metrics"][key], decimals) in bare
    assert "0.652" in bare


def test_two_regimes_in_one_table_are_marked(trained, view):
    def arm(run, reward, rollouts):
        return trained(run, step=1, shaping=rollouts, metrics={"reward": reward})

    brief = replace(view, brief=True)
    both = rl.lines([arm("a", 0.61, "shaped"), arm("b", 0.5, "base"), arm("c", 1, None)], brief)
    assert [line.split("│")[1].strip() for line in both[3:6]] == ["a (shaped)", "b (base)", "c"]
    one = rl.lines([arm("b", 0.5, "base"), arm("c", 1, None)], brief)
    assert [line.split("│")[1].strip() for line in one[3:5]] == ["b", "c"]
    said = rl.lines([arm("a (shaped)", 0.61, "shaped")], brief)
    assert said[3].split("│")[1].strip() == "a (shaped)"


def test_a_life_that_goes_on_has_a_line_and_no_row(trained, view):
    old = trained(
        "arm", ref="vega/1", cluster="vega", native_id="1", state="TIMEOUT",
        native_state="TIMEOUT", ended_at="2026-11-29T11:00:00Z", successor="vega/2", step=20,
    )  # fmt: skip
    new = trained("arm", ref="vega/2", cluster="vega", native_id="2", step=21, max_step=80)
    lines = status_text(document([old, new]), view)
    assert lines[-1] == "vega/1: TIMEOUT 1h00m ago, goes on as vega/2"
    assert [line.split()[1:4] for line in lines if "21/80" in line] == [["arm", "vega/2", "│"]]
    assert not [line for line in lines if "│ 20 " in line]
    alone = status_text(document([old]), view)
    assert any("│ 20 " in line for line in alone)


@pytest.mark.parametrize(
    ("changes", "cell"),
    [
        ({}, "Stable"),
        ({"trend": None}, "—"),
        ({"signals": [{"title": "RL collapse at step 3"}]}, "RL collapse at step 3. Stable"),
        (
            {"signals": [{"title": "collapse"}, {"title": "x"}, {"title": "y"}]},
            "collapse (and 2 more). Stable",
        ),
        ({"native_state": "COMPLETING"}, "RUNNING (COMPLETING). Stable"),
        (
            {"stale": True, "seen_at": "2026-11-29T11:00:00Z"},
            "RUNNING (stale). Not asked since 12:00. Stable",
        ),
        ({"state": "PENDING", "native_state": "PENDING"}, "PENDING. Stable"),
    ],
)
def test_what_matters_more_comes_before_the_trend(trained, view, changes, cell):
    job = trained(**{"step": 3, "trend": "Stable", **changes})
    assert rl.lines([job], view)[3].split("│")[-2].strip() == cell


def test_the_grid_below_its_table(trained, view):
    jobs = [
        trained("7b", Bucket.SFT, ref="vega/1", step=320, max_step=916, eta_s=60_000.0),
        trained("1b", Bucket.SFT, ref="vega/2", step=700, max_step=916, eta_s=2_000.0),
        trained("7b", Bucket.SFT, ref="vega/3", state="PENDING"),
        trained("70b", Bucket.SFT, ref="vega/4", state="PENDING"),
        trained("1b-old", Bucket.SFT, ref="vega/5", state="COMPLETED", step=916, max_step=916),
        trained("bad", Bucket.SFT, ref="vega/6", state="FAILED", step=3, max_step=916),
    ]
    grid = sft_grid(jobs)
    assert grid["cells"] == 5
    assert grid["tally"] == {"running": 2, "pending": 1, "done": 1, "stopped": 1}
    assert grid["long_pole"] == {
        "run": "7b", "ref": "vega/1", "step": 320, "max_step": 916,
        "progress": 0.349345, "eta_s": 60_000.0,
    }  # fmt: skip
    text = status_text({**document(jobs), "sft_grid": grid}, view)
    assert text[-3:] == [
        "Grid of 5 cells: 2 running, 1 pending, 1 done, 1 stopped; "
        "long pole 7b 35% (320/916), 16h40m left",
        "  7b 35% (320/916), 16h40m left",
        "  1b 76% (700/916), 33m left",
    ]
    narrow = status_text({**document(jobs), "sft_grid": grid}, replace(view, fit=60))
    assert narrow[-4:-2] == [
        "Grid of 5 cells: 2 running, 1 pending, 1 done, 1 stopped;",
        "  long pole 7b 35% (320/916), 16h40m left",
    ]


def document(jobs):
    return {
        "daemon": {"running": True, "host": "login7"},
        "clusters": [],
        "summary": {"line": "x"},
        "jobs": jobs,
    }


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
    lines = status_text(document([*arms, trained("fresh", ref="vega/9")]), view)
    titles = [lines[i + 1] for i, line in enumerate(lines) if not line]
    assert titles == ["RL", "RL, no metrics yet"]
    assert lines[-2].startswith("│ vega/9 │ —    │ RUNNING │")


def test_how_long_a_trainer_has_been_coming_up(trained, view):
    jobs = [
        trained("fresh", ref="vega/9", trend="Bring-up for 12m", note="log: loading; fresh"),
        trained("next", ref="vega/10", trend="Bring-up for 1m", state="PENDING", note="waiting"),
    ]
    lines = status_text(document(jobs), view)
    assert lines[-3].split("│")[-2].strip() == "Bring-up for 12m; log: loading; fresh"
    assert lines[-2].split("│")[-2].strip() == "waiting"


def stored(job, trained, now):
    """The job object of a job whose log was read, out of the store."""
    told = with_trend(replace(job, training=trained), now=now)
    kept = codec.load(Training, json.loads(json.dumps(codec.dump(told.training))))
    return job_object(replace(told, training=kept), now)


def test_the_known_tables_from_what_the_store_keeps(make_job, now, view):
    """Numbers, regimes and the words of the trends: nothing is given but what a log has said."""
    running = {"phase": "training", "dialect": "skyrl", "stepped_at": now, "records": 15}
    shaped = Training(
        **running,
        bucket=Bucket.RL,
        step=15,
        max_step=80,
        checkpoints=(5, 10, 15),
        values=(0.6514, 0.653, 0.652, 0.651, 0.6526, 0.652, 0.652, 0.619),
        grad_norms=(0.006, 0.007, 0.006),
        metrics={
            "reward": 0.619,  # 316.9 rollouts of 512
            "policy_loss": -0.004,
            "grad_norm": 0.006,
            "generate/batch_num_seq": 512.0,
        },
    )
    base = Training(
        **running,
        bucket=Bucket.RL,
        step=26,
        max_step=80,
        checkpoints=(5, 10, 15, 20, 25),
        values=(0.4505, 0.46, 0.4405, 0.455, 0.445, 0.45, 0.46, 0.44, 0.451),
        grad_norms=(0.022, 0.019, 0.021),
        metrics={
            "reward": 0.451,  # 902 rollouts of 2000
            "policy_loss": -0.093,
            "grad_norm": 0.021,
            "generate/batch_num_seq": 2000.0,
        },
    )
    cold = Training(
        **running,
        bucket=Bucket.SFT,
        step=320,
        max_step=916,
        values=(1.5, 1.46, 1.44, 1.4, 1.38, 1.35, 1.32, 1.3, 1.27, 1.24, 1.21),
        grad_norms=(0.9, 0.8, 0.85, 0.84),
        metrics={"loss": 1.21, "grad_norm": 0.84},
    )
    arm = make_job(run="<run>", bucket=Bucket.RL)
    rl_jobs = [stored(arm, shaped, now), stored(arm, base, now)]
    brief = replace(view, brief=True)
    assert text(rl.lines(rl_jobs, brief)) == (GOLDEN / "rl_table.txt").read_bytes()
    cell = make_job(run="<run> cold-start 2ep", bucket=Bucket.SFT)
    sft_jobs = [stored(cell, cold, now)]
    assert text(sft.lines(sft_jobs, brief)) == (GOLDEN / "sft_table.txt").read_bytes()


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
