"""Failures looked up by run, configuration and signature, and counted."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from jobmond.analysis.failures import History, failure_of, grouped
from jobmond.model.outcome import Diagnosis, Failure
from jobmond.model.state import State
from tests.unit.builders import job

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
OOM = "cuda-oom:OutOfMemoryError:train.py/step:1f2e3d4c"
DISK = "disk-full:OSError:save.py/save:0a0b0c0d"


def failed(ref: str, hours: float, **changes: object) -> Failure:
    plain = Failure(
        ref=f"lab/{ref}",
        birth="1",
        name="train",
        run="train",
        config="run.sh",
        state=State.FAILED,
        cause="cuda-oom",
        fingerprint=OOM,
        summary="CUDA out of memory",
        at=NOW - timedelta(hours=hours),
        elapsed_s=1860,
    )
    return replace(plain, **changes)  # type: ignore[arg-type] # keywords of the test's own


def test_a_job_that_failed_is_a_failure_and_one_without_a_cause_is_none():
    over = job("7", state=State.FAILED, ended_at=NOW, agent_log="/a/x.md")
    assert failure_of(over, NOW) is None
    over = replace(over, diagnosis=Diagnosis("disk-full", "no space", fingerprint=DISK))
    over = replace(over, facts=replace(over.facts, started_at=NOW - timedelta(minutes=3)))
    found = failure_of(over, NOW)
    assert found is not None
    assert (found.ref, found.elapsed_s, found.entry, found.cluster) == (
        "lab/7",
        180,
        "/a/x.md",
        "lab",
    )


def test_a_failure_is_not_its_own_past():
    again = failed("1", 0)
    history = History([again, failed("2", 5)])
    standing = history.standing(again)
    assert standing is not None
    assert (standing.count, standing.elsewhere) == (2, 0)
    assert [f.ref for f in history.alike(again)] == ["lab/2"]


def test_an_earlier_life_under_the_same_id_is_its_past():
    standing = History([failed("1", 5, birth="0")]).standing(failed("1", 0))
    assert standing is not None
    assert standing.count == 2


def test_what_is_found_out_later_takes_the_place_of_what_was_thought_first():
    history = History([failed("1", 5, fingerprint="unknown:-:-:exit1", cause="unknown")])
    history.add(failed("1", 5))
    standing = history.standing(failed("2", 0))
    assert standing is not None
    assert standing.count == 2


def test_what_nobody_understands_is_no_affair_of_the_cluster():
    unknown = {"fingerprint": "unknown:-:-:exit1", "cause": "unknown"}
    history = History([failed("1", 5, run="a", config="a.sh", **unknown)])
    standing = history.standing(failed("2", 0, run="b", config="b.sh", **unknown))
    assert standing is not None
    assert (standing.count, standing.elsewhere, standing.telling) == (1, 0, False)
    assert History().standing(failed("1", 0, fingerprint=None)) is None


def test_its_own_run_is_named_first_and_the_failure_before_is_found():
    history = History(
        [
            failed("1", 5),
            failed("2", 1, run="b", config="b.sh"),
            failed("3", 2, fingerprint=DISK, cause="disk-full"),
        ]
    )
    mine = failed("9", 0)
    assert [f.ref for f in history.alike(mine)] == ["lab/1", "lab/2"]
    before = history.before(mine)
    assert before is not None
    assert before.ref == "lab/3"


def test_groups_stand_by_what_came_last():
    found = grouped(
        [failed("1", 9), failed("2", 1, run="b"), failed("3", 5, fingerprint=DISK, cause="disk")]
    )
    assert [(g.fingerprint, g.count, g.newest.ref) for g in found] == [
        (OOM, 2, "lab/2"),
        (DISK, 1, "lab/3"),
    ]
    assert (found[0].runs, found[0].first_at) == (("b", "train"), NOW - timedelta(hours=9))
    assert found[0].recurrence.words.startswith("second time in eight hours, each after about 31")


def test_a_failure_without_a_signature_stands_by_its_cause():
    [group] = grouped([failed("1", 1, fingerprint=None), failed("2", 2, fingerprint=None)])
    assert (group.fingerprint, group.count) == ("cuda-oom:-:-:-", 2)
